"""The first mask on a machine: whole processes, from their start until a mask is there.

Run ``python -m benchmarks.first_use TOKENIZER``, a folder with a ``tokenizer.json``; ``--help`` tells the options.

Each figure is the wall time of a new process that reads the tokenizer, compiles one definition that it has never
seen and fills one mask. "New" has an empty home, "again" the home that the process before it left, "kept" opens a
file with the vocabulary and the index. Engines take turns, definition by definition. All have their modules'
bytecode, as an installer leaves it; processes that aren't timed write it into a folder of the benchmark's own.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import numpy as np

from . import report, run

DEFINITIONS = {
    "regex": "[0-9]{4}-[0-9]{2}",
    "JSON Schema": '{"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer"},'
    '"tags":{"type":"array","items":{"type":"string"}}},"required":["name","age"]}',
    "SQL": "",
}

_STRUCTGEN = """
import sys, structgen as sg
folder, kind, text = sys.argv[1:]
if kind == "SQL":
    from structgen import grammars
    definition = grammars.load("sql")
else:
    definition = {"regex": sg.Regex, "JSON Schema": sg.JsonSchema}[kind](text)
index = sg.compile(definition, sg.Vocabulary.from_pretrained(folder), eager=False)
sg.Guide(index).bitmask()
"""

_KEPT = """
import sys, structgen as sg
sg.Guide(sg.Index.load(sys.argv[1])).bitmask()
"""

_LLGUIDANCE = """
import sys, llguidance, llguidance.numpy
folder, kind, text = sys.argv[1:]
tokenizer = llguidance.LLTokenizer(open(folder + "/tokenizer.json").read())
make = {"regex": "grammar_from_regex", "JSON Schema": "grammar_from_json_schema"}[kind]
matcher = llguidance.LLMatcher(tokenizer, getattr(llguidance.LLMatcher, make)(text))
mask = llguidance.numpy.allocate_token_bitmask(1, tokenizer.vocab_size)
llguidance.numpy.fill_next_token_bitmask(matcher, mask)
"""

_XGRAMMAR = """
import sys, xgrammar
from transformers import PreTrainedTokenizerFast
folder, kind, text = sys.argv[1:]
tokenizer = PreTrainedTokenizerFast(tokenizer_file=folder + "/tokenizer.json")
info = xgrammar.TokenizerInfo.from_huggingface(tokenizer)
compiler = xgrammar.GrammarCompiler(info)
compiled = {"regex": compiler.compile_regex, "JSON Schema": compiler.compile_json_schema}[kind](text)
matcher = xgrammar.GrammarMatcher(compiled)
mask = xgrammar.allocate_token_bitmask(1, info.vocab_size)
matcher.fill_next_token_bitmask(mask)
"""


def main() -> None:
    """Measure, and print a table: the median and the slowest of the processes, and what the quickest peer takes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tokenizer", type=Path)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", choices=list(DEFINITIONS), help="one definition")
    options = parser.parse_args()
    times: dict[tuple[str, str], list[float]] = defaultdict(list)
    with tempfile.TemporaryDirectory(prefix="structgen-bench-") as name:
        for kind, text in DEFINITIONS.items():
            if options.only in (None, kind):
                _measure(times, Path(name), options.tokenizer, kind, text, options.repeats)
    rows = [[kind, engine, f"{np.median(found):.3f}", f"{max(found):.3f}"] for (kind, engine), found in times.items()]
    console = run.console()
    report.show_rows(console, "Process start to first mask: s", ["definition", "engine", "median", "slowest"], rows)


def _measure(
    times: dict[tuple[str, str], list[float]], folder: Path, tokenizer: Path, kind: str, text: str, repeats: int
) -> None:
    kept, peers = folder / "kept.sgx", {"llguidance": _LLGUIDANCE, "xgrammar": _XGRAMMAR} if text else {}
    new = (tokenizer, kind, text)
    save = _STRUCTGEN.replace("eager=False", "eager=True") + f"index.save({str(kept)!r})\n"
    for code in (save, *peers.values()):
        _seconds(code, folder / "other", *new)
    _seconds(_KEPT, folder / "other", kept)
    for turn in range(repeats):
        home = folder / f"{kind} {turn}"
        times[kind, "structgen, new"].append(_seconds(_STRUCTGEN, home, *new))
        times[kind, "structgen, again"].append(_seconds(_STRUCTGEN, home, *new))
        times[kind, "structgen, kept"].append(_seconds(_KEPT, home, kept))
        for engine, code in peers.items():
            times[kind, engine].append(_seconds(code, home, *new))


def _seconds(code: str, home: Path, *arguments: object) -> float:
    """Seconds from before a new process is started until it has its mask."""
    environment = os.environ | {"HOME": str(home), "STRUCTGEN_CACHE_DIR": str(home / "structgen")}
    environment["PYTHONPYCACHEPREFIX"] = str(home.parent / "bytecode")
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-c", code + "import time\nprint(time.time())", *map(str, arguments)]
    began = time.time()
    done = subprocess.run(command, env=environment, cwd=run.ROOT, check=True, stdout=subprocess.PIPE, text=True)
    return float(done.stdout.split()[-1]) - began


if __name__ == "__main__":
    main()
