"""Machines that tell values apart, judged by `jsonschema` and by all texts of definitions that have finitely many."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import jsonschema
import numpy as np

import structgen as sg
from structgen.runtime.grammar.machine import GrammarMachine
from structgen.runtime.pushdown.distinct.definition import DistinctInnerMachine
from structgen.runtime.pushdown.distinct.machine import DistinctMachine

from .guides import allowed, with_bytes

BYTES = with_bytes()


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object. Raises ValueError where a name comes twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError
    return found


def is_valid(schema: Any, text: str | bytes) -> bool:
    """Whether a text is a value of a schema, no object of which has a name twice."""
    try:
        value = json.loads(text, object_pairs_hook=_once)
    except ValueError:
        return False
    return bool(jsonschema.Draft202012Validator(schema).is_valid(value))


def check_kept(index: sg.Index, folder: Path, begin: bytes = b"", end: bytes = b"") -> None:
    """Check forks, going back, and files, of arrays of different strings and integers between two texts."""
    beginning = begin + b'["a",1,"b'
    guide = sg.Guide(index)
    for byte in beginning:
        assert guide.advance(byte)
    fork, before = guide.fork(), guide.bitmask().copy()
    for byte in b'c",1':
        assert fork.advance(byte)
    assert ord(",") not in allowed(fork)
    assert ord("0") in allowed(fork)
    np.testing.assert_array_equal(guide.bitmask(), before)
    fork.rollback(4)
    np.testing.assert_array_equal(fork.bitmask(), before)
    index.save(folder / "set.sgx")
    for other in (sg.Index.load(folder / "set.sgx"), pickle.loads(pickle.dumps(index))):
        assert tells_apart(other)
        again = sg.Guide(other)
        for byte in beginning:
            assert again.advance(byte)
        np.testing.assert_array_equal(again.bitmask(), before)
        assert not other.match(begin + b'["a","a"]' + end).accepted
        assert other.match(begin + b'["a","b"]' + end).accepted


def texts(index: sg.Index, most: int) -> Iterator[bytes]:
    """All texts of an index."""
    machine = index.machine
    todo = [(b"", machine.byte_state(machine.start))]
    count = 0
    while todo:
        assert len(todo) < most
        text, state = todo.pop()
        if machine.may_stop(state):
            yield text
            count += 1
            assert count < most
        todo += [(text + bytes((byte,)), after) for byte, after in machine.following(state)]


def tells_apart(index: sg.Index) -> bool:
    """Whether its configurations have sets of values, be it of a definition within a grammar."""
    machine = index.machine
    inner = [each for _, each in machine.embedded.definitions] if isinstance(machine, GrammarMachine) else [machine]
    return any(isinstance(each, DistinctMachine | DistinctInnerMachine) for each in inner)


def check_masks(wanted: sg.Definition, without: sg.Definition, is_valid: Callable[[bytes], bool]) -> None:
    """Compare the masks of a definition with all its texts: of those of another one those that are valid."""
    every = sorted(texts(sg.compile(without, BYTES, eager=False), 40_000))
    random = Random(str(every[:1000]))
    valid = [text for text in every if is_valid(text)]
    assert len(valid) < len(every)
    words = set()
    for _ in range(150):
        text = random.choice(every)
        begin = random.randrange(len(text))
        words.add(text[begin : begin + random.randrange(2, 24)])
    vocabulary = with_bytes(*sorted(word for word in words if len(word) > 1))
    index = sg.compile(wanted, vocabulary, eager=False)
    assert tells_apart(index)
    assert sorted(texts(index, 40_000)) == valid
    tokens = [(token, vocabulary.token(token) or b"") for token in range(vocabulary.size)]
    syntax, refused = sg.compile(without, vocabulary, eager=False), 0
    for _ in range(12):
        guide, other, text = sg.Guide(index), sg.Guide(syntax), b""
        target = random.choice(valid)
        while True:
            rests = [each[len(text) :] for each in valid if each.startswith(text)]
            expected = {token for token, data in tokens if data and any(rest.startswith(data) for rest in rests)}
            found = {token for token in allowed(guide) if vocabulary.token(token)}
            assert found == expected, (text, [vocabulary.token(each) for each in found ^ expected])
            assert guide.is_accepting() == (b"" in rests)
            refused += len([token for token in allowed(other) if vocabulary.token(token)]) - len(found)
            if text == target:
                break
            token = random.choice([token for token, data in tokens if data and target.startswith(data, len(text))])
            assert guide.advance(token)
            assert other.advance(token)
            text += vocabulary.token(token) or b""
    assert refused
