"""Bundles: one file that servers map instead of a folder; what is in it is right, or is not taken."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import warnings
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from random import Random

import numpy as np
import pytest
from fakes.word_lists import VOCABULARY, check_masks, definition_of, random_words
from typer.testing import CliRunner

import structgen as sg
from structgen.cli.app import app
from structgen.errors import CacheError, CacheWarning, FormatError, MissingIndexError, StructgenError
from structgen.storage.container import pack
from structgen.system.digest import blake2b

WORDS = [random_words(seed) for seed in range(4)]
SCHEMA = sg.JsonSchema({"properties": {"a": {"type": "string"}}, "additionalProperties": False})


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle of four regexes, and a schema with rows that it shares."""
    folder = tmp_path_factory.mktemp("built")
    with sg.Cache(folder / "cache") as cache:
        for words in WORDS:
            sg.compile(definition_of(words), VOCABULARY, cache=cache)
        sg.compile(SCHEMA, VOCABULARY, cache=cache)
        assert cache.export(folder / "masks.sgb") == len(cache)
    return folder / "masks.sgb"


def served(bundle: Path) -> int:
    """Check the masks of all that a bundle has; how many indexes that is."""
    with sg.Cache(bundle) as cache:
        found = 0
        for words in WORDS:
            try:
                index = sg.compile(definition_of(words), VOCABULARY, cache=cache, compile_missing=False)
            except MissingIndexError:
                continue
            found += 1
            assert index.origin == "cache"
            check_masks(index, words)
    return found


def test_a_server_takes_what_is_in_a_bundle(built: Path) -> None:
    assert served(built) == len(WORDS)
    before = built.read_bytes()
    with sg.Cache(built) as cache:
        assert cache.is_read_only
        assert cache.metrics().misses == 0
        assert {entry.kind for entry in cache.entries()} == {"regex", "json_schema", "shared"}
        assert cache.verify() == []
        with pytest.raises(MissingIndexError):
            sg.compile(sg.Regex("other"), VOCABULARY, cache=cache, compile_missing=False)
    assert built.read_bytes() == before
    assert [path.name for path in built.parent.iterdir()].count("masks.sgb") == 1


def test_masks_that_share_rows_are_those_of_a_compile(built: Path) -> None:
    vocabulary = sg.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), None], eos_ids=[256])
    index = sg.compile(SCHEMA, vocabulary, cache=sg.Cache(built), compile_missing=False)
    guide, other = sg.Guide(index), sg.Guide(sg.compile(SCHEMA, VOCABULARY))
    for token in b'{"a":"x\\n"':
        assert (guide.bitmask() == other.bitmask()).all()
        guide.advance(token)
        other.advance(token)


def test_what_is_not_in_a_bundle_is_compiled_and_kept_nowhere(built: Path) -> None:
    before = built.read_bytes()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cache = sg.Cache(built)
        index = sg.compile(sg.Regex("a{3}"), VOCABULARY, cache=cache, eager=False)
        assert index.origin == "compiled"
        assert not cache.put("key", pack({}, {}))
        assert cache.get("key") is None
        cache.discard(cache.entries()[0].key)
        cache.close()
    for refused in (cache.clear, lambda: cache.prune(0), lambda: cache.import_(built)):
        with pytest.raises(CacheError, match="never changed"):
            refused()
    assert built.read_bytes() == before


def test_what_is_warmed_into_a_bundle_fails_in_its_words(built: Path) -> None:
    served = sg.Cache(built)
    present, failed = sg.warm([SCHEMA, sg.Regex("not in there")], VOCABULARY, served)
    assert present.status == "present"
    assert (failed.status, failed.what) == ("failed", "compiled, but this cache is only read")
    assert "a bundle keeps nothing" in failed.remedy


def test_a_store_stands_behind_a_bundle(built: Path, tmp_path: Path) -> None:
    pytest.importorskip("obstore")
    url, extra = (tmp_path / "store").as_uri(), ("extra",)
    with sg.Cache(tmp_path / "builder", store=sg.ObjectStore(url, write="now")) as builder:
        sg.compile(definition_of(extra), VOCABULARY, cache=builder)
    with sg.Cache(built, store=sg.ObjectStore(url, write="never")) as cache:
        check_masks(sg.compile(definition_of(extra), VOCABULARY, cache=cache, compile_missing=False), extra)
        assert served(built) == len(WORDS)
        assert cache.metrics().hits_store == 1


def test_processes_share_a_bundle(built: Path) -> None:
    code = (
        "import sys, structgen as sg\n"
        "from fakes.word_lists import VOCABULARY, check_masks, definition_of, random_words\n"
        "cache = sg.Cache(sys.argv[1])\n"
        "for seed in range(4):\n"
        "    words = random_words(seed)\n"
        "    check_masks(sg.compile(definition_of(words), VOCABULARY, cache=cache, compile_missing=False), words)\n"
        "print(cache.metrics().hits_folder)\n"
    )
    roots = (Path(sg.__file__).parents[1], Path(__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, roots))}
    run = [sys.executable, "-c", code, str(built)]
    processes = [subprocess.Popen(run, stdout=subprocess.PIPE, text=True, env=environment) for _ in range(2)]
    assert [each.communicate(timeout=600)[0].strip() for each in processes] == ["4", "4"]


@pytest.mark.skipif(os.name != "posix", reason="owners and modes are POSIX's")
def test_a_bundle_that_others_can_write_is_refused(built: Path, tmp_path: Path) -> None:
    path = tmp_path / "masks.sgb"
    path.write_bytes(built.read_bytes())
    path.chmod(0o666)
    with pytest.raises(CacheError, match="other users can write"):
        sg.Cache(path)
    path.chmod(0o444)
    (tmp_path / "link").symlink_to(path)
    assert served(tmp_path / "link") == len(WORDS)


# -- the command line ------------------------------------------------------------------------------------


def test_the_command_writes_what_definitions_need(tmp_path: Path) -> None:
    pytest.importorskip("mistral_common", reason="the tekken vocabulary comes with mistral-common")
    (tmp_path / "schemas").mkdir()
    (tmp_path / "schemas" / "a.regex").write_text("[ab]+")
    cache, first, second = tmp_path / "cache", tmp_path / "1.sgb", tmp_path / "2.sgb"
    with sg.Cache(cache) as other:
        sg.compile(sg.Regex("other"), VOCABULARY, cache=other)

    def run(*arguments: object) -> str:
        done = CliRunner().invoke(app, [*map(str, arguments)])
        assert done.exit_code == 0, done.output
        return done.output

    for file in (first, second):
        run("bundle", file, tmp_path / "schemas", "-t", "tekken", "--cache", cache)
    assert first.read_bytes() == second.read_bytes()
    [entry] = sg.Cache(first).entries()
    assert entry.label == sg.Regex("[ab]+").canonical()
    assert len(json.loads(run("cache", "ls", "--cache", first, "--json"))["entries"]) == 1
    assert "wrote 2 entries" in run("bundle", second, "--cache", cache)
    (tmp_path / "schemas" / "b.regex").write_text("(")
    failing = ["bundle", str(tmp_path / "3.sgb"), str(tmp_path / "schemas"), "-t", "tekken", "--cache", str(cache)]
    assert CliRunner().invoke(app, failing).exit_code == 1
    assert not (tmp_path / "3.sgb").exists()


# -- damage ----------------------------------------------------------------------------------------------

Items = list[dict[str, object]]


def read(data: bytes) -> tuple[Items, list[bytes]]:
    """The lines of the manifest behind the first, and the values: by a tar program of somebody else's."""
    with tarfile.open(fileobj=BytesIO(data)) as archive:
        members = [archive.extractfile(name) for name in archive.getnames()]
        first, *values = [member.read() for member in members if member is not None]
    return [json.loads(line) for line in first.splitlines()[1:]], values


def written(items: Items, values: list[bytes], signs: bool) -> bytes:
    """An archive of lines and values that need not fit together, with digests that do."""
    if signs:
        for item, value in zip(items, values, strict=False):
            head = "".join(f"{item.get(name)}\n" for name in ("key", "label", "kind", "nbytes", "rank")).encode()
            item["digest"] = blake2b(head + value, digest_size=32).hexdigest()
    lines = [{"format": "structgen cache", "version": 3}, *items]
    manifest = "".join(json.dumps(line) + "\n" for line in lines).encode()
    file = BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        names = [f"values/{number:06d}.sgx" for number in range(len(values))]
        for name, data in zip(["manifest.jsonl", *names], [manifest, *values], strict=True):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, BytesIO(data))
    return file.getvalue()


#: What a number in a manifest may be made.
NUMBERS = [-1, 0, 1, 511, 512, 1 << 31, 1 << 40, (1 << 62) - 1, 1 << 62, 10**400, 1.5, None, True, "1", [1]]


def lying(data: bytes, draw: Random) -> bytes:
    """A table of contents that says something else, in one line or two, of values that may be damaged."""
    items, values = read(data)
    a, b = draw.randrange(len(items)), draw.randrange(len(items))
    kind = draw.randrange(7)
    if kind == 0:
        items[a][draw.choice(["nbytes", "rank"])] = draw.choice(NUMBERS)
    elif kind == 1:
        items[a]["key"] = items[b]["key"]
    elif kind == 2:
        items[a][draw.choice(["key", "label", "kind", "digest"])] = draw.choice([*NUMBERS, "../x", "\x00", "k" * 300])
    elif kind == 3:
        del items[a]
    elif kind == 4:
        items.append(dict(items[a], key=f"more{b}"))
    elif kind == 5:
        items[a].pop(draw.choice([*items[a]]))
    else:
        value = bytearray(values[a])
        value[draw.randrange(len(value))] ^= 1 << draw.randrange(8)
        values[a] = bytes(value[: draw.choice([len(value), draw.randrange(len(value))])])
    return written(items, values, signs=kind == 6 or draw.random() < 0.5)


def cut(data: bytes, draw: Random) -> bytes:
    return data[: draw.randrange(len(data))]


def flipped(data: bytes, draw: Random) -> bytes:
    changed = bytearray(data)
    for _ in range(draw.choice([1, 1, 2, 20])):
        changed[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    return bytes(changed)


def header_flipped(data: bytes, draw: Random) -> bytes:
    """A header of the tar file with another size, and the checksum that it has then."""
    starts = [start for start in range(0, len(data), 512) if data[start + 257 : start + 262] == b"ustar"]
    start = draw.choice(starts)
    header = bytearray(data[start : start + 512])
    header[124:136] = draw.choice([b"%011o\0" % draw.randrange(1 << 20), b"7" * 11 + b"\0", b"\x80" + b"\x7f" * 11])
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return data[:start] + bytes(header) + data[start + 512 :]


def joined(data: bytes, draw: Random) -> bytes:
    """Blocks from one place at another."""
    a, b, size = (512 * draw.randrange(len(data) // 512) for _ in range(3))
    return data[:a] + data[b : b + size] + data[a + size :]


Damage = Callable[[bytes, Random], bytes]


def outcomes(data: bytes, damage: Damage, path: Path, count: int) -> Iterator[str]:
    for seed in range(count):
        path.write_bytes(damage(data, Random(seed)))
        try:
            yield "whole" if served(path) == len(WORDS) else "in part"
        except StructgenError:
            yield "refused"


@pytest.mark.filterwarnings("ignore::structgen.errors.CacheWarning")
@pytest.mark.parametrize("damage", [cut, flipped, header_flipped, joined, lying])
def test_a_damaged_bundle_is_refused_or_serves_what_is_right(damage: Damage, built: Path, tmp_path: Path) -> None:
    """Whatever is found has the masks of its words; nothing but errors of structgen's comes of the rest."""
    found = [*outcomes(built.read_bytes(), damage, tmp_path / "damaged.sgb", 60)]
    assert "refused" in found or "in part" in found
    if damage is not cut:
        assert {*found} > {"refused"}


def test_damage_is_found_and_said(built: Path, tmp_path: Path) -> None:
    items, values = read(built.read_bytes())
    keys = [str(item["key"]) for item in items]
    values[0] = values[0][:-1] + bytes([values[0][-1] ^ 1])
    path = tmp_path / "damaged.sgb"
    path.write_bytes(written(items, values, signs=False))
    cache = sg.Cache(path)
    assert [(each.kind, each.where) for each in cache.verify()] == [("damaged", keys[0])]
    with pytest.warns(CacheWarning, match="digest.*Write the bundle again"):
        assert cache.get(keys[0]) is None
    assert bytes(cache.get(keys[1]) or b"") == values[1]
    with pytest.raises(CacheError, match="never changed"):
        cache.verify(repair=True)


@pytest.mark.filterwarnings("ignore::structgen.errors.CacheWarning")
def test_an_index_that_is_damaged_is_said_and_compiled(built: Path, tmp_path: Path) -> None:
    """Its digest is looked at only then: an index has a checksum of its own."""
    items, values = read(built.read_bytes())
    kinds = [item["kind"] for item in items]
    assert kinds.count("regex") == len(WORDS)
    for i, kind in enumerate(kinds):
        if kind == "regex":
            values[i] = values[i][:-1] + bytes([values[i][-1] ^ 1])
    path = tmp_path / "damaged.sgb"
    path.write_bytes(written(items, values, signs=False))
    cache = sg.Cache(path)
    with pytest.warns(CacheWarning, match="digest.*Write the bundle again"):
        index = sg.compile(definition_of(WORDS[0]), VOCABULARY, cache=cache)
    assert index.origin == "compiled"
    check_masks(index, WORDS[0])
    assert served(path) == 0


@pytest.mark.filterwarnings("ignore::structgen.errors.CacheWarning")
def test_an_index_under_the_key_of_another_is_not_taken(built: Path, tmp_path: Path) -> None:
    """With digests that fit, too."""
    items, values = read(built.read_bytes())
    whole, at = list(values), [i for i, item in enumerate(items) if item["kind"] == "regex"]
    for i, other in zip(at, at[1:] + at[:1], strict=True):
        items[i]["nbytes"], values[i] = items[other]["nbytes"], whole[other]
    for signs in (False, True):
        (tmp_path / "swapped.sgb").write_bytes(written(items, values, signs=signs))
        assert served(tmp_path / "swapped.sgb") == 0


@pytest.mark.parametrize("data", [b"", b"a file", bytes(1024), np.arange(4096, dtype=np.uint8).tobytes()])
def test_a_file_that_is_no_bundle_is_refused(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(data)
    with pytest.raises(FormatError, match="file"):
        sg.Cache(tmp_path / "file")
