"""From a grammar's text to its rules and terminals.

Comes in: the text with its imports. Goes out: a `ContextFreeGrammar`. Lark's loader expands templates and operators;
what it would come to is reckoned first (`growth`), because nothing can stop it once it runs.

What Lark has no syntax for is written as what it has, first `parametric` (rules with a parameter; `parameters` has
conditions), then `operators` (``&`` and ``~`` in terminals); `dialects` names what is not read.

Read `rules` (what goes out), `loading`, `growth`.
"""
