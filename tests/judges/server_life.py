"""A server's life in one process: definitions of all kinds, lazily and eagerly, batches, logits, a cache.

``python tests/judges/server_life.py FILE`` writes the masks that Numba fills.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

#: Prints its masks as JSON; its argument is the cache's folder. Neither Numba nor LLVM can be imported.
_LIFE = """
import sys
sys.modules["numba"] = sys.modules["llvmlite"] = None
import json, numpy as np, structgen as sg
from structgen.runtime.logits.masks import mask_bits
tokens = [*(bytes([byte]) for byte in range(256)), b"ab", b'{"', b'": ', b"if ", b"12", None]
vocabulary = sg.Vocabulary.from_bytes(tokens, eos_ids=[261])
cache = sg.Cache(sys.argv[1])
definitions = [
    sg.Regex("[a-z]{3,9}x|(?!ab)[a-c]+"), sg.Regex("x[a-z]{30,40}"),
    sg.JsonSchema({"properties": {"a": {"type": "array", "items": {"maxLength": 50}, "uniqueItems": True}}}),
    sg.Gbnf('root ::= "a" root | "b"'), sg.tag("<a>", sg.JsonSchema({"type": "object"}), "</a>"),
    sg.Grammar('start: s+\\ns: "if" e "{" s* "}" | N "=" e ";"\\ne: N | e "+" N\\nN: /[a-z]+/\\n%ignore " "'),
    sg.Grammar('start: "[" [start ("," start)*] "]" | /[0-9]+/', ambiguity="all"),
]
rows = []
for eager in (True, False):
    for definition in definitions:
        index = sg.compile(definition, vocabulary, eager=eager, cache=cache if eager else None)
        for max_tokens in (None, 40):
            if max_tokens and "uniqueItems" in definition.canonical():
                continue
            guide = sg.Guide(index, max_tokens=max_tokens)
            for step in range(12):
                row = guide.bitmask()
                rows.append(row.tolist())
                allowed = [token for token in range(261) if guide.allows(token)]
                if not allowed or not guide.advance(allowed[(7 * step + 3) % len(allowed)]):
                    break
        batch = sg.GuideBatch(vocabulary, [index, index])
        rows.append(batch.bitmask().tolist())
        for dtype in (np.int32, np.int16):
            bits = np.zeros((1, vocabulary.size), dtype)
            mask_bits(bits, sg.Guide(index).bitmask(), -1)
            rows.append(bits.tolist())
assert not {"numba", "llvmlite"} & {name for name, each in sys.modules.items() if each is not None}
print(json.dumps(rows))
"""

#: The same with Numba, which compiles the kernels when they are called.
_LIFE_OF_NUMBA = re.sub("^sys.modules.*", "", _LIFE, flags=re.M).replace("assert not", "assert")


def masks(folder: Path, interpreter: str | Path = sys.executable, *, numba: bool = False, **environment: str) -> object:
    """The rows of a life in a process of its own, whose cache is a new folder."""
    folder.mkdir()
    asked = {"STRUCTGEN_CACHE_DIR": str(folder)} | ({"STRUCTGEN_KERNELS": "jit"} if numba else {}) | environment
    kept = {name: each for name, each in os.environ.items() if name != "PYTHONPATH" or interpreter == sys.executable}
    done = subprocess.run(
        [interpreter, "-c", _LIFE_OF_NUMBA if numba else _LIFE, folder],
        env=kept | asked, cwd=folder, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert len(found) > 200
    return found


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        Path(sys.argv[1]).write_text(json.dumps(masks(Path(folder, "cache"), numba=True)), "utf-8")
