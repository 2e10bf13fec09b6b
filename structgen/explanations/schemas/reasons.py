"""Which keywords of a JSON Schema stand against a text that breaks off.

For each value that the text breaks off within, the subschemas that apply to it are known, as in any validator. A
keyword alone is asked whether it takes the value's text so far (`probes`). Of alternatives all must be dead, each
for reasons of its own. What no keyword refuses alone, some refuse together: of these a minimal set is looked for by
leaving out one after the other. What is found nowhere is looked for in the schema as a whole: the fewest keywords
that can be taken out so that the text may go on. Beyond the bounds below nothing is guessed.
"""

from __future__ import annotations

import codecs
import time
from collections.abc import Collection, Generator, Iterable, Sequence
from itertools import chain
from typing import NamedTuple, TypeAlias

from ...compiler.json_schema.read.document import SchemaId
from ..values import Reason
from .json_places import JsonPlace, escaped
from .keywords import KeywordTexts
from .pieces import TextPieces
from .probes import DEEP, DEEP_FIELDS, FIELDS, Atom, SchemaProbes
from .subschemas import ApplyingSubschemas, Choice

#: Values that are looked at with the subschemas that apply to them, alternatives of one place, keywords that are
#: taken together, conflicts at one place; and seconds.
_MOST_GOALS, _MOST_BRANCHES, _MOST_TOGETHER, _MOST_CONFLICTS, _SECONDS = 2_000, 64, 48, 4, 0.8

_Found: TypeAlias = "tuple[Reason, ...]"
_Asked: TypeAlias = "tuple[_Goal, JsonPlace, bool]"
_Work: TypeAlias = "Generator[_Asked, _Found, _Found]"

_NO_CHOICES: frozenset[Choice] = frozenset()


class _Goal(NamedTuple):
    """Subschemas that apply to a value together; choices among them that were made; whether these are all of them."""

    schemas: frozenset[SchemaId]
    made: frozenset[Choice] = _NO_CHOICES
    is_all: bool = False


#: Fields that say which members there are, in which order.
_MEMBERS = {"properties", "required", "additional_properties", "pattern_properties", "dependent_required"}

#: Fields of any value.
_FIELDS = frozenset().union(*FIELDS.values(), *DEEP_FIELDS.values())


class OutOfBounds(Exception):
    """The bounds of this module were reached."""


class SchemaReasons:
    """Looks for the reasons why a text can't go on.

    Parameters
    ----------
    probes:
        The schema.
    data:
        The text, the byte included that it dies at.
    ended:
        Whether it is not a byte that it dies at, but its end.
    """

    def __init__(self, probes: SchemaProbes, keywords: KeywordTexts, data: bytes, *, ended: bool = False) -> None:
        self._probes, self._keywords = probes, keywords
        self._data, self._ended = data, ended
        self._pieces = TextPieces(probes, data, ended=ended)
        self._json = self._pieces.json
        self._subschemas = ApplyingSubschemas(probes)
        self._known: dict[tuple[_Goal, int], _Found] = {}
        self._goals = 0
        self._deadline = time.monotonic() + _SECONDS
        self._met: dict[Atom, str] = {}  # with the value that it was met at
        self._schemas_of: dict[int, list[SchemaId]] = {}  # by values that the text breaks off within
        self.notes: list[str] = []

    # -- the whole ---------------------------------------------------------------------------------------

    def find(self) -> _Found:
        """The reasons; all of them must go for the text to go on."""
        found = self._of_json()
        if found:
            return found
        root = self._json.root
        if root is None:  # not even a value's first byte
            return ()
        try:
            found = self._solved(_Goal(frozenset({self._probes.root}), is_all=True), root)
            if not found:
                self._meet_pending()
            return found or self._of_order() or self._of_length() or self._of_names() or self._by_leaving_out()
        except OutOfBounds:
            self.notes.append("the schema has more alternatives than were looked at; the reason may be among them")
            return found

    def writing(self) -> str:
        """What was being written where the text breaks off."""
        if not self._json.path:
            return "the beginning of the text"
        place = self._json.path[-1]
        if place.kind == "object" and place.end < 0:
            if len(place.names) > len(place.children):
                return f"the value of {self._pieces.path(place)}/{escaped(place.names[-1])}"
            what = "a member's name" if place.name_start >= 0 else "the members"
            return f"{what} of {self._pieces.path(place) or 'the root'}"
        said = self._keywords.summary(self._schemas_of.get(id(place), []), place.kind)
        return f"the value of {self._pieces.path(place) or 'the root'}" + (f": {said}" if said else "")

    def _of_json(self) -> _Found:
        """What stands against the text whatever the schema says: syntax, and how values are written."""
        if self._written(""):
            return ()
        if self._ended:
            return (Reason("incomplete", (), "the JSON text breaks off", self._pieces.innermost()),)
        if self._json.length < len(self._data) or not _is_utf8(self._data):
            return (Reason("json", (), "no JSON text (RFC 8259) goes on so", self._pieces.innermost()),)
        definition = self._probes.definition
        separators = [name for name in ("item_separator", "key_separator") if getattr(definition, name) is not None]
        for option in ("whitespace", *separators, "escapes", "excludes"):
            if self._written(option):
                what = f"{option}={getattr(definition, option)!r} has it written otherwise"
                return (Reason("option", (option,), what, self._pieces.innermost()),)
        if self._json.root is None or self._json.is_whole:
            return (Reason("json", (), "no whitespace stands before a text or behind it", ""),)
        return (Reason("option", (), "the text is JSON, but structgen writes it otherwise", self._pieces.innermost()),)

    def _written(self, option: str) -> bool:
        """Whether some JSON value is written so, or with another value of an option."""
        return self._probes.written(self._data, whole=self._ended, deepest=self._json.deepest, option=option)

    def _by_leaving_out(self) -> _Found:
        """The fewest keywords that can be taken out of the whole schema so that the text may go on."""
        left = list(self._met)
        if not left or not self._revived(left):
            return ()
        for atom in [*left]:
            if len(left) > 1 and self._revived(rest := [each for each in left if each != atom]):
                left = rest
        return (self._conflict(left, self._met[left[0]]),)

    def _meet_pending(self) -> None:
        """Note the keywords of a member whose name is over, and that may have no value at all."""
        place = self._json.path[-1]
        if len(place.names) > len(place.children):
            name, around = place.names[-1], self._schemas_of.get(id(place), [])
            schemas = self._subschemas.applied(
                frozenset(child for each in around for child in self._subschemas.of_member(each, name))
            )
            path = f"{self._pieces.path(place)}/{escaped(name)}"
            self._met |= {Atom(each, field): path for each in schemas for field in _FIELDS & self._probes.said[each]}

    def _of_order(self) -> _Found:
        """Whether it is the order of members alone."""
        if self._probes.definition.property_order == "any" or not self._revived((), "property_order"):
            return ()
        return (self._keywords.order(self._pieces.innermost()),)

    def _of_length(self) -> _Found:
        """Whether it is the length of arrays, strings or numbers that no keyword bounds."""
        for option, of in (("max_items", "an array"), ("max_string_length", "a string"), ("max_digits", "a number")):
            most = getattr(self._probes, option)
            if most is not None and self._revived((), option):
                what = f"{of} that no keyword bounds is no longer ({option}={most})"
                return (Reason("option", (option,), what, self._pieces.innermost()),)
        return ()

    def _of_names(self) -> _Found:
        """Whether it is a name that comes twice."""
        if not self._probes.unique_names or not self._revived((), "unique_names"):
            return ()
        what = "an object has no name twice (unique_names=True)"
        return (Reason("option", ("unique_names",), what, self._pieces.innermost()),)

    def _revived(self, atoms: Iterable[Atom], option: str = "") -> bool:
        self._check_time()
        return self._probes.revived(frozenset(atoms), self._data, whole=self._ended, option=option)

    def _check_time(self) -> None:
        if time.monotonic() > self._deadline:
            raise OutOfBounds

    # -- values, without recursion ------------------------------------------------------------------------

    def _solved(self, goal: _Goal, place: JsonPlace) -> _Found:
        """Work through a value and all below; each is a generator that asks for what it needs of others."""
        stack: list[tuple[tuple[_Goal, int], _Work]] = [((goal, id(place)), self._value(goal, place, True))]
        answer: _Found | None = None
        while stack:
            key, work = stack[-1]
            try:
                goal, place, is_trusted = next(work) if answer is None else work.send(answer)
            except StopIteration as stop:
                stack.pop()
                answer = self._known[key] = stop.value
                continue
            asked = goal, id(place)
            answer = self._known.get(asked)
            if answer is None:
                self._goals += 1
                if self._goals > _MOST_GOALS:
                    raise OutOfBounds
                self._check_time()
                self._known[asked] = ()  # for what asks for itself
                stack.append((asked, self._value(goal, place, is_trusted)))
        return answer or ()

    def _value(self, goal: _Goal, place: JsonPlace, is_trusted: bool) -> _Work:
        """What stands against a value; ``is_trusted`` where all but the last byte is known to be taken."""
        schemas = self._subschemas.applied(goal.schemas)
        path = self._pieces.path(place)
        found = [
            Reason("keyword", (self._keywords.pointer(Atom(each, "never")),), "no value may stand here", path)
            for each in schemas
            if self._probes.schemas[each].never
        ]
        if goal.is_all and is_trusted and not goal.made:
            self._schemas_of.setdefault(id(place), schemas)
        alone = self._alone(self._atoms(schemas, place, is_trusted), place)
        found += (reason for reason, _ in alone)
        choices = self._subschemas.choices(schemas, goal.made)
        is_all = goal.is_all and len(choices) == 1 and not any(self._probes.said[each] & _MEMBERS for each in schemas)
        for each, field in choices:
            goals = [_Goal(frozenset({branch}), is_all=is_all) for branch in self._subschemas.of(each, field)]
            branches = yield from self._branches(goals, place)
            if branches:
                if goal.is_all:
                    together = (
                        self._subschemas.applied(goal.schemas | {branch}) for branch in self._subschemas.of(each, field)
                    )
                    orders = (self._disordered(schemas, place) for schemas in together)
                    branches = [tuple(dict.fromkeys(both)) for both in map(chain, branches, orders)]
                found.append(self._alternatives(each, field, branches, path))
                goal = goal._replace(made=goal.made | {(each, field)})
        for child in self._children(place, is_trusted):
            found += yield self._child_goal(schemas, goal, place, child), child, is_trusted
        left = [atom for atom in self._atoms(schemas, place, is_trusted) if atom not in {dead for _, dead in alone}]
        found += yield from self._deeper(schemas, left, goal, place)
        if not found:
            found += yield from self._in_context(schemas, goal, place)
        return tuple(dict.fromkeys(found))

    def _deeper(self, schemas: list[SchemaId], left: list[Atom], goal: _Goal, place: JsonPlace) -> _Work:
        """What stands against a value of keywords that look into it, and of several together."""
        deep = self._deep_atoms(schemas, place, goal)
        found: list[Reason] = []
        named: set[Atom] = set()
        for reason, atom in self._alone(deep, place):
            deep.remove(atom)
            found.append((yield from self._branch_of_if(reason, atom, place)) if atom.field == "if_" else reason)
        for together in ([*left], [*left, *deep]) if deep else ([*left],):
            for _ in range(_MOST_CONFLICTS):
                conflict = self._minimal(together, place)
                if not conflict:
                    break
                found.append(self._conflict(conflict, self._pieces.path(place)))
                named |= set(conflict)
                together = [atom for atom in together if atom not in conflict]
        if goal.is_all:
            found += self._disordered(schemas, place, named)
        return tuple(found)

    def _disordered(self, schemas: list[SchemaId], place: JsonPlace, named: Collection[Atom] = ()) -> _Found:
        """What stands against the order of an object's members, but for keywords that are dead alone or named."""
        if place.kind != "object" or self._probes.definition.property_order == "any":
            return ()
        ordering, path = self._ordering(schemas), self._pieces.path(place)
        if ordering and not self._pieces.takes(ordering, place, ordered=True):
            return (self._keywords.order(path),)
        atoms = (atom for atom in self._atoms(schemas, place, is_trusted=True) if atom not in named)
        left = [atom for atom in atoms if self._pieces.takes([atom], place)]
        conflict = self._minimal([*ordering, *left], place, ordered=True)
        needed = [atom for atom in conflict if atom.field != "properties"]
        if needed:
            return (self._conflict(needed, path, place.names),)
        return (self._keywords.order(path),) if conflict else ()

    def _in_context(self, schemas: list[SchemaId], goal: _Goal, place: JsonPlace) -> _Work:
        """What stands against each alternative of a choice together with what applies beside it."""
        for each, field in self._subschemas.choices(schemas, goal.made):
            made = goal.made | {(each, field)}
            goals = [_Goal(goal.schemas | {b}, made, goal.is_all) for b in self._subschemas.of(each, field)]
            branches = yield from self._branches(goals, place)
            if branches:
                return (self._alternatives(each, field, branches, self._pieces.path(place)),)
        return ()

    def _branches(self, goals: list[_Goal], place: JsonPlace) -> Generator[_Asked, _Found, list[_Found]]:
        """What stands against each of some alternatives; nothing where one of them is left."""
        found: list[_Found] = []
        if len(goals) > _MOST_BRANCHES:
            self.notes.append(f"a choice among {len(goals)} alternatives was not looked into")
            return found
        for goal in goals:
            reasons = yield goal, place, False
            if not reasons:
                return []
            found.append(reasons)
        return found

    def _branch_of_if(self, reason: Reason, atom: Atom, place: JsonPlace) -> Generator[_Asked, _Found, Reason]:
        """What stands against a value in ``then`` or ``else``: in both where it is not decided which one counts."""
        schema = self._probes.schemas[atom.schema]
        for fields in (("then",), ("else_",), ("then", "else_")):
            goals = [_Goal(frozenset({b})) for field in fields if (b := getattr(schema, field)) is not None]
            branches = yield from self._branches(goals, place)
            if branches and self._pieces.takes([atom._replace(part=" ".join(fields))], place):
                where = tuple(self._keywords.pointer(Atom(atom.schema, field)) for field in fields)
                return Reason("alternatives", where, "as 'if' has it", self._pieces.path(place), tuple(branches))
        return reason

    # -- which subschemas apply ---------------------------------------------------------------------------

    def _children(self, place: JsonPlace, is_trusted: bool) -> list[JsonPlace]:
        if not is_trusted:
            return place.children
        return [each for each in place.children[-1:] if self._pieces.is_broken(each)]

    def _child_goal(self, schemas: list[SchemaId], goal: _Goal, place: JsonPlace, child: JsonPlace) -> _Goal:
        """The subschemas that apply to a member's value, or to an item."""
        at = next(i for i, each in enumerate(place.children) if each is child)
        self._pieces.enter(place, at)
        if place.kind == "object":
            found = [each for schema in schemas for each in self._subschemas.of_member(schema, place.names[at])]
        else:
            found = [each for schema in schemas for each in self._subschemas.of_item(schema, at)]
        return _Goal(frozenset(found), is_all=goal.is_all)

    # -- keywords -----------------------------------------------------------------------------------------

    def _atoms(self, schemas: Iterable[SchemaId], place: JsonPlace, is_trusted: bool) -> list[Atom]:
        """The keywords that say something of a value; where what is in it breaks off, those that look into it."""
        last = place.children[-1] if place.children else None
        is_within = is_trusted and last is not None and last.end < 0 and self._pieces.is_broken(last)
        found = [
            atom
            for each in schemas
            for field in FIELDS[place.kind]
            if field in self._probes.said[each] and (field in DEEP or not is_within)
            for atom in self._probes.parts(each, field)
        ]
        self._met = {**dict.fromkeys(found, self._pieces.path(place)), **self._met}
        return found

    def _deep_atoms(self, schemas: Iterable[SchemaId], place: JsonPlace, goal: _Goal) -> list[Atom]:
        """Those that look into a value, or at it through subschemas; not choices that were made."""
        found = [
            Atom(each, field)
            for each in schemas
            for field in DEEP_FIELDS[place.kind]
            if field in self._probes.said[each] and (each, field) not in goal.made
        ]
        self._met = {**dict.fromkeys(found, self._pieces.path(place)), **self._met}
        return found

    def _ordering(self, schemas: Iterable[SchemaId]) -> list[Atom]:
        return [Atom(each, "properties") for each in schemas if "properties" in self._probes.said[each]]

    def _alone(self, atoms: list[Atom], place: JsonPlace) -> list[tuple[Reason, Atom]]:
        """The keywords that each alone refuse a value, whatever the order of members."""
        path = self._pieces.path(place)
        number = self._pieces.text(place) if place.kind == "number" else b""
        return [
            (self._keywords.reason(atom, path, place.names, number), atom)
            for atom in atoms
            if not self._pieces.takes([atom], place)
            and (not atom.field.startswith("unevaluated") or self._pieces.takes([atom._replace(part="unsaid")], place))
        ]

    def _minimal(self, atoms: list[Atom], place: JsonPlace, *, ordered: bool = False) -> list[Atom]:
        """A minimal set of keywords that together refuse a value; none where all together take it."""
        left = list(dict.fromkeys(atoms))
        if not 2 <= len(left) <= _MOST_TOGETHER or self._pieces.takes(left, place, ordered=ordered):
            return []
        for atom in [*left]:
            self._check_time()
            rest = [each for each in left if each != atom]
            if rest and not self._pieces.takes(rest, place, ordered=ordered):
                left = rest
        return left

    def _conflict(self, atoms: list[Atom], path: str, names: Sequence[str] = ()) -> Reason:
        if len(atoms) == 1:
            return self._keywords.reason(atoms[0], path, names)
        reasons = [self._keywords.reason(atom, path, names) for atom in atoms]
        where = tuple(dict.fromkeys(place for reason in reasons for place in reason.where))
        what = "no value goes on so under all of these together: " + "; ".join(reason.what for reason in reasons)
        return Reason("conflict", where, what, path)

    def _alternatives(self, schema: SchemaId, field: str, branches: list[_Found], path: str) -> Reason:
        where = self._keywords.pointer(Atom(schema, field))
        what = f"none of the {len(branches)} alternatives is left" if len(branches) > 1 else "its alternative is dead"
        return Reason("alternatives", (where,), what, path, tuple(branches))


def _is_utf8(data: bytes) -> bool:
    """Whether a text is UTF-8, but for a character that is cut off at its end."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(data)
    except UnicodeDecodeError:
        return False
    return True
