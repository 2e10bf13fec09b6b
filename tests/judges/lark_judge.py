"""Lark as the judge of a grammar: masks, and texts in both directions."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

from lark import Lark
from lark.exceptions import LarkError, UnexpectedInput, UnexpectedToken

import structgen as sg
from judges.guides import allowed, with_end
from structgen.grammars import FOLDER


def judge(source: str | Path, lexer: str, **options: Any) -> Lark:
    """Lark's parser of a grammar, with the folders that structgen looks in."""
    paths = [*options.pop("import_paths", ()), str(FOLDER)]
    if isinstance(source, Path):
        options["source_path"] = str(source)
        source = source.read_text(encoding="utf-8")
    return Lark(source, parser="lalr", lexer=lexer, import_paths=paths, **options)


def parses(parser: Lark, text: str) -> bool:
    try:
        parser.parse(text)
    except LarkError:
        return False
    return True


def refused(parser: Lark, text: str) -> tuple[int, set[str], set[str]] | None:
    """Where Lark refuses a token; what it accepts there, before and after that token had it reduce rules.

    None where it refuses no token. (LALR(1) may reduce rules before a token that it finds to be wrong then, and some
    of what it would have taken is forgotten: ``UnexpectedToken.accepts`` is that.)
    """
    interactive: Any = parser.parse_interactive(text)  # some of it has no types
    before = interactive.copy()
    try:
        for token in interactive.lexer_thread.lex(interactive.parser_state):
            before = interactive.copy()
            interactive.feed_token(token)
            before = interactive  # what the lexer refuses reduces nothing
        before = interactive.copy()
        interactive.feed_eof()
    except UnexpectedToken as error:
        at = len(text) if error.token.type == "$END" else error.token.start_pos
        assert at is not None
        return at, before.accepts(), interactive.accepts()
    except UnexpectedInput:
        pass
    return None


def vocabulary_of(letters: str, random: Random, texts: tuple[str, ...] = (), size: int = 120) -> sg.Vocabulary:
    """Single bytes, pieces of the texts, random strings of letters, some cut inside a character; the usual first."""
    tokens: dict[bytes, None] = {bytes([b]): None for b in sorted(set((letters + "".join(texts)).encode()))}
    for _ in range(size):
        from_text = random.choice(texts) if texts and random.random() < 0.5 else ""
        at = random.randint(0, len(from_text))
        piece = from_text[at : at + random.randint(2, 7)] or "".join(random.choices(letters, k=random.randint(2, 5)))
        tokens[piece.encode()] = None
    tokens |= {token[:-1]: None for token in list(tokens) if len(token) > 1 and token[-1] > 127}
    tokens |= {bytes([b]): None for b in range(256)}
    return with_end(tokens)


def usual(vocabulary: sg.Vocabulary) -> int:
    """How many tokens of a vocabulary are made of a grammar's own letters; the others are bytes."""
    last = vocabulary.size - 2
    while len(vocabulary.token(last) or b"") == 1:
        last -= 1
    return last + 1


def written(index: sg.Index, random: Random, tokens: int) -> tuple[bytes, sg.Guide]:
    """A text that a guide lets through, and the guide after it. Its mask is checked now and then."""
    guide, text = sg.Guide(index), b""
    eos, most = index.vocabulary.eos_ids, usual(index.vocabulary)
    for step in range(tokens):
        ids = allowed(guide)
        assert ids, f"stuck after {text!r}"
        if step % 8 == 0:
            assert ids == [t for t in range(index.vocabulary.size) if guide.allows(t)], text
        ids = [t for t in ids if t not in eos]
        if not ids or (guide.is_accepting() and random.random() < 0.05):
            break
        token = random.choice([t for t in ids if t < most or random.random() < 0.01] or ids)
        text += index.vocabulary.token(token) or b""
        assert guide.advance(token)
    return text, guide


def spelled(index: sg.Index, text: bytes, random: Random) -> bool:
    """Whether a guide takes the whole text, in random tokens of the vocabulary, and ends there."""
    by_first: dict[int, list[tuple[int, bytes]]] = {}
    for t in range(index.vocabulary.size):
        token = index.vocabulary.token(t)
        if token:
            by_first.setdefault(token[0], []).append((t, token))
    guide, at = sg.Guide(index), 0
    while at < len(text):
        fits = [(t, token) for t, token in by_first.get(text[at], []) if text.startswith(token, at)]
        if not fits:
            return False
        t, token = random.choice(fits)
        if not guide.advance(t):
            return False
        at += len(token)
    return guide.is_accepting()


def changed(text: str, letters: str, random: Random) -> str:
    """A text with a few characters left out, put in, or put in place of others."""
    characters = list(text[: random.choice([len(text), random.randint(0, len(text))])])
    for _ in range(random.randint(0, 3)):
        at = random.randint(0, len(characters))
        characters[at : at + random.randint(0, 1)] = random.choice(["", random.choice(letters)])
    return "".join(characters)


def agrees(
    source: str | Path,
    letters: str,
    *,
    lexer: str,
    texts: tuple[str, ...] = (),
    rounds: int = 12,
    seed: int = 0,
    **options: Any,
) -> dict[bool, int]:
    """Compare with Lark; how many texts were refused and accepted. ``texts`` are such as the grammar describes.

    What guides write is complete exactly where Lark parses it. That and the given texts, changed at random, are
    judged alike byte by byte and token by token.
    """
    random = Random(f"{source}{lexer}{seed}")
    parser = judge(source, lexer, **options)
    vocabulary = vocabulary_of(letters, random, texts)
    index = sg.compile(sg.Grammar(source, lexer=lexer, **options), vocabulary, eager=False)
    found = {False: 0, True: 0}
    for i in range(rounds):
        text, guide = written(index, random, 12)
        whole = text.decode("utf-8", "ignore")
        if whole.encode() == text:
            assert guide.is_accepting() == parses(parser, whole), whole
        for base in (whole, texts[i % len(texts)] if texts else whole):
            for sample in (base, *(changed(base, letters, random) for _ in range(8))):
                verdict = parses(parser, sample)
                assert index.match(sample.encode()).accepted == verdict, sample
                assert spelled(index, sample.encode(), random) == verdict, sample
                found[verdict] += 1
    return found
