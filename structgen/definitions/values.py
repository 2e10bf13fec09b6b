"""What a user writes, as small immutable values: a `Regex`, an `Fsm`, a `JsonSchema`, a `Grammar` or a `Gbnf`.

A definition knows how to name itself (`canonical`), which is half of a cache key; compilers know how to
lower it. It holds no automata and does no work beyond checking its own fields.
"""

from __future__ import annotations

import json
import marshal
import re
from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, InitVar, astuple, dataclass, field, fields
from functools import lru_cache
from os import PathLike
from typing import TYPE_CHECKING, Protocol, TypeGuard, runtime_checkable

from ..errors import BudgetExceededError, DefinitionError, UnsupportedError
from ..system.properties import cached_property
from ..system.types import Foreign, with_article
from .guidance_options import json_spaces, options_of
from .schema_sources import schema_text
from .styles import STYLES as TAG_STYLES

if TYPE_CHECKING:
    from ..vocabulary.vocabulary import Vocabulary
    from .grammar_marks import MarkedText
    from .grammar_text import Imports

#: The flags of Python's `re` that a `Regex` honours.
SUPPORTED_FLAGS = re.ASCII | re.IGNORECASE | re.MULTILINE | re.DOTALL | re.VERBOSE | re.UNICODE

#: By dialect of a `Regex`: the flags that it has.
DIALECT_FLAGS = {
    "re": SUPPORTED_FLAGS,
    "ecma": re.IGNORECASE | re.MULTILINE | re.DOTALL,
    "rust": re.IGNORECASE | re.MULTILINE | re.DOTALL | re.VERBOSE,
}

#: The widest column that an `Indentation` can be asked to tell apart.
MOST_COLUMNS = 1 << 10

#: Levels of grammars within grammars, and characters of what is within one: texts in texts double their quotes.
_MOST_LEVELS, _MOST_CHARACTERS = 16, 1 << 24


@runtime_checkable
class Definition(Protocol):
    """The protocol of all definitions: a kind and a canonical form."""

    @property
    def kind(self) -> str:
        """``"regex"``, ``"fsm"``, ``"json_schema"``, ``"grammar"`` or ``"gbnf"``: which front end lowers it."""
        ...

    def canonical(self) -> str:
        """A text that is equal for two definitions exactly when they mean the same to the compiler."""
        ...


class Composable:
    """What ``+`` puts in a row with another definition, and ``|`` beside one."""

    def __add__(self, other: object) -> StructuralTag:
        """This, then the other one."""
        return sequence(self, other)

    def __radd__(self, other: object) -> StructuralTag:
        """The other one, then this."""
        return sequence(other, self)

    def __or__(self, other: object) -> StructuralTag:
        """This or the other one."""
        return one_of(self, other)

    def __ror__(self, other: object) -> StructuralTag:
        """The other one or this."""
        return one_of(other, self)


@dataclass(frozen=True)
class Regex(Composable):
    r"""The texts that a regular expression matches from end to end, as `re.fullmatch` does.

    Parameters
    ----------
    pattern:
        Python's `re` syntax, and ``\p{..}``. Groups do not capture; greedy and lazy quantifiers mean the same
        language. Look-around is exact. Backreferences, conditionals on a group, recursion, atomic groups and
        possessive quantifiers are refused with their column.
    flags:
        `re.ASCII | re.IGNORECASE | re.MULTILINE | re.DOTALL | re.VERBOSE`, or their union as an int.
    dialect:
        The language that the pattern was written for. ``"re"``: Python. ``"ecma"``: JavaScript, with its flag
        ``u``. ``"rust"``: the `regex` crate. Character classes, ``.``, ``$`` and case folding follow the dialect.
        `re.ASCII` is for ``"re"`` only; ``"ecma"`` has no `re.VERBOSE`.
    """

    pattern: str
    flags: int = 0
    dialect: str = "re"

    kind = "regex"

    def __post_init__(self) -> None:
        if not isinstance(self.pattern, str):
            raise DefinitionError(
                f"a regex is a str, got {type(self.pattern).__name__}",
                remedy="Decode bytes first; structgen encodes as UTF-8 itself.",
            )
        if not isinstance(self.flags, int) or isinstance(self.flags, bool):
            raise DefinitionError(f"flags are an int, got {type(self.flags).__name__}", remedy="Pass re.I, for one.")
        object.__setattr__(self, "flags", int(self.flags))
        unknown = self.flags & ~int(SUPPORTED_FLAGS)
        if unknown:
            raise DefinitionError(
                f"unsupported regex flags {re.RegexFlag(unknown)!r}", remedy="Use re.A, re.I, re.M, re.S and re.X only."
            )
        _check_choice("dialect", self.dialect, tuple(DIALECT_FLAGS))
        if unknown := self.flags & ~int(DIALECT_FLAGS[self.dialect] | re.UNICODE):
            raise DefinitionError(
                f"the dialect {self.dialect} has no flag {re.RegexFlag(unknown)!r}",
                remedy="Leave it out, and write its meaning into the pattern.",
            )

    @classmethod
    def choice(cls, words: Iterable[str]) -> Regex:
        """Return the regex of exactly one of the words, each taken literally.

        Parameters
        ----------
        words:
            The words, at least one.

        Raises
        ------
        DefinitionError
            For anything but a list of strings.
        """
        found = None if isinstance(words, str) or not isinstance(words, Iterable) else list(words)
        if found is None or not all(isinstance(word, str) for word in found):
            what = f"a choice is among a list of strings, got {type(words).__name__}"
            raise DefinitionError(what, remedy='Pass such as ["yes", "no"].')
        return cls("|".join(map(re.escape, dict.fromkeys(found))))

    def canonical(self) -> str:
        """The kind, pattern and flags as compact JSON, and a dialect that is not Python's."""
        dialect = [self.dialect] if self.dialect != "re" else []
        return json.dumps(["regex", self.pattern, self.flags & ~int(re.UNICODE), *dialect], ensure_ascii=True)


@dataclass(frozen=True, eq=False)
class Fsm:
    """The texts that an interegular automaton accepts, for set operations on regular languages before compiling.

    interegular automata can be united, intersected, subtracted and complemented, as in ``parse_pattern(a).to_fsm()
    - parse_pattern(b).to_fsm()``. The result compiles like a `Regex`. Its symbols are single characters, or
    interegular's ``anything_else``, which stands for every character not named.

    Parameters
    ----------
    fsm:
        An `interegular.fsm.FSM`.
    """

    fsm: Foreign

    kind = "fsm"

    def __post_init__(self) -> None:
        if not all(hasattr(self.fsm, name) for name in ("alphabet", "initial", "finals", "map")):
            raise DefinitionError(
                f"an interegular FSM was expected, got {type(self.fsm).__name__}",
                remedy='Pass interegular.parse_pattern("...").to_fsm(), or combine such machines.',
            )
        for symbols in self.fsm.alphabet.by_transition.values():
            for symbol in symbols:
                if isinstance(symbol, str) and len(symbol) != 1:
                    what = f"the FSM's symbol {symbol!r} is not a single character"
                    raise DefinitionError(what, remedy="Use characters, or anything_else.")

    def symbols(self) -> dict[int, list[str | None]]:
        """The characters of each of the alphabet's transition keys; None is ``anything_else``."""
        return {
            key: sorted((s if isinstance(s, str) else None for s in symbols), key=lambda s: (s is not None, s))
            for key, symbols in self.fsm.alphabet.by_transition.items()
        }

    def canonical(self) -> str:
        """The machine with its states numbered as a breadth-first search meets them, as compact JSON."""
        fsm, symbols = self.fsm, self.symbols()
        keys = sorted(symbols, key=lambda key: [s or "" for s in symbols[key]])
        number = {fsm.initial: 0}
        moves = []
        for state in (queue := [fsm.initial]):
            for column, key in enumerate(keys):
                target = fsm.map.get(state, {}).get(key)
                if target is None:
                    continue
                if target not in number:
                    number[target] = len(number)
                    queue.append(target)
                moves.append([number[state], column, number[target]])
        finals = sorted(number[state] for state in fsm.finals if state in number)
        return json.dumps(["fsm", [symbols[key] for key in keys], moves, finals])


#: What the words of `JsonSchema.whitespace` mean, as the pattern of a gap; ``"any"`` is still without its bound.
WHITESPACE = {"compact": "", "single": " ?", "any": r"[ \t\n\r]"}

#: What may stand around members that are written in tags, by the words of `JsonSchema.whitespace`, alike.
_TAG_WHITESPACE = {"compact": "", "single": r"[ \t\n\r]?", "any": r"[ \t\n\r]"}

#: How the members of an object can be written.
STYLES = ("json", *TAG_STYLES)

#: What is written between keys and values in Gemma's notation.
_GEMMAS = re.compile(r'<\|"\|>|[{}\[\]:,]')

#: Words for how strings are escaped, and the letters that can stand behind a backslash.
ESCAPES = ("minimal", "ascii", "any")
_ESCAPED = '"\\/bfnrtuU'

#: Widest indentation that `JsonSchema` writes.
MAX_INDENT = 16

#: The options of a `JsonSchema`.
_SCHEMA_OPTIONS = (
    "whitespace", "max_whitespace", "property_order", "escapes", "additional_properties", "lenient", "style",
    "excludes", "item_separator", "key_separator", "max_items", "max_string_length", "max_digits", "unique_names",
)  # fmt: skip


@dataclass(frozen=True)
class JsonSchema(Composable):
    r"""The JSON texts that are valid under a schema.

    The schema is copied: later changes of the argument have no effect. Its text is checked to be JSON here, and to
    be a schema when it is compiled.

    Parameters
    ----------
    schema:
        A dict or bool; a str with JSON text; a `pathlib.Path` of a JSON file; or anything that Pydantic can
        describe (with Pydantic installed): a model, dataclass, TypedDict, NamedTuple, Enum, a type annotation such
        as ``list[int]``, or a function, which stands for the object of its parameters. A str is never taken for a
        path.
    whitespace:
        The whitespace allowed between JSON's tokens. ``"compact"``: none. ``"single"``: one space or none.
        ``"any"``: any JSON whitespace, at most ``max_whitespace`` characters in a row. An int: line breaks and
        indentation exactly as ``json.dumps(indent=...)`` writes them. Any other str: a pattern as of `Regex` that
        matches only JSON whitespace, such as ``r"\n? *"``.
    max_whitespace:
        The bound of ``whitespace="any"``. None: unbounded, so that a model can pad without end. It has no effect
        otherwise. Default: 20.
    property_order:
        ``"schema"``: declared properties in the order of the schema, then others. ``"any"``: any order.
    escapes:
        The spelling of characters in strings. ``"minimal"``: only required escapes, as
        ``json.dumps(ensure_ascii=False)`` writes. ``"ascii"``: all characters beyond ASCII are escaped as well, as
        ``json.dumps`` does by default. ``"any"``: any spelling that JSON allows. Letters of ``"\\/bfnrtu``: only
        these may follow a backslash, ``u`` for control characters and U+007F, and with the letter ``U`` for any
        character; a character that must be escaped and has no such escape is in no string.
    item_separator, key_separator:
        The separators between items or properties, and after a name: a comma or a colon with JSON whitespace around
        it, or a pattern as of `Regex` such as ``r"\s?,\s?"``. A pattern that matches other characters produces
        texts that are not JSON. ``whitespace`` may stand around them; with ``"compact"`` they are exact. None:
        ``","`` and ``":"``, with an indentation ``": "``.
    max_items:
        The most items of an array that the schema does not bound. An array that ``minItems`` or ``contains``
        requires to be longer may have as many as they require. None: unbounded.
    max_string_length:
        The most characters of a string whose length the schema does not bound, or as many as ``minLength`` or a
        pattern requires. Names are not bounded. None: unbounded.
    max_digits:
        The most digits of a number that has infinitely many spellings, fraction and exponent included, or as many
        as its shortest spelling has. At least 1. None: unbounded.
    unique_names:
        Whether names of an object must be unique. Declared names are unique in any case. With False, others may be
        repeated, as JSON allows. Names are compared unescaped: ``"a"`` equals ``"\u0061"``.
    additional_properties:
        Whether objects may have undeclared properties where the schema has ``properties`` but not
        ``additionalProperties``. True is JSON Schema's own meaning. False closes each branch of ``anyOf`` by
        itself. ``"unevaluated"`` allows the properties of all branches that the object satisfies, as
        ``unevaluatedProperties: false`` does.
    lenient:
        Approximate constructs that cannot be honoured exactly and skip malformed ones, instead of refusing them.
        `Index.relaxations` lists them.
    style:
        ``"json"``, or the notation of a tool-call format: ``"qwen_xml"`` (``<parameter=name>value</parameter>``),
        ``"minimax_xml"``, ``"minimax_m3_xml"``, ``"deepseek_xml"``, ``"deepseek_v4_1_xml"``, ``"glm_xml"``,
        ``"cohere_xml"``, ``"kimi_k3_xml"``. Properties are then written in tags. Strings in tags are raw, up to the
        closing tag, which no value contains. Other values are JSON, except items and nested properties of
        ``cohere_xml`` and ``minimax_m3_xml``, which are in tags again. Only objects have texts. Indentation is
        refused; with ``whitespace="single"`` one space, tab or line end may stand around properties and values. A
        special token whose name occurs in a tag may be written in its place.
    excludes:
        Texts that no string and no property name contains after decoding, such as marks of a chat template.

    Raises
    ------
    DefinitionError
        For a malformed schema text, a type that Pydantic cannot describe, or an invalid option.
    BudgetExceededError
        For JSON that is nested too deeply to be read.
    """

    schema: InitVar[object]
    _: KW_ONLY
    whitespace: str | int = "single"
    max_whitespace: int | None = 20
    property_order: str = "schema"
    escapes: str = "minimal"
    additional_properties: bool | str = True
    lenient: bool = False
    style: str = "json"
    excludes: tuple[str, ...] = ()
    item_separator: str | None = None
    key_separator: str | None = None
    max_items: int | None = None
    max_string_length: int | None = None
    max_digits: int | None = None
    unique_names: bool = False
    text: str = field(init=False)

    kind = "json_schema"

    def __post_init__(self, schema: object) -> None:
        object.__setattr__(self, "text", schema_text(schema))
        for name, value in options_of(self.text).items():
            if getattr(self, name) not in (getattr(JsonSchema, name), value):
                raise DefinitionError(
                    f"{name} is {getattr(self, name)!r}, and x-guidance has {value!r}", remedy="Say it once."
                )
            object.__setattr__(self, name, value)
        if any(getattr(self, name) is not getattr(JsonSchema, name) for name in _SCHEMA_OPTIONS):
            self._check_options()

    def _check_options(self) -> None:
        _check_whitespace(self.whitespace, self.max_whitespace)
        _check_most("max_items", self.max_items, "items")
        _check_most("max_string_length", self.max_string_length, "characters")
        _check_most("max_digits", self.max_digits, "digits", least=1)
        _check_choice("property_order", self.property_order, ("schema", "any"))
        if self.escapes not in ESCAPES:
            object.__setattr__(self, "escapes", _letters(self.escapes))
        for name in ("item_separator", "key_separator"):
            _check_separator(name, getattr(self, name), is_exact=self.gap in ("", None))
        _check_choice("additional_properties", self.additional_properties, (True, False, "unevaluated"))
        _check_choice("lenient", self.lenient, (True, False))
        _check_choice("unique_names", self.unique_names, (True, False))
        _check_choice("style", self.style, STYLES)
        object.__setattr__(self, "excludes", _texts("excludes", self.excludes))
        if self.style != "json" and self.indent is not None:
            raise DefinitionError(f"style {self.style!r} takes no indentation", remedy='Use whitespace="single".')

    @classmethod
    def openai_strict(cls, schema: object, **options: Foreign) -> JsonSchema:
        """Return the definition of a schema for OpenAI's structured outputs with ``"strict": true``.

        The schema is checked against the rules of strict mode. Objects are closed, all properties are required, and
        they come in the order of ``properties``.

        Parameters
        ----------
        schema:
            As in `JsonSchema`. The schema of a Python type is closed first and its properties are made required, as
            OpenAI's package does.
        options:
            As in `JsonSchema`.

        Raises
        ------
        DefinitionError
            For a keyword, an open object, an optional property or a size that strict mode does not accept;
            ``where`` is the JSON pointer. Also the errors of `JsonSchema`.
        """
        from .openai_strict import strict_schema

        return cls(strict_schema(schema), **options)

    def __repr__(self) -> str:
        options = ((f, getattr(self, f.name)) for f in fields(self) if f.init)
        given = [f"{f.name}={value!r}" for f, value in options if value != f.default]
        return f"JsonSchema({', '.join([repr(self.text), *given])})"

    @property
    def separators(self) -> tuple[str, str]:
        """What is written between items, and behind names."""
        usual = ":" if self.indent is None else ": "
        if not self.item_separator and not self.key_separator:
            return ",", usual
        return json_spaces(self.item_separator or ","), json_spaces(self.key_separator or usual)

    @property
    def gap(self) -> str | None:
        """The pattern of what may stand in a gap, or None where the layout is an indentation."""
        return None if isinstance(self.whitespace, int) else self._pattern(self.whitespace, WHITESPACE)

    @property
    def tag_gap(self) -> str:
        """The same of what may stand around members that are written in tags; no indentation does."""
        return "" if isinstance(self.whitespace, int) else self._pattern(self.whitespace, _TAG_WHITESPACE)

    def _pattern(self, whitespace: str, words: Mapping[str, str]) -> str:
        pattern = words[whitespace] if whitespace in words else json_spaces(whitespace)
        if whitespace == "any":
            pattern += "*" if self.max_whitespace is None else f"{{0,{self.max_whitespace}}}"
        return pattern

    @property
    def indent(self) -> int | None:
        """Spaces for each level of nesting, or None where the layout is a pattern."""
        return self.whitespace if isinstance(self.whitespace, int) else None

    def special_names(self, vocabulary: Vocabulary) -> list[tuple[str, int]]:
        """The special tokens of a vocabulary whose names stand in the tags: what its bytes don't tell."""
        if self.style == "json":
            return []
        texts = TAG_STYLES[self.style].texts
        return [each for each in sorted(vocabulary.special_tokens.items()) if any(each[0] in text for text in texts)]

    def canonical(self) -> str:
        """The kind, the options and the schema's text as JSON; members keep their order, which the texts follow."""
        return f"{self._options}{self.text}]"

    @cached_property
    def _options(self) -> str:
        """`canonical` up to the text."""
        bounds = (self.max_string_length, self.max_digits)
        options = _as_json(
            self.gap, self.indent, self.property_order, self.escapes, self.additional_properties, self.lenient,
            *(self.separators if self.item_separator or self.key_separator else ()),
            *(() if self.max_items is None else (self.max_items,)),
            *(() if bounds == (None, None) else (bounds[: 1 + (self.max_digits is not None)],)),
            *(("unique_names",) if self.unique_names else ()),
        )  # fmt: skip
        written = [self.style, *self.excludes]
        more = "" if written == ["json"] else json.dumps(written) + ","
        return f'["json_schema",{options},{more}'


@lru_cache(1 << 8, typed=True)
def _as_json(*options: str | int | tuple[int | None, ...] | None) -> str:
    return json.dumps(options, separators=(",", ":"))


@dataclass(frozen=True)
class Indentation:
    """The terminals of a grammar with significant indentation, like `lark.indenter.Indenter`.

    Parameters
    ----------
    newline:
        The terminal that matches line ends, with the spaces and tabs of the next line.
    indent, dedent:
        Terminals that the grammar declares. One follows a line end where the next line begins further right, or
        left.
    opening, closing:
        Terminals that are brackets. Line ends within them have no meaning.
    tab:
        The columns that a tab counts for.
    columns:
        The largest column at which a line may begin, outside of brackets: 1 to 1,024. Texts with larger ones are
        refused.
    """

    newline: str = "_NEWLINE"
    indent: str = "_INDENT"
    dedent: str = "_DEDENT"
    opening: tuple[str, ...] = ("LPAR", "LSQB", "LBRACE")
    closing: tuple[str, ...] = ("RPAR", "RSQB", "RBRACE")
    tab: int = 8
    columns: int = 160

    def __post_init__(self) -> None:
        names = (self.newline, self.indent, self.dedent, *self.opening, *self.closing)
        if not all(isinstance(name, str) and name for name in names):
            raise DefinitionError("an indentation is of names of terminals", remedy='Pass such as "_NEWLINE".')
        object.__setattr__(self, "opening", tuple(self.opening))
        object.__setattr__(self, "closing", tuple(self.closing))
        for name, value, most in (("tab", self.tab, MOST_COLUMNS), ("columns", self.columns, MOST_COLUMNS)):
            if not (_is_int(value) and 1 <= value <= most):
                raise DefinitionError(f"{name} is {value!r}", remedy=f"Use a number from 1 to {most}.")

    @classmethod
    def of(cls, value: object) -> Indentation:
        """The indentation that a value is.

        Raises `DefinitionError` for one that is none, `UnsupportedError` for one that does something of its own.
        """
        from lark.indenter import Indenter

        if isinstance(value, cls):
            return value
        if not isinstance(value, Indenter):
            raise DefinitionError(
                f"postlex is {with_article(type(value))}",
                remedy="Use an Indentation, or an instance derived from lark.indenter.Indenter.",
            )
        methods = ("handle_NL", "_process", "process")
        own = [name for name in methods if getattr(type(value), name) is not getattr(Indenter, name)]
        if tuple(value.always_accept) != (value.NL_type,):
            own.append("always_accept")
        if own:
            raise UnsupportedError(f"the postlex has a {own[0]} of its own", remedy="Use lark.indenter.Indenter's.")
        return cls(
            value.NL_type, value.INDENT_type, value.DEDENT_type, tuple(value.OPEN_PAREN_types),
            tuple(value.CLOSE_PAREN_types), value.tab_len,
        )  # fmt: skip


#: The options of a `Grammar` that nobody has given.
GRAMMAR_DEFAULTS = {"lexer": "contextual", "ambiguity": "resolve"}


@dataclass(frozen=True)
class Grammar(Composable):
    """The texts of a context-free grammar in Lark's syntax, read as Lark's LALR parser reads them.

    Beyond Lark's syntax, the text of ``source`` (not of its imports) may contain special tokens, ``<|eom_id|>`` or
    by id ``<[128008]>``, and JSON Schemas, ``%json {...}``.

    Parameters
    ----------
    source:
        A str with the grammar, or a `pathlib.Path` of a file. A str is never taken for a path. The file and its
        imports are read now; later changes have no effect.
    start:
        The start rule.
    lexer:
        ``"contextual"``: only terminals that the parser can accept next are tried. ``"basic"``: all terminals are
        tried everywhere. ``""``: contextual. The grammars of `structgen.grammars` have a lexer, a start, an
        ambiguity and a postlex of their own, which are the defaults for them.
    strict:
        Refuse grammars with shift/reduce conflicts (otherwise the parser shifts), and those with regexes of equal
        priority that match the same text where the lexer tries both, as Lark does.
    ambiguity:
        ``"resolve"`` or ``""``: the parser takes one of several possible actions, as in Lark. ``"all"``: it follows
        all of them, so that every text that the rules describe is accepted, as with Lark's Earley parser.
    matches:
        ``"preferred"``: a terminal matches the text that `re` prefers, ``a`` for ``/a|ab/``. ``"longest"``: the
        longest match, as in POSIX, except for regexes with lazy repeats or look-around.
    postlex:
        An `Indentation`, or an instance of a subclass of `lark.indenter.Indenter`, whose terminal names are used.
    definitions:
        A mapping from terminals to the definitions of their texts: a `JsonSchema`, `Regex`, `Gbnf` or `Grammar`, or
        a value that `JsonSchema` takes.
    import_paths:
        Folders in which ``%import`` looks, besides Lark's own grammars and the folder of the file.

    Raises
    ------
    DefinitionError
        For a file that cannot be read, or an invalid option. The grammar itself is parsed by `compile`.
    BudgetExceededError
        For imports of thousands of files, and for more than 16 nested grammars.
    UnsupportedError
        For an `Indenter` with behaviour of its own.
    """

    source: InitVar[object]
    _: KW_ONLY
    start: str = "start"
    lexer: str = ""
    strict: bool = False
    ambiguity: str = ""
    matches: str = "preferred"
    postlex: Foreign = None
    definitions: Foreign = ()
    import_paths: tuple[str, ...] = ()
    text: str = field(init=False)
    path: str = field(init=False)
    imports: Imports = field(init=False, repr=False)

    kind = "grammar"

    def __post_init__(self, source: object) -> None:
        from .grammar_text import Imports, read_grammar
        from .shipped import options_of

        text, path = read_grammar(source)
        object.__setattr__(self, "text", text)
        object.__setattr__(self, "path", path)
        object.__setattr__(self, "import_paths", _folders(self.import_paths))
        object.__setattr__(self, "imports", Imports.read(text, path, self.import_paths))
        for name, value in {**GRAMMAR_DEFAULTS, **options_of(path, text)}.items():
            if getattr(self, name) == getattr(Grammar, name):
                object.__setattr__(self, name, Indentation() if name == "postlex" else value)
        _check_choice("lexer", self.lexer, ("contextual", "basic"))
        _check_choice("strict", self.strict, (True, False))
        _check_choice("ambiguity", self.ambiguity, ("resolve", "all"))
        _check_choice("matches", self.matches, ("preferred", "longest"))
        object.__setattr__(self, "definitions", _named_definitions(self.definitions))
        check_levels(self.levels)
        if self.postlex is not None:
            object.__setattr__(self, "postlex", Indentation.of(self.postlex))
        _check_start(self.start)

    @cached_property
    def levels(self) -> int:
        """Of grammars: this one, those in its definitions, and so on."""
        return 1 + max((each.levels for _, each in self.definitions if isinstance(each, Grammar)), default=0)

    @cached_property
    def marked(self) -> MarkedText:
        """The text for Lark, and the special tokens and JSON Schemas in it. Raises as `read_marks`."""
        from .grammar_marks import read_marks

        return read_marks(self.text)

    def within(self, text: str) -> Grammar:
        """A grammar whose text stands in this one, which imports from the same folders, ``%lark {...}``."""
        found = Grammar(text, ambiguity=self.ambiguity, matches=self.matches, import_paths=self.import_paths)
        object.__setattr__(found, "imports", self.imports)  # as they were read with this one
        return found

    def canonical(self) -> str:
        """The kind, the options, the text, and a hash of every file that it imports, as JSON."""
        options = [self.start, self.lexer, self.strict, self.ambiguity, self.postlex and astuple(self.postlex)]
        options += [self.matches] if self.matches != "preferred" else []
        inner = [[name, definition.canonical()] for name, definition in self.definitions]
        if sum(len(text) for _, text in inner) > _MOST_CHARACTERS:
            what = f"the definitions in a grammar have more than {_MOST_CHARACTERS:,} characters"
            raise BudgetExceededError(what, remedy="Have fewer levels of grammars, or write them into one.")
        return json.dumps(["grammar", options, self.text, self.imports.digests(), inner], separators=(",", ":"))


@dataclass(frozen=True)
class Gbnf(Composable):
    """The texts of a grammar in GBNF, the format of llama.cpp.

    Its terminals are characters: there is no lexer, and every derivation counts.

    Parameters
    ----------
    source:
        A str with the grammar, or a `pathlib.Path` of a file. A str is never taken for a path.
    start:
        The start rule.

    Raises
    ------
    DefinitionError
        For a file that cannot be read, or an invalid start. The grammar itself is read by `compile`.
    """

    source: InitVar[object]
    _: KW_ONLY
    start: str = "root"
    text: str = field(init=False)

    kind = "gbnf"

    @property
    def notation(self) -> str:
        """How the text is written: a name among the dialects of `structgen.compiler.gbnf.dialects`."""
        return "gbnf"

    def __post_init__(self, source: object) -> None:
        from .grammar_text import read_grammar

        object.__setattr__(self, "text", read_grammar(source)[0])
        _check_start(self.start)

    def special_names(self, vocabulary: Vocabulary) -> list[tuple[str, int]]:
        """The special tokens of a vocabulary that the text may name: what its bytes don't tell."""
        return sorted((name, token) for name, token in vocabulary.special_tokens.items() if name in self.text)

    def named_tokens(self) -> list[str]:
        """The tokens that the text names, as `structgen.definitions.token_sets` reads them."""
        from .token_sets import marks_in_gbnf

        return marks_in_gbnf(self.text)

    def canonical(self) -> str:
        """The kind, the start and the text, as JSON."""
        return json.dumps(["gbnf", self.start, self.text], separators=(",", ":"))


#: The dialects of an `Ebnf`.
EBNF_DIALECTS = ("xgrammar", "transformers-cfg")


@dataclass(frozen=True)
class Ebnf(Gbnf):
    """The texts of a grammar in another engine's EBNF, a notation close to GBNF.

    Parameters
    ----------
    source:
        As in `Gbnf`.
    dialect:
        ``"xgrammar"``: XGrammar's EBNF, with left recursion and its macros. ``"transformers-cfg"``: the notation of
        that package. Constructs that are not supported are refused by name when the grammar is compiled; see
        docs/guide/migrating.md.
    start:
        As in `Gbnf`.

    Raises
    ------
    DefinitionError
        For a file that cannot be read, an invalid start, or an unknown dialect.
    """

    dialect: str = "xgrammar"

    @property
    def notation(self) -> str:
        """The dialect."""
        return self.dialect

    def __post_init__(self, source: object) -> None:
        super().__post_init__(source)
        _check_choice("dialect", self.dialect, EBNF_DIALECTS)

    def canonical(self) -> str:
        """The kind, the start, the text and the dialect, as JSON."""
        return json.dumps([self.kind, self.start, self.text, self.dialect], separators=(",", ":"))


@dataclass(frozen=True)
class StructuralTag(Composable):
    """The texts of a format: free text, tagged sections, tool calls, and definitions of other kinds within them.

    The format is XGrammar's structural tag, such as ``{"type": "tag", "begin": "<a>", "content": {...},
    "end": "</a>"}``; see docs/guide/structural_tags.md. `compile` reads it.

    Parameters
    ----------
    format:
        A dict with a format; JSON text of one; either within ``{"type": "structural_tag", "format": ...}``, as
        servers receive it; or the older ``{"structures": [...], "triggers": [...]}``.
    whitespace, max_whitespace, property_order, escapes, additional_properties, lenient:
        As in `JsonSchema`, for all schemas in the format that do not set them.
    item_separator, key_separator, max_items, max_string_length, max_digits, unique_names:
        As in `JsonSchema`, for all schemas in the format that do not set them.
    places:
        For error messages: the origin of the schemas in a tag, by the tag's label.

    Raises
    ------
    DefinitionError
        For anything but a JSON object, or an invalid option.
    BudgetExceededError
        For JSON that is nested too deeply to be read.
    """

    format: InitVar[object]
    _: KW_ONLY
    whitespace: str | int = "single"
    max_whitespace: int | None = 20
    property_order: str = "schema"
    escapes: str = "minimal"
    additional_properties: bool | str = True
    lenient: bool = False
    item_separator: str | None = None
    key_separator: str | None = None
    max_items: int | None = None
    max_string_length: int | None = None
    max_digits: int | None = None
    unique_names: bool = False
    places: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)
    text: str = field(init=False)
    _packed: bytes = field(init=False, repr=False, compare=False)

    kind = "structural_tag"

    def __post_init__(self, format: object) -> None:
        from .structural_tag import read_format, write_format

        text, packed = write_format(read_format(format))
        object.__setattr__(self, "text", text)
        object.__setattr__(self, "_packed", packed)
        self.schema(True)  # which checks the options

    def __repr__(self) -> str:
        given = [f"{name}={value!r}" for name in TAG_OPTIONS if (value := getattr(self, name)) != _DEFAULTS[name]]
        return f"StructuralTag({', '.join([repr(self.text), *given])})"

    def unpacked(self) -> Foreign:
        """The format. Some tags that stand in a list may be bytes, which `marshal` reads."""
        if not self._packed:
            from .json_text import loads

            return loads(self.text)
        return marshal.loads(self._packed)

    def schema(self, schema: object, **options: Foreign) -> JsonSchema:
        """A schema in the format, with the options of all but for those that it has of its own."""
        common = {name: getattr(self, name) for name in TAG_OPTIONS}
        return JsonSchema(schema, **common | options)

    def special_names(self, vocabulary: Vocabulary) -> list[tuple[str, int]]:
        """The special tokens of a vocabulary whose names may stand in the texts: what its bytes don't tell."""
        from json.encoder import encode_basestring_ascii as quote

        written = [text for name, style in TAG_STYLES.items() if name in self.text for text in style.texts]
        is_gemmas = '"style":"gemma"' in self.text  # whose texts are made of pieces of the schema's

        def may_stand(name: str) -> bool:
            pieces = filter(None, _GEMMAS.split(name)) if is_gemmas else [name]
            return any(name in text for text in written) or all(
                quote(piece)[1:-1] in self.text or (is_gemmas and piece in "null") for piece in pieces
            )

        return [each for each in sorted(vocabulary.special_tokens.items()) if may_stand(each[0])]

    def named_tokens(self) -> set[int | str]:
        """The tokens that the format names, or has the ids of, as tokens."""
        from .json_text import loads

        found: set[int | str] = set()
        todo: list[Foreign] = [loads(self.text)]
        for value in todo:
            if isinstance(value, list):
                todo += value
            elif isinstance(value, dict):
                todo += (inner for name, inner in value.items() if name != "json_schema")
                names = [value.get("token"), *_listed(value, "exclude_tokens"), *_listed(value, "trigger_tokens")]
                if value.get("type") == "token_dispatch":
                    names += (pair[0] for pair in _listed(value, "rules") if isinstance(pair, list) and pair)
                found.update(name for name in names if isinstance(name, str) or _is_int(name))
        return found

    def canonical(self) -> str:
        """The kind, the options and the format's text, as JSON."""
        options = self.schema(True).canonical()
        imports = f",{json.dumps(self._imports(), separators=(',', ':'))}" if "%import" in self.text else ""
        return f'["{self.kind}",{options},{self.text}{imports}]'

    def _imports(self) -> list[list[str]]:
        """Name and hash of the files that grammars in it import, as `Imports.digests` has them."""
        from .grammar_text import Imports
        from .json_text import loads

        return Imports.read("\n".join(_strings(loads(self.text))), "", ()).digests()


def _strings(value: Foreign) -> list[str]:
    """All strings in a JSON value, but for names of members."""
    todo = [value]
    for each in todo:
        todo += each if isinstance(each, list) else each.values() if isinstance(each, dict) else ()
    return [each for each in todo if isinstance(each, str)]


def _listed(value: dict[str, Foreign], name: str) -> list[Foreign]:
    found = value.get(name)
    return found if isinstance(found, list) else []


#: The options of `StructuralTag` that are its schemas'.
TAG_OPTIONS = (
    "whitespace", "max_whitespace", "property_order", "escapes", "additional_properties", "lenient",
    "item_separator", "key_separator", "max_items", "max_string_length", "max_digits", "unique_names",
)  # fmt: skip


#: The options of `Grammar` that are its own as part of another definition, too.
LARK_OPTIONS = ("lexer", "strict", "ambiguity", "matches")


_DEFAULTS = {each.name: each.default for each in fields(StructuralTag)}


def _check_start(start: object) -> None:
    if not isinstance(start, str) or not start:
        raise DefinitionError(f"start is {start!r}", remedy="Name a rule of the grammar.")


def _named_definitions(value: object) -> tuple[tuple[str, Definition], ...]:
    """Definitions within a grammar, by name. Raises `DefinitionError`."""
    if not value:
        return ()
    if not isinstance(value, Mapping):
        raise DefinitionError(
            f"definitions is {with_article(type(value))}", remedy="Use a dict, from names of terminals."
        )
    found = []
    for name, inner in sorted(value.items()):
        if not isinstance(name, str) or not re.fullmatch("_*[A-Z][_A-Z0-9]*", name):
            raise DefinitionError(f"{name!r} is no name of a terminal", remedy="Use capital letters, as in PERSON.")
        definition = as_definition(inner)
        if not isinstance(definition, JsonSchema | Regex | Gbnf | Grammar):
            raise DefinitionError(
                f"{with_article(type(definition))} cannot stand in a grammar",
                where=name,
                remedy="Put the grammar into the structural tag.",
            )
        found.append((name, definition))
    return tuple(found)


def check_levels(levels: int) -> None:
    """Raise `BudgetExceededError` for grammars within grammars that are too many."""
    if levels > _MOST_LEVELS:
        what = f"grammars are within each other, {_MOST_LEVELS} deep"
        raise BudgetExceededError(what, remedy="Write the rules of inner ones into one grammar.")


def _check_choice(name: str, value: object, choices: tuple[object, ...]) -> None:
    if not isinstance(value, str | bool) or value not in choices:
        remedy = f"Use one of {', '.join(map(repr, choices))}."
        raise DefinitionError(f"{name} is {value!r}", where=name, remedy=remedy)


def _texts(name: str, value: object) -> tuple[str, ...]:
    """Texts, each once. Raises `DefinitionError`."""
    found = () if isinstance(value, str) or not isinstance(value, Iterable) else tuple(dict.fromkeys(value))
    if (not found and value != () and value != []) or not all(isinstance(text, str) and text for text in found):
        raise DefinitionError(f"{name} is {value!r}", remedy="Use a list of texts that are not empty.")
    return found


def _folders(paths: object) -> tuple[str, ...]:
    if isinstance(paths, str | bytes) or not isinstance(paths, Iterable):
        raise DefinitionError(f"import_paths is {paths!r}", remedy="Pass a list of folders.")
    found = tuple(paths)
    if not all(isinstance(path, str | PathLike) for path in found):
        raise DefinitionError(f"import_paths is {found!r}", remedy="Name each folder by a str or a path.")
    return tuple(map(str, found))


def _check_most(name: str, bound: object, what: str, least: int = 0) -> None:
    if not (bound is None or (_is_int(bound) and bound >= least)):
        raise DefinitionError(f"{name} is {bound!r}", remedy=f"Use a number of {what}, {least} or more, or None.")


def _check_whitespace(whitespace: object, bound: object) -> None:
    """That these are options at all; whether a pattern keeps to JSON's whitespace is seen when it is compiled."""
    _check_most("max_whitespace", bound, "characters")
    is_word = isinstance(whitespace, str) and (whitespace in WHITESPACE or not whitespace.isalpha())
    if not is_word and not (_is_int(whitespace) and 0 <= whitespace <= MAX_INDENT):
        raise DefinitionError(
            f"whitespace is {whitespace!r}",
            where="whitespace",
            remedy=f"Use {', '.join(map(repr, WHITESPACE))}, a pattern, or an indentation of 0 to {MAX_INDENT}.",
        )


def _letters(escapes: object) -> str:
    """The letters of escapes, in an order of their own."""
    if not isinstance(escapes, str) or not set(escapes) <= set(_ESCAPED):
        raise DefinitionError(
            f"escapes is {escapes!r}", remedy=f"Use one of {', '.join(map(repr, ESCAPES))}, or letters of {_ESCAPED}."
        )
    return "".join(letter for letter in _ESCAPED if letter in escapes)


def _check_separator(name: str, value: object, *, is_exact: bool) -> None:
    """That a separator is one; whitespace at its beginning stands there only if no gap does.

    Whether a pattern keeps to that is seen when it is compiled.
    """
    if value is not None and not (isinstance(value, str) and value):
        raise DefinitionError(f"{name} is {value!r}", where=name, remedy="Use a pattern, such as ', ' or r' *, *'.")
    if value is not None and value[0] in " \t\n\r" and not is_exact:
        remedy = 'Use whitespace="compact" or an indentation.'
        raise DefinitionError(f"{name} is {value!r}, where whitespace may stand anyway", where=name, remedy=remedy)


def _is_int(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


_DEFINITIONS = Regex, Fsm, JsonSchema, Grammar, Gbnf, StructuralTag  # a union takes time to make


def as_definition(value: object) -> Definition:
    """The definition that ``value`` is, or the `JsonSchema` of a dict, a type or a function.

    A `structgen.migrate.Migrated` stands for its definition. Raises `DefinitionError` for a str and others that could
    mean more than one thing.
    """
    if isinstance(value, _DEFINITIONS) or (isinstance(value, Definition) and not isinstance(value, type)):
        return value
    if isinstance(inner := getattr(value, "definition", None), _DEFINITIONS) and hasattr(value, "changes"):
        return inner
    if value is None or isinstance(value, str | bytes | int | float | PathLike):
        raise DefinitionError(
            f"cannot compile {with_article(type(value))}",
            remedy="Say what it is: Regex(...) for a pattern, JsonSchema(...) for a schema.",
        )
    return JsonSchema(value)


# -- definitions made of others ---------------------------------------------------------------------------


def tag(begin: str, content: object, end: str | Iterable[str] = "") -> StructuralTag:
    """Return the format of a content between two texts. Free text at the end of the content stops at the first
    ``end``.

    Parameters
    ----------
    begin:
        The text before the content.
    content:
        A definition; a str, which stands for itself; or a value that `JsonSchema` takes.
    end:
        The text after the content, or several, of which one follows.

    Raises
    ------
    DefinitionError
        For another content.
    """
    ends = list(end) if isinstance(end, Iterable) and not isinstance(end, str) else end
    return StructuralTag({"type": "tag", "begin": begin, "content": format_of(content), "end": ends})


def sequence(*parts: object) -> StructuralTag:
    """Return the format of several parts, one after the other.

    Parameters
    ----------
    parts:
        Each part as the content of `tag`.

    Raises
    ------
    DefinitionError
        For another part.
    """
    return StructuralTag({"type": "sequence", "elements": [format_of(part) for part in parts]})


def one_of(*options: object) -> StructuralTag:
    """Return the format of exactly one of several options.

    Parameters
    ----------
    options:
        Each option as the content of `tag`.

    Raises
    ------
    DefinitionError
        For another option.
    """
    return StructuralTag({"type": "or", "elements": [format_of(option) for option in options]})


def text(
    *,
    until: str | Iterable[str] = "",
    excludes: Iterable[str] = (),
    max_chars: int | None = None,
    max_tokens: int | None = None,
) -> StructuralTag:
    """Return the format of free text, up to and including the first occurrence of a string of ``until``.

    Parameters
    ----------
    until:
        A string, or several. Empty: the text ends anywhere.
    excludes:
        Strings that the text does not contain.
    max_chars:
        The most characters. None: unbounded.
    max_tokens:
        The most tokens. None: unbounded.
    """
    free: dict[str, Foreign] = {"type": "any_text", "excludes": list(excludes)}
    free |= {name: most for name, most in (("max_chars", max_chars), ("max_tokens", max_tokens)) if most is not None}
    if until == "":
        return StructuralTag(free)
    return tag("", StructuralTag(free), until)


def format_of(value: object) -> Foreign:
    """The format of a structural tag that a value stands for. Raises `DefinitionError`."""
    if isinstance(value, str):
        return {"type": "const_string", "value": value}
    from .json_text import loads

    definition = as_definition(value)
    if isinstance(definition, StructuralTag):
        if definition != StructuralTag(definition.text):
            what = "a structural tag with options of its own cannot be part of another one"
            raise DefinitionError(what, remedy="Give the whole these options.")
        return loads(definition.text)
    if isinstance(definition, Regex):
        dialect = {"dialect": definition.dialect} if definition.dialect != "re" else {}
        return {"type": "regex", "pattern": definition.pattern, "flags": definition.flags, **dialect}
    if isinstance(definition, Gbnf):
        syntax = {"dialect": definition.dialect} if isinstance(definition, Ebnf) else {"syntax": "gbnf"}
        return {"type": "grammar", "grammar": definition.text, "start": definition.start, **syntax}
    if isinstance(definition, Grammar):
        return _format_of_grammar(definition)
    if isinstance(definition, JsonSchema):
        own = [f for f in fields(definition) if f.init and f.name != "schema"]
        options = {f.name: value for f in own if (value := getattr(definition, f.name)) != f.default}
        return {"type": "json_schema", "json_schema": loads(definition.text), "options": options}
    what = f"{with_article(type(definition))} cannot be part of another definition"
    raise DefinitionError(what, remedy="Write it as a Regex or a Gbnf.")


def _format_of_grammar(definition: Grammar) -> Foreign:
    """The format of a grammar in Lark's syntax, whose text is all of it. Raises `UnsupportedError`."""
    marked = definition.marked
    held = definition.definitions or marked.tokens or marked.schemas or marked.grammars
    for other, what in (
        (definition.postlex is not None, "indentation"),
        (held, "special tokens, schemas or other grammars"),
        (not definition.imports.are_known, "imports of files that come neither with structgen nor with Lark"),
    ):
        if other:
            remedy = "Compile it alone; put special tokens and schemas beside it; write out what it imports."
            raise UnsupportedError(f"a Grammar with {what} cannot be part of another definition", remedy=remedy)
    options = {name: getattr(definition, name) for name in LARK_OPTIONS}
    found = {"type": "grammar", "syntax": "lark", "grammar": definition.text, "start": definition.start}
    return {**found, "options": options}


def has_strings(definition: Definition) -> bool:
    """Whether a definition may have JSON's strings."""
    if isinstance(definition, StructuralTag):
        return "json_schema" in definition.text
    return isinstance(definition, JsonSchema) or (isinstance(definition, Grammar) and bool(definition.marked.schemas))
