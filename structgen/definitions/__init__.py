"""What a user writes, as small frozen values, and where it is read from.

Comes in: patterns, schemas, grammar texts, Python types, files. Goes out: a `Definition`, which names itself
(`canonical`) and checks its fields, and does no other work.

Read `values` first. `schema_sources`, `grammar_text` and `json_text` read what it is given; `grammar_marks` finds
special tokens and schemas in a grammar's text; `loading` reads definitions by name, from files and manifests.
"""

from .values import (
    Definition,
    Ebnf,
    Fsm,
    Gbnf,
    Grammar,
    Indentation,
    JsonSchema,
    Regex,
    StructuralTag,
    as_definition,
    one_of,
    sequence,
    tag,
    text,
)

__all__ = [
    "Definition",
    "Ebnf",
    "Fsm",
    "Gbnf",
    "Grammar",
    "Indentation",
    "JsonSchema",
    "Regex",
    "StructuralTag",
    "as_definition",
    "one_of",
    "sequence",
    "tag",
    "text",
]
