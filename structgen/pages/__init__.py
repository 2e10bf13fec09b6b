"""Pages of HTML: texts as boxes with a slider through them, made by Jinja2, in one file that loads nothing.

Comes in: a `Page`, which traces and corrections make of themselves. Goes out: HTML whose scripts and styles are named
by their hashes in a Content Security Policy (W3C, Level 3), so that nothing in a text can run or load anything.

Read `page`, and its `templates`. What is not seen, or turns others around, is spelled out before it comes here
(`structgen.system.visible`).
"""
