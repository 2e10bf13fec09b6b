"""Which keywords of a JSON Schema stand against a text, read from the schema's own text.

Comes in: a schema, and the text with the byte that it dies at. Goes out: `Findings`.

Read `json_places` (an unfinished JSON text), `verdicts` (what keywords make of a piece of it, read off the piece),
`probes` (the same asked of an automaton), `pieces` (both, value by value), `subschemas` (which apply to a value),
`keywords` (their names), `reasons` (the search), `tagged` (members in the tags of a style, read as JSON), `tag_names`
(names that these can't hold), and `findings`.
"""
