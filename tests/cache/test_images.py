"""The guide's Dockerfile, without Docker: its steps as root in a folder of its own, and its command as ``nobody``."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes.tiny_models import byte_tokenizer

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/guide/cache.md").read_text(encoding="utf-8")

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can become nobody"),
    pytest.mark.skipif(shutil.which("setpriv") is None, reason="needs setpriv"),
]

#: Shows somebody else the interpreter and the package where these are in folders of root's alone: in a name space of
#: this process.
OPENED = """
set -e
away=$(mktemp -d); number=0
for path in {paths}; do number=$((number + 1)); mkdir $away/$number; mount --bind $path $away/$number; done
for folder in {barred}; do mount -t tmpfs -o mode=755 tmpfs $folder; done; number=0
for path in {paths}; do number=$((number + 1)); mkdir -p $path; mount --bind $away/$number $path; done
exec "$@"
"""


MISS = """
import structgen as sg
vocabulary = sg.Vocabulary.from_bytes([*(bytes([byte]) for byte in range(256)), None], eos_ids=[256])
with sg.Cache() as cache:
    for word in ("one", "two"):
        assert sg.compile(sg.Regex(word), vocabulary, cache=cache).match(word.encode()).accepted
"""


@pytest.fixture(scope="module")
def public() -> Iterator[Path]:
    """A folder that everybody can reach."""
    folder = Path(tempfile.mkdtemp(prefix="structgen-image-")).resolve()
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def as_user(name: str) -> list[str]:
    """What a command begins with to run as a user. Skips where that user can't run Python."""
    import pwd

    found = pwd.getpwnam(name)
    switch = ["setpriv", f"--reuid={found.pw_uid}", f"--regid={found.pw_gid}", "--clear-groups"]
    needed = [sys.base_prefix, sys.prefix, str(ROOT)]
    barred = {
        path: next((each for each in reversed(Path(path).parents) if not each.stat().st_mode & 1), None)
        for path in needed
    }
    hidden = {path: str(folder) for path, folder in barred.items() if folder is not None}
    begin = switch
    if hidden:
        opened = OPENED.format(paths=shlex.join(hidden), barred=shlex.join(dict.fromkeys(hidden.values())))
        begin = ["unshare", "-m", "sh", "-c", opened, "sh", *switch]
    done = subprocess.run([*begin, sys.executable, "-c", "import numpy"], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"{name} can't run this Python: {done.stderr[-200:]}")
    return begin


def test_root_builds_and_nobody_serves(public: Path) -> None:
    (script,) = re.findall(r"^```dockerfile\n(.*?)^```$", PAGE, re.M | re.S)
    (serve,) = re.findall(r"^```python no-run\n(# serve.py\n.*?)^```$", PAGE, re.M | re.S)
    context = public / "context"
    (context / "definitions").mkdir(parents=True)
    for name, schema in (("a", {"type": "integer"}), ("b", {"properties": {"name": {"type": "string"}}})):
        (context / "definitions" / f"{name}.json").write_text(json.dumps(schema))
    byte_tokenizer().save_pretrained(context / "tokenizer")
    (context / "serve.py").write_text(placed(serve, public))

    environment = {**os.environ, "PYTHONPATH": str(ROOT), "HOME": "/nonexistent"}
    begin: list[str] = []
    said = ""
    for line in script.splitlines():
        instruction, _, rest = line.partition(" ")
        rest = placed(rest, public)
        if instruction == "ENV":
            name, _, value = rest.partition("=")
            environment[name] = value
            Path(value).parent.mkdir(exist_ok=True)  # /srv, which an image has
        elif instruction == "COPY":
            source, target = rest.split()
            Path(target).parent.mkdir(exist_ok=True)
            copy = shutil.copytree if (context / source).is_dir() else shutil.copyfile
            copy(context / source, target)
        elif instruction == "USER":
            begin = as_user(rest)
        elif instruction == "RUN" and not rest.startswith("pip install"):
            program = rest.replace("structgen warm", f"{shlex.quote(sys.executable)} -m structgen.cli warm", 1)
            said = run([*begin, "bash", "-c", program], environment)
        elif instruction == "CMD":
            said = run([*begin, sys.executable, *json.loads(rest)[1:]], environment)
    assert begin, "it is served by root"
    assert [line for line in said.splitlines() if ".json" in line] == ["a.json cache", "b.json cache"]
    assert "CacheWarning" not in said
    # What was not warmed is compiled, and not kept.
    said = run([*begin, sys.executable, "-c", MISS], environment)
    assert "root's to write. What is in it is still read; to keep more, name another folder" in said
    assert said.count("CacheWarning") == 1


def placed(text: str, folder: Path) -> str:
    """A text whose absolute paths lie in a folder."""
    return re.sub(r"(?<![\w.])/(app|srv)/", rf"{folder}/\1/", text)


def run(command: list[str], environment: dict[str, str]) -> str:
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr
