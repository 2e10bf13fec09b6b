"""Replies read back: reasoning, text and tool calls, by the automaton that enforces them.

Comes in: a structural tag whose formats have labels, and a reply, as tokens or text. Goes out: `ReplyEvent`s, in the
shape in which the Chat Completions API streams them.

Read `reader` first; `spans` says which label each byte has, by *marks* (`structgen.compiler.structural_tags.marks`);
`parts` keeps back what may be no text; `arguments` makes JSON of all notations, and
`unfinished_arguments` of those in tags that are refused.
"""
