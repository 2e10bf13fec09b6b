"""What SECURITY.md promises of all definitions and files: nothing in them is run, fetched or unpickled."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

#: Compiles what asks for files, hosts and code, opens indexes and entries of a cache, and prints what Python noticed.
PROGRAM = """
import json, os, sys, warnings
from pathlib import Path
import lark
import structgen as sg

warnings.simplefilter("ignore")
folder, secret = Path(sys.argv[1]), Path(sys.argv[2])
own = (folder / "own").resolve()
vocabulary = sg.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), None], eos_ids=[256])
cache = sg.Cache(folder / "cache")


def definitions():
    for reference in ("http://127.0.0.1:9/a.json", "//127.0.0.1/a", f"file://{secret}", str(secret), "../secret"):
        for key in ("$ref", "$dynamicRef", "$recursiveRef", "$schema", "$id"):
            yield sg.JsonSchema({key: reference, "properties": {"a": {key: reference}}})
    yield sg.JsonSchema({"format": "__import__('os').system('true')", "pattern": "(?{1})", "$comment": "<!ENTITY a>"})
    for path in (str(secret), "secret", "..secret", ".secret", "...secret", "own.secret", "etc.passwd", "os"):
        yield sg.Grammar(f"%import {path}.A\\nstart: A", import_paths=[str(own)])
        yield sg.Grammar(f"%import {path} (A, B)\\nstart: A")
        yield sg.Grammar(f"%extend {path}: /a/\\nstart: /b/")
    yield sg.Grammar("%import common.INT\\n%import .shared.A\\nstart: INT A -> __class__", import_paths=[str(own)])
    yield sg.Grammar("%import json.value\\nstart: value")
    yield sg.Gbnf('root ::= "a" <file> | @include')
    yield sg.Gbnf("#include </etc/passwd>\\nroot ::= [a]")
    yield sg.Regex(r"(?(?{1})a|b)\\\\g<__import__>")


def use():
    compiled = 0
    for make in definitions():
        try:
            index = sg.compile(make, vocabulary, cache=cache)
            compiled += 1
        except sg.Error:
            continue
        data = index.to_bytes()
        (folder / "index.sgx").write_bytes(data)
        sg.Guide(sg.Index.load(folder / "index.sgx")).bitmask()
        sg.Guide(sg.compile(make, vocabulary, cache=cache)).bitmask()
    return compiled


WATCHED = ("open", "socket", "subprocess", "pickle", "exec", "ctypes", "urllib")
use()  # what is imported at first, and kernels
noticed, libraries = set(), [Path(module.__file__).resolve().parent for module in (lark, sg)]
running = True


def notice(event, arguments):
    if not running or event.partition(".")[0] not in WATCHED:
        return
    if event == "open":
        if arguments[2] & os.O_DIRECTORY:
            return
        path = Path(os.fsdecode(arguments[0])).resolve() if not isinstance(arguments[0], int) else folder
        if path.is_relative_to(folder) and path != secret or any(path.is_relative_to(each) for each in libraries):
            return
        event += f" {path}"
    if event == "exec" and Path(arguments[0].co_filename).name in ("dataclasses.py", "<string>"):
        return
    noticed.add(event)


sys.addaudithook(notice)
cache.clear()
compiled = use()
running = False
print(json.dumps([compiled, sorted(noticed)]))
"""


def test_nothing_is_run_fetched_read_or_unpickled(tmp_path: Path) -> None:
    """By Python's audit events; grammars of the owner's import paths, Lark's and structgen's may be read."""
    (tmp_path / "private").mkdir()
    secret = tmp_path / "private/secret.lark"
    secret.write_text("A: /a/\n")
    folder = tmp_path / "work"
    (folder / "own").mkdir(parents=True, mode=0o700)
    (folder / "own/shared.lark").write_text("A: /a/\n")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(folder), str(secret)],
        capture_output=True, text=True, timeout=600, check=False, cwd=tmp_path / "private",
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])},
    )  # fmt: skip
    assert not done.returncode, done.stderr[-2_000:]
    compiled, noticed = json.loads(done.stdout)
    assert compiled >= 3
    assert noticed == []
