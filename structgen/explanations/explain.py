"""`explain`: why a guide or an index refuses a token or a text."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ..correction.candidates import following
from ..correction.endings import near_ending, shortest_ending
from ..definitions import Definition, as_definition
from ..definitions.canonical import definition_of
from ..errors import ArgumentError, StructgenError
from ..runtime.core.machine import Config
from ..runtime.guide.guide import Guide
from ..runtime.index.index import Index
from ..system.byteranges import describe
from ..system.types import Foreign
from .values import Explanation, Findings, Reason

#: Bytes of a text whose reasons are looked for, and strings that are listed of what may come instead.
_LONGEST, _MOST_LISTED = 1 << 18, 16

#: Byte states that are looked at for an ending: those of grammars take longer.
_FEW_STATES, _SOME_STATES = 16, 256


class _Asked(NamedTuple):
    """What is asked about: the text before it, its bytes, whether it is also to end there, a token's id."""

    before: bytes
    data: bytes
    ends: bool
    token_id: int | None


def explain(
    guide_or_index: Guide | Index,
    asked: int | str | bytes,
    *,
    before: str | bytes = b"",
    definition: object = None,
    completion: bool | None = None,
) -> Explanation:
    """Explain why a token or a text is refused.

    Parameters
    ----------
    guide_or_index:
        A guide, to ask about its continuation; or an index, to ask about a whole text or a first token.
    asked:
        A token id, or a text.
    before:
        Text before ``asked``, where an index is given.
    definition:
        The definition of the index. Only needed where the index cannot tell, as for an `Fsm`.
    completion:
        Whether to find the shortest ending. None: only one that is near. True: however far it is.

    Returns
    -------
    Explanation
        The verdict always agrees with the guide. Searches are bounded; ``notes`` lists what was left out.

    Raises
    ------
    ArgumentError
        For anything but a token id or a text, and for a ``definition`` that is not the index's.
    TokenIdError
        For an id outside the vocabulary.
    """
    guide = guide_or_index if isinstance(guide_or_index, Guide) else None
    index = guide.index if guide is not None else guide_or_index
    if not isinstance(index, Index):
        raise ArgumentError(f"a guide or an index can be asked, got {type(index).__name__}")
    question = _question(guide, index, asked, _bytes(before))
    if guide is not None and guide.config is None:
        return _after_the_end(index, question)
    machine, start = index.machine, _behind(index, question.before) if guide is None else guide.index_config
    if start is None:
        return explain(index, before, definition=definition, completion=completion)
    is_accepted, died_at, config = _verdict(guide, index, start, question)
    data = question.before + question.data
    consumed = len(data) if died_at is None else len(question.before) + died_at
    findings = Findings()
    if not is_accepted:
        findings = _findings(_Refused(guide, index, question, data, consumed, config, died_at, definition))
    line, column = _line_and_column(data[:consumed])
    ending = _ending(index, config, completion)
    return Explanation(
        accepted=is_accepted,
        text=data.decode("utf-8", "replace"),
        consumed=consumed,
        token_id=question.token_id,
        died_at=died_at,
        line=line,
        column=column,
        writing=findings.writing,
        reasons=findings.reasons,
        expected=_expected(index, config),
        can_end=machine.is_accepting(config),
        completion=None if ending is None else ending.decode("utf-8", "replace"),
        completion_tokens=_tokens(index, ending),
        other_tokens=None if is_accepted else _other_tokens(index, start, question),
        notes=findings.notes,
        data=data,
    )


# -- the verdict ----------------------------------------------------------------------------------------------


def _bytes(text: str | bytes) -> bytes:
    try:
        return text.encode("utf-8", "surrogateescape") if isinstance(text, str) else bytes(text)
    except UnicodeEncodeError as error:
        what = "the text has half of a character (a lone surrogate), which no UTF-8 holds"
        raise ArgumentError(what, where=f"character {error.start}", remedy="Pass bytes.") from None


def _behind(index: Index, data: bytes) -> Config | None:
    """The configuration of an index behind a text; None where it takes no such text."""
    consumed, config = index.machine.reach(index.machine.start, data)
    return config if consumed == len(data) else None


def _question(guide: Guide | None, index: Index, asked: object, before: bytes) -> _Asked:
    if guide is not None:
        if before:
            raise ArgumentError("a guide has its text already", remedy="Leave before= out, or ask its index.")
        before = _text_of(guide)
    if isinstance(asked, str | bytes):
        return _Asked(before, _bytes(asked), guide is None, None)
    if isinstance(asked, bool) or not hasattr(asked, "__index__"):
        raise ArgumentError(f"a token id or a text is explained, got {type(asked).__name__}")
    token_id = asked.__index__()
    data = index.vocabulary.token(token_id) or b""
    return _Asked(before, data, token_id in index.vocabulary.eos_ids, token_id)


def _text_of(guide: Guide) -> bytes:
    """The bytes of a guide's text; names of special tokens stand for them."""
    vocabulary = guide.index.vocabulary
    names = {token_id: name.encode() for name, token_id in vocabulary.special_tokens.items()}
    return b"".join(vocabulary.token(t) or names.get(t, b"") for t in guide.tokens())


def _verdict(guide: Guide | None, index: Index, config: Config, asked: _Asked) -> tuple[bool, int | None, Config]:
    """Whether it is accepted; which byte is refused, None for none; the configuration before that."""
    if asked.token_id is not None and _allows(guide, index, config, asked.token_id):
        return True, None, index.machine.advance(config, asked.token_id) or config
    consumed, config = index.machine.reach(config, asked.data)
    if consumed < len(asked.data):
        return False, consumed, config
    if asked.token_id is None:
        return not asked.ends or index.machine.is_accepting(config), None, config
    return False, None, config


def _allows(guide: Guide | None, index: Index, config: Config, token_id: int) -> bool:
    if guide is not None:
        return guide.allows(token_id)
    if index.machine.advance(config, token_id) is not None:
        return True
    return token_id in index.vocabulary.eos_ids and index.machine.is_accepting(config)


def _after_the_end(index: Index, asked: _Asked) -> Explanation:
    """What is asked of a guide that has accepted an end-of-sequence token."""
    accepted = asked.token_id in index.vocabulary.eos_ids if asked.token_id is not None else not asked.data
    reasons = () if accepted else (Reason("token", (), "the text has ended: an end-of-sequence token came before"),)
    data = asked.before + asked.data
    line, column = _line_and_column(asked.before)
    return Explanation(
        accepted=accepted,
        text=data.decode("utf-8", "replace"),
        consumed=len(asked.before) if not accepted else len(data),
        token_id=asked.token_id,
        died_at=0 if asked.data and not accepted else None,
        line=line,
        column=column,
        reasons=reasons,
        can_end=True,
        completion="",
        data=data,
    )


def _line_and_column(data: bytes) -> tuple[int, int]:
    before = data.decode("utf-8", "replace")
    return before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1


# -- the reasons ----------------------------------------------------------------------------------------------


class _Refused(NamedTuple):
    """What is refused: who was asked what, where it dies, and what the index was compiled from, if that is given.

    ``data`` is the whole text, ``consumed`` how many of its bytes are accepted, ``config`` the index's configuration
    behind these.
    """

    guide: Guide | None
    by: Index
    asked: _Asked
    data: bytes
    consumed: int
    config: Config
    died_at: int | None
    definition: object


def _findings(refused: _Refused) -> Findings:
    index, asked = refused.by, refused.asked
    if refused.died_at is None and asked.token_id is not None and not asked.ends:
        return _of_token(refused.guide, index, asked)
    if index.kind == "healed":
        return _of_healed(refused)
    if refused.consumed > _LONGEST:
        note = f"the text is longer than {_LONGEST:,} bytes, whose reasons are not looked for"
        return Findings((_UNKNOWN,), "", (note,))
    if index.kind == "grammar":
        from .grammar_findings import find

        if refused.definition is not None:
            _definition(index, refused.definition)
        found = find(index, _pieces(refused), refused.config)
    else:
        try:
            known = _definition(index, refused.definition)
        except ArgumentError:
            raise
        except StructgenError as error:
            return Findings((_UNKNOWN,), "", (str(error),))
        data = refused.data[: refused.consumed + 1]
        found = _reader(index.kind)(index, known, data, refused.died_at is None, refused.config)
    return found._replace(reasons=found.reasons or (_UNKNOWN,))


def _pieces(refused: _Refused) -> list[tuple[int, bytes]]:
    """What is accepted of a text, by its tokens where these matter; an id of -1 is bytes alone."""
    index, guide, before = refused.by, refused.guide, len(refused.asked.before)
    if guide is None or guide.index is not index or not index.machine.names_tokens():
        return [(-1, refused.data[: refused.consumed])]
    vocabulary = index.vocabulary
    tokens = [(token_id, vocabulary.token(token_id) or b"") for token_id in guide.tokens()]
    return [*tokens, (-1, refused.data[before : refused.consumed])]


def _of_healed(refused: _Refused) -> Findings:
    """The same of an index whose texts begin with the end of a prompt."""
    prefix, inner = refused.by.prefix, refused.by.inner
    if inner is None or refused.consumed < len(prefix):
        what = f"the end of the prompt, {prefix.decode('utf-8', 'replace')!r}, is spelled anew first"
        return Findings((Reason("token", (), what),))
    data, consumed = refused.data[len(prefix) :], refused.consumed - len(prefix)
    return _findings(refused._replace(by=inner, data=data, consumed=consumed))


_UNKNOWN = Reason("unknown", (), "nothing that alone stands against it could be named")

#: Reads the reasons from an index, its definition, the text with the byte that it dies at, whether it is its end that
#: is refused, and the configuration before that.
_Reader = Callable[[Index, Foreign, bytes, bool, Foreign], Findings]


def _reader(kind: str) -> _Reader:
    if kind == "json_schema":
        from .schemas.findings import find

        return find
    if kind == "regex":
        from .pattern_findings import find as of_pattern

        return of_pattern
    if kind == "gbnf":
        from .gbnf_findings import find as of_rules

        return of_rules
    if kind == "structural_tag":
        from .tag_findings import find as of_formats

        return of_formats
    return _nothing


def _nothing(index: Index, definition: Foreign, data: bytes, ended: bool, config: Foreign) -> Findings:
    return Findings((), "", (f"reasons of a {index.kind} are not looked for",))


def _definition(index: Index, given: object) -> Definition:
    if given is None:
        return definition_of(index.kind, index.definition)
    definition = as_definition(given)
    if definition.canonical() != index.definition:
        raise ArgumentError("the definition is not the one that the index was compiled from")
    return definition


def _of_token(guide: Guide | None, index: Index, asked: _Asked) -> Findings:
    """Why a token is refused though its bytes are not, or it has none."""
    if asked.data and guide is not None and guide.machine is not index.machine:
        what = "the text could no longer be finished within max_tokens"
        return Findings((Reason("max_tokens", (), what),))
    if asked.data:
        return Findings((Reason("token", (), "its bytes may follow, but not as this token"),))
    names = [name for name, token_id in index.vocabulary.special_tokens.items() if token_id == asked.token_id]
    named = f"the special token {names[0]!r}" if names else "a token without bytes"
    return Findings((Reason("token", (), f"{named} has no place here"),))


# -- what may come instead ------------------------------------------------------------------------------------


def _expected(index: Index, config: Config) -> tuple[str, ...]:
    found = following(index, config)
    literals = found.literals[:_MOST_LISTED]
    more = len(found.literals) - len(literals)
    others = [describe(found.ranges)] if found.ranges else []
    return (*literals, *others, *([f"{more} more"] if more else []))


def _ending(index: Index, config: Config, wanted: bool | None) -> bytes | None:
    if wanted is False:
        return None
    if wanted:
        return shortest_ending(index, config)
    return near_ending(index.machine, config, _FEW_STATES if index.kind == "grammar" else _SOME_STATES)


def _tokens(index: Index, ending: bytes | None) -> tuple[int, ...] | None:
    """An ending as the tokenizer splits it."""
    encode = index.vocabulary.encode
    if encode is None or ending is None:
        return None
    try:
        return tuple(map(int, encode(ending.decode())))
    except UnicodeDecodeError:
        return None


def _other_tokens(index: Index, config: Config, asked: _Asked) -> tuple[int, ...] | None:
    """Single bytes that spell the text of a token that is refused, where its bytes are allowed."""
    if asked.token_id is None:
        return None
    names = (name for name, token_id in index.vocabulary.special_tokens.items() if token_id == asked.token_id)
    data = asked.data or next(names, "").encode()
    tokens = tuple(index.vocabulary.byte_ids[byte] for byte in data)
    for token in tokens:
        config = index.machine.advance(config, token) if token >= 0 else None
        if config is None:
            return None
    return tokens or None
