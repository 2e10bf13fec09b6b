"""How a schema's values are written as text: the options of a `JsonSchema` that the compiler honours."""

from __future__ import annotations

from dataclasses import dataclass

from ....definitions.styles import Style
from ...programs.special_tokens import SpecialTokens
from ..strings.json_escapes import unspelled

NONE = SpecialTokens({})


@dataclass(frozen=True)
class TextOptions:
    """Whitespace, order and escapes of the JSON text.

    Whitespace stands between the tokens of the document, never before the first or after the last.

    Parameters
    ----------
    gap:
        A regex (the syntax of `Regex`, without look-around, matching only JSON's whitespace) for what may stand where
        JSON allows whitespace; None where ``indent`` rules.
    indent:
        Spaces for each level, as ``json.dumps(indent=...)`` writes; None for no fixed layout.
    property_order:
        ``"schema"``: declared members in the schema's order, then the others. ``"any"``: as they come.
    escapes:
        ``"minimal"``: what must be escaped, as ``json.dumps(ensure_ascii=False)`` spells it (either case of hex
        digits). ``"ascii"``: as ``json.dumps`` does by default, every character beyond ASCII as an escape (and
        nothing else). ``"any"``: any spelling that JSON allows, of keys and values alike. Else the letters that may
        stand behind a backslash, as of `JsonSchema`.
    style:
        The tags that the members of the root are written in; None for JSON throughout.
    tag_gap:
        As ``gap``, around members that are written in tags.
    excludes:
        Texts that no string and no name holds, none of them empty.
    special:
        Tokens that may be written in place of their names in the tags of the style.
    separators:
        What is written between items, and behind names, with the gap around it.
    max_items:
        So many items has an array that the schema does not bound, or as many as it asks for; None for any number.
    max_string_length:
        So many characters has a string that the schema does not bound, or as many as it asks for.
    max_digits:
        So many digits has a number of endlessly many spellings, or as many as its shortest.
    unique_names:
        Whether no object has a name twice.
    """

    gap: str | None = " ?"
    indent: int | None = None
    property_order: str = "schema"
    escapes: str = "minimal"
    style: Style | None = None
    tag_gap: str = ""
    excludes: tuple[str, ...] = ()
    special: SpecialTokens = NONE
    separators: tuple[str, str] = (",", ":")
    max_items: int | None = None
    max_string_length: int | None = None
    max_digits: int | None = None
    unique_names: bool = False

    @property
    def forbidden(self) -> tuple[str, ...]:
        """What no string holds: what is excluded, characters that no escape spells, and the closing tag."""
        closing = () if self.style is None else (self.style.closing.decode(),)
        return (*closing, *self.excludes, *unspelled(self.escapes))
