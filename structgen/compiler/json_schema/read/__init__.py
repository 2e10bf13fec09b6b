"""From a schema's text to a `Document`: subschemas checked, references resolved, drafts brought to one.

Comes in: JSON text. Goes out: a `Document` of keyword assertions. Sources: the specifications of Drafts 4 to
2020-12, RFC 3986 (URIs), RFC 6901 (JSON pointers).

Read `document` (what goes out), `reader` (the walk), `subschemas` (what it found), `keywords` (a row for each
keyword), `references` with `dynamic`, `drafts`; `json_values` and `equality` say what a JSON value is; `closing` is
one option, `blame` has errors of the budget say where they arose and what is largest there.
"""
