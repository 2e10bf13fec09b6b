"""The program of a structural tag: the programs of its parts, linked when a text first comes to them.

Each part is lowered by itself into the one program: formats, regexes and GBNF grammars as rules of grammars, schemas
as they are lowered elsewhere; those of one layout share strings, numbers and the like. A state that begins a part which
was not lowered yet is open.
So the first mask takes as long for a hundred tools as for one; that each of them has a text is seen when it is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, TypeGuard

from ...budget import Meter
from ...definitions import Ebnf, Gbnf, Grammar, JsonSchema, Regex, StructuralTag
from ...definitions.labels import ARGUMENTS, CALL
from ...definitions.styles import STYLES
from ...definitions.values import ESCAPES, WHITESPACE
from ...errors import DefinitionError, EmptyLanguageError, StructgenError
from ...system.depth_first import post_order
from ...system.memo import Memo
from ...system.types import Foreign
from ...vocabulary.vocabulary import Vocabulary
from ..automata.edge_lists import of_dfa
from ..gbnf.compiler import NamedTokens, Rules, read_gbnf, refuse_attributes, renumbered, rules_of
from ..gbnf.facts import RuleFacts, establish
from ..gbnf.interiors import Interiors
from ..gbnf.lowering import Lowering
from ..gbnf.syntax import GbnfGrammar
from ..json_schema.compiler import ReadSchema, SharedProgram, is_sure_to_lower, lower_schema, read_schema
from ..json_schema.read.plain import is_plain
from ..patterns.dialects import read as read_regex
from ..patterns.lower import language
from ..programs.ambiguity import check_program
from ..programs.growing import GrowingProgram
from ..programs.program import First, Program, State, TokenSet
from ..programs.tables import Flattener
from .formats import AnyText, AnyTokens, ConstText, Ended, Format, Inner, OneToken, PlainTag, Tagged
from .marks import Marks
from .plain_tags import MOST_LEVELS, SeenTag, look_at
from .reader import read
from .stops import stops_of
from .tokens import TokenNames
from .translation import ExternalTable, bounded_rule, translate
from .work import MOST_LATE, parts_within, work_of


class _Inner(Protocol):
    """A definition of another kind that was read."""

    nullable: bool
    states: int  # of its automata, where they are known
    takes_tokens: bool

    def first(self, linker: Linker) -> First:
        """Lower it into a linker's program."""


class Linker:
    """The program of a structural tag, lowered as a whole or in parts; see `structgen.compiler.programs.growing`.

    With ``keeps_sets`` schemas may leave it to who follows a text that items differ; ``has_sets``: some do.

    Raises
    ------
    DefinitionError, EmptyLanguageError, UnsupportedError, BudgetExceededError, VocabularyError
        As `compile`; but for what is lowered later, which only the budget can stop.
    """

    def __init__(
        self,
        definition: StructuralTag,
        vocabulary: Vocabulary,
        meter: Meter,
        marks: Marks | None = None,
        *,
        keeps_sets: bool = False,
    ) -> None:
        self.meter = meter
        self.keeps_sets, self.has_sets = keeps_sets, False
        self.vocabulary = vocabulary
        self.relaxations: list[str] = []
        self.known: dict[Regex | Gbnf | Grammar, _RulesInner] = {}
        self._definition = definition
        self._layouts: dict[str, JsonSchema] = {}
        self._is_plain: dict[str, bool] = {}
        root = read(definition.unpacked(), meter, self._look if marks is None else None)
        formats = self._formats = list(post_order([root], lambda format_: format_.children))
        if marks is not None:
            marks.make_room(formats)
        self.names = TokenNames(vocabulary, () if marks is None else marks.ids)
        self._inner: dict[Format, _Inner] = {}
        #: Whether formats may be empty: their own marks aside, and with them.
        self._nullable: dict[Format, bool] = {}
        self._unmarked: dict[Format, bool] = {}
        self._marks = marks
        self._note_nullable(formats)
        names = self.names
        read_formats = [each for each in formats if not isinstance(each, PlainTag)]
        free = [each for each in read_formats if isinstance(each, AnyText | AnyTokens)]
        for each in read_formats:
            _check_names(each, names)
        stops = stops_of(root, meter)
        taking = frozenset(each for each, inner in self._inner.items() if inner.takes_tokens)
        self._externals = ExternalTable(names, stops, meter, marks, taking)
        states = {each: inner.states for each, inner in self._inner.items()}
        work = work_of(formats, self._nullable, stops, states, self._externals.options)
        self._lowerings: list[Lowering] = []
        self._first: dict[int, First] = {}
        self._columns: Flattener | None = None  # of the program's beginning
        self._begin(root)
        self.schemas = SharedProgram(self.program, meter)
        self.program.reads_tokens = marks is not None or bool(taking) or _read_tokens(formats, names)
        self.program.counts_tokens = any(each.max_tokens is not None for each in free)
        if self._unmarked[root]:
            self.program.returns.add(self.program.start)
        behind = [inner for each in free for _, inner in each.triggers]
        if large := [part for part in (root, *behind) if work[part] > MOST_LATE]:
            self._lower_whole(root, large)
            self._columns = None

    def _begin(self, root: Format) -> None:
        """Lower what the program begins with: for the process once, as other tools may stand behind the same text."""
        if _is_bounded(root):
            lowering = Lowering(*self._rules(root), self.meter, Interiors(Program()), self)
            lowering.run(0)
        else:
            grammar = translate(root, self._externals, self._is_nullable)
            key = grammar, tuple(each if isinstance(each, TokenSet) else None for each in self._externals.all)
            begun = _BEGUN.get(key)
            if begun is None:
                lowering = Lowering(*_rules_of(grammar, self.meter), self.meter, Interiors(Program()), self)
                lowering.run(0)
                lowering = lowering.continued(self.meter, None)
                begun = _BEGUN[key] = lowering, Flattener(lowering.program, self.meter)
            lowering, self._columns = begun[0].continued(self.meter, self), begun[1]
        self._lowerings.append(lowering)
        self.interiors, self.program = lowering.interiors, lowering.program

    def _lower_whole(self, root: Format, parts: list[Format]) -> None:
        """Lower parts of the program, with all that is lowered by itself in them but schemas."""
        for part in parts:
            if part is not root:
                self.first(self._externals.part(part))
            for each in parts_within(part):
                if isinstance(each, Tagged):
                    self.first(self._externals.ended(each))
                elif each not in self._inner or self._inner[each].states:
                    self.first(self._externals.part(each))
        while ready := [(lowering, found) for lowering in self._lowerings if (found := lowering.ready())]:
            for lowering, states in ready:
                lowering.go_on(states)

    def _look(self, tag: bytes, depth: int) -> SeenTag | None:
        """What is seen of a tag, if its schemas are laid out as `is_plain` takes it."""
        closed = self._definition.additional_properties is not True
        look = look_at(tag, closed=closed) if depth + MOST_LEVELS <= self.meter.budget.depth else None
        return look if look is not None and all(map(self._is_laid_out, look.styles)) else None

    def _is_laid_out(self, style: str) -> bool:
        """Whether schemas in a style are laid out as `is_plain` takes it."""
        if style not in self._is_plain:
            try:
                self._is_plain[style] = _is_usual(
                    self.layout({} if style == "json" else {"style": style}), style != "json"
                )
            except StructgenError:  # told where it stands, when the tag is read
                self._is_plain[style] = False
        return self._is_plain[style]

    def layout(self, options: dict[str, Foreign]) -> JsonSchema:
        """Any schema with the options of one in the tag. Raises `DefinitionError`, and `TypeError` for others."""
        key = repr(options)
        if key not in self._layouts:
            self._layouts[key] = self._definition.schema(True, **options)
        return self._layouts[key]

    def flattener(self, meter: Meter) -> Flattener:
        """The columns of the program, which has not gone on yet."""
        if self._columns is None:
            return Flattener(self.program, meter)
        return self._columns.continued(self.program, meter)

    def located(self, error: StructgenError, format_: Inner) -> StructgenError:
        """An error of a definition of another kind, with its place in the format, or among tools."""
        for tag in self._formats:
            place = self._definition.places.get(tag.label)
            if place is not None and format_.where.startswith(f"{tag.where}/"):
                return error.within(place)
        return error.within(f"{format_.where}/json_schema" if format_.kind == "json_schema" else format_.where)

    def note(self, format_: Inner, relaxed: list[str]) -> None:
        """Note what was relaxed of a schema, with the tool whose arguments it describes, if it is one's."""
        tool = ""
        for tag in self._formats if relaxed and format_.label == ARGUMENTS else ():
            if tag.label.startswith(CALL) and format_.where.startswith(f"{tag.where}/"):
                tool = f"the tool {tag.label.removeprefix(CALL)!r}: "
        self.relaxations += [tool + each for each in relaxed]

    @property
    def open(self) -> list[State]:
        """The states that have no edges yet."""
        return [state for lowering in self._lowerings for state in lowering.open]

    def go_on(self, states: Iterable[State]) -> None:
        """Lower what some open states begin."""
        asked = set(states)
        for lowering in list(self._lowerings):
            lowering.go_on(sorted(asked.intersection(lowering.open)))

    def _lowering(self, part: Format) -> Lowering:
        """The lowering of a part that is no definition of another kind."""
        return self.lowering(*self._rules(part))

    def _rules(self, part: Format) -> tuple[Rules, dict[int, str]]:
        if _is_bounded(part):
            return {0: bounded_rule(part, self._externals, self.meter)}, {0: part.where}
        return _rules_of(translate(part, self._externals, self._is_nullable), self.meter)

    def _is_nullable(self, format_: Format) -> bool:
        """Whether the empty text is among its texts, its own marks aside."""
        if format_ not in self._nullable:
            new = post_order([format_], lambda each: (c for c in each.children if c not in self._nullable))
            self._note_nullable(new)
        return self._nullable[format_]

    def _note_nullable(self, formats: Iterable[Format]) -> None:
        """Note it for formats of which all that is within comes first; definitions of other kinds are read."""
        for each in formats:
            if isinstance(each, Inner):
                self._inner[each] = inner = _read_inner(each, self._definition, self)
                self._unmarked[each] = inner.nullable
            self._nullable[each] = each.is_nullable(self._unmarked)
            self._unmarked[each] = self._nullable[each] and not (each.label and self._marks is not None)

    def lowering(self, rules: Rules, names: dict[int, str]) -> Lowering:
        """A lowering of some rules into the program."""
        found = Lowering(rules, names, self.meter, self.interiors, self)
        self._lowerings.append(found)
        return found

    # -- externals of grammars -------------------------------------------------------------------------

    def token(self, tokens: TokenSet) -> int:
        """The number that tokens have as an external."""
        return self._externals.token(tokens)

    def tokens(self, number: int) -> TokenSet | None:
        """The tokens that an external is one of; None for a part."""
        external = self._externals.all[number]
        return external if isinstance(external, TokenSet) else None

    def waits(self, number: int) -> bool:
        """Whether a part is not lowered yet."""
        return number not in self._first

    def first(self, number: int) -> First:
        """What the first state of a part does, which is lowered now, if it was not before."""
        found = self._first.get(number)
        if found is None:
            part = self._externals.all[number]
            assert isinstance(part, Format)
            inner = self._inner.get(part)
            found = inner.first(self) if inner is not None else self._lowering(part).first(0)
            self._first[number] = found
        return found


#: Rules of grammars that come again, as free text with the same triggers does: so many edges, of 100 bytes, in all.
_KNOWN: Memo[GbnfGrammar, tuple[Rules, dict[int, str]]] = Memo(50_000, lambda known: 1 + _edges(known[0]))


def _rules_of(grammar: GbnfGrammar, meter: Meter) -> tuple[Rules, dict[int, str]]:
    """The automaton of a grammar's rule, made once for the process."""
    known = _KNOWN.get(grammar)
    if known is None:
        known = _KNOWN[grammar] = rules_of(establish(grammar, meter), 0, meter)
    meter.check_states(sum(len(rule.edges) for rule in known[0].values()), "the automata of the rules")
    return known


def _edges(rules: Rules) -> int:
    return sum(len(edges) for rule in rules.values() for edges in rule.edges)


def _is_bounded(part: Format) -> TypeGuard[Ended | AnyText | AnyTokens]:
    return isinstance(part, Ended) or (isinstance(part, AnyText | AnyTokens) and part.is_bounded)


#: What programs begin with, by the grammar and the tokens in it, as far as it is lowered without any part.
_BEGUN: Memo[tuple[GbnfGrammar, tuple[TokenSet | None, ...]], tuple[Lowering, Flattener]] = Memo(
    50_000, lambda begun: 1 + sum(map(len, begun[0].program.edges))
)


def _check_names(format_: Format, names: TokenNames) -> None:
    """Raise `VocabularyError` for tokens that the vocabulary lacks, which may be asked for later."""
    if isinstance(format_, OneToken):
        names.tokens(format_)
    elif isinstance(format_, AnyTokens):
        triggers = (trigger for trigger, _ in format_.triggers)
        names.tokens(OneToken(format_.where, (*format_.excludes, *triggers)))


def _read_tokens(formats: list[Format], names: TokenNames) -> bool:
    """Whether some tokens are taken as such in some formats."""
    texts: list[str] = []
    styles: set[str] = set()
    for each in formats:
        if isinstance(each, PlainTag):
            texts.append(each.texts)
            styles |= each.styles
        elif isinstance(each, ConstText):
            texts.append(each.value)
        elif isinstance(each, AnyText):
            texts += (trigger for trigger, _ in each.triggers)
        elif isinstance(each, Inner):
            styles.add(each.options.get("style", "json"))
        elif isinstance(each, OneToken | AnyTokens):
            return True
    return names.has("\n".join([*texts, *(text for style in styles & STYLES.keys() for text in STYLES[style].texts)]))


# -- definitions of other kinds ------------------------------------------------------------------------------


class _RulesInner:
    """A regex or a GBNF grammar, as rules of which the first is the start."""

    def __init__(
        self, rules: Rules, names: dict[int, str], start: int, nullable: bool, tokens: Sequence[TokenSet] = ()
    ) -> None:
        self._rules = rules
        self._tokens = tokens  # the rules' externals
        self.takes_tokens = bool(tokens)
        self._names = names
        self._start = start
        self._found: First | None = None
        self.nullable = nullable
        self.states = sum(len(rule.edges) for rule in rules.values())

    def first(self, linker: Linker) -> First:
        """Lower it into a linker's program, once."""
        if self._found is None:
            rules = renumbered(self._rules, [*map(linker.token, self._tokens)]) if self._tokens else self._rules
            self._found = linker.lowering(rules, self._names).first(self._start)
        return self._found


class _SchemaInner:
    """A schema, which is read now unless one look says that it has a value that can be written."""

    def __init__(self, format_: Inner, definition: StructuralTag, linker: Linker) -> None:
        self._format = format_
        self._definition = definition
        self._program: Program | None = None
        self._schema: ReadSchema | None = None
        self.nullable = False
        self.states = 0
        tagged = self.takes_tokens = format_.options.get("style", "json") != "json"
        options = linker.layout(format_.options)
        closed = options.additional_properties is not True
        if not _is_usual(options, tagged) or not is_plain(format_.value, tagged=tagged, closed=closed):
            self._schema = self._read(linker)
            known = options.whitespace in WHITESPACE
            if tagged or not known or not is_sure_to_lower(self._schema, linker.meter):
                self._program = lower_schema(self._schema, linker.meter, keeps_sets=linker.keeps_sets)
                linker.has_sets |= bool(self._program.distinct)
                linker.note(self._format, self._schema.relaxed)
                self.nullable = self._program.start in self._program.returns
        elif tagged:
            self.nullable = not format_.value.get("required")

    def _read(self, linker: Linker) -> ReadSchema:
        value, options = self._format.value, self._format.options
        definition = self._definition.schema(value, **options)
        try:
            schema = read_schema(definition, linker.meter, linker.names)
        except DefinitionError as error:
            if not definition.lenient or self._format.label != ARGUMENTS:
                raise
            definition = self._definition.schema({"type": "object"}, **options)
            schema = read_schema(definition, linker.meter, linker.names)
            schema.relaxed.append(f"any object is taken, since {error}")
        schema.warn()
        linker.note(self._format, schema.relaxed)
        return schema

    def first(self, linker: Linker) -> First:
        """Lower it into a linker's program."""
        if self._program is None:
            return linker.schemas.first(self._schema or self._read(linker))
        return linker.program.first(linker.program.append(self._program))


def _is_usual(layout: JsonSchema, tagged: bool) -> bool:
    """Whether schemas are laid out as `is_plain` takes it.

    What is plain in tags has strings without a "<", which hold none of excluded texts that have one.
    """
    excludes = all(tagged and "<" in each for each in layout.excludes)
    spelled = layout.escapes in ESCAPES
    is_plain = layout.property_order == "schema" and not layout.unique_names
    return layout.whitespace in WHITESPACE and is_plain and spelled and excludes


def _read_inner(format_: Inner, definition: StructuralTag, linker: Linker) -> _Inner:
    """Read a definition of another kind. Raises its errors, with its place before theirs."""
    try:
        if format_.kind == "regex":
            return _known(Regex(format_.value, **format_.options), linker)
        if format_.kind == "gbnf":
            kind = Ebnf if "dialect" in format_.options else Gbnf
            return _known(kind(format_.value, **format_.options), linker)
        if format_.kind == "lark":
            return _known(Grammar(format_.value, **format_.options), linker)
        return _SchemaInner(format_, definition, linker)
    except TypeError as error:
        raise DefinitionError(
            f"the options {format_.options} are not known", where=format_.where, remedy="Leave them out."
        ) from error
    except StructgenError as error:
        raise linker.located(error, format_) from error


def _known(definition: Regex | Gbnf | Grammar, linker: Linker) -> _RulesInner:
    """What a definition is lowered to, once in a linker."""
    if definition not in linker.known:
        if isinstance(definition, Regex):
            linker.known[definition] = _regex(definition, linker.meter)
        else:
            linker.known[definition] = _grammar(definition, linker)
    return linker.known[definition]


#: Grammars that come again: their automata, which of them is the start, whether it is nullable, and named tokens.
_GRAMMARS: Memo[Gbnf | Grammar, tuple[Rules, dict[int, str], int, bool, tuple[str, ...]]] = Memo(
    50_000, lambda known: 1 + _edges(known[0])
)


def _grammar(definition: Gbnf | Grammar, linker: Linker) -> _RulesInner:
    """Build the automata of a grammar. What it can be read in is looked for by itself: nothing else recurs."""
    known = _GRAMMARS.get(definition)
    if known is None:
        facts, start = _read_grammar(definition, linker.meter)
        rules, names = rules_of(facts, start, linker.meter)
        marks = facts.document.tokens
        alone = Lowering(rules, names, linker.meter, externals=_named_tokens(marks, linker)).run(start)
        check_program(alone, linker.vocabulary, linker.meter)
        nullable = facts.nullable(facts.document.rules[start].root)
        known = _GRAMMARS[definition] = rules, names, start, nullable, marks
    linker.meter.check_states(sum(len(rule.edges) for rule in known[0].values()), "the automata of the rules")
    rules, names, start, nullable, marks = known
    named = _named_tokens(marks, linker)
    tokens = () if named is None else [*map(linker.names.among, named.sets)]
    return _RulesInner(rules, names, start, nullable, tokens)


def _named_tokens(marks: tuple[str, ...], linker: Linker) -> NamedTokens | None:
    """What a grammar's externals are; None where it has none."""
    return NamedTokens(marks, linker.vocabulary, linker.meter) if marks else None


def _read_grammar(definition: Gbnf | Grammar, meter: Meter) -> tuple[RuleFacts, int]:
    """What holds of the rules of a grammar, and which is the start."""
    if isinstance(definition, Gbnf):
        found = read_gbnf(definition, meter)
        refuse_attributes(found[0].document)
        return found
    from ..scannerless.lowering import lower_grammar

    return establish(lower_grammar(definition, meter), meter), 0


def _regex(regex: Regex, meter: Meter) -> _RulesInner:
    dfa = language(read_regex(regex, meter), meter, count=False)
    if not dfa.states:
        raise EmptyLanguageError("the pattern matches no text", remedy="Change the pattern.")
    return _RulesInner({0: of_dfa(dfa, meter)}, {0: "regex"}, 0, bool(dfa.accepting[dfa.start]))


def whole_program(
    definition: StructuralTag,
    vocabulary: Vocabulary,
    meter: Meter,
    marks: Marks | None = None,
    *,
    keeps_sets: bool = False,
) -> tuple[Program, tuple[str, ...]]:
    """The program with all parts lowered, with marks if there are some, and what was relaxed.

    Raises the errors of `Linker`.
    """
    linker = Linker(definition, vocabulary, meter, marks, keeps_sets=keeps_sets)
    while linker.open:
        linker.go_on(linker.open)
    return linker.program, tuple(dict.fromkeys(linker.relaxations))


def begin_program(
    definition: StructuralTag,
    vocabulary: Vocabulary,
    meter: Meter,
    marks: Marks | None = None,
    *,
    keeps_sets: bool = False,
) -> tuple[GrowingProgram | None, tuple[str, ...]]:
    """The program, whose parts are lowered when a text first comes to them; with marks, if there are some.

    None where the items of some arrays must differ, which the program leaves to who follows a text.
    """
    has_sets = False
    relaxations: dict[str, None] = {}

    def begin() -> Linker:
        nonlocal has_sets
        linker = Linker(definition, vocabulary, meter, marks, keeps_sets=keeps_sets)
        has_sets = linker.has_sets
        relaxations.update(dict.fromkeys(linker.relaxations))
        return linker

    growing = GrowingProgram(begin, meter)
    return None if has_sets else growing, tuple(relaxations)
