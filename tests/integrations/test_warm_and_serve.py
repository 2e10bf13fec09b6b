"""What ``structgen warm --for ENGINE`` compiles in one process, the engine's adapter finds in another.

Nothing may be compiled there: the operator's file says ``on_miss = "refuse"``. Where an engine is not installed, its
base classes are those of `fakes`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from conftest import tokenizer_folder
from fakes.serving import DEFINITIONS, ENGINES
from fakes.tiny_models import byte_tokenizer

from structgen.integrations.engines import ENGINES as KNOWN
from structgen.tools import tool_style

TESTS = Path(__file__).parents[1]

#: Operators' settings: none but what the test needs, and some that change what each engine asks for.
SETTINGS = {
    "plain": "",
    "other": 'whitespace = "any"\nmax_whitespace = 4\nmax_items = 5\nmax_digits = 9\nproperty_order = "any"\n'
    'dialect = "ecma"\nstrict_tools = "always"\n[sglang]\nwhitespace = "compact"\n[mlx]\nescapes = "ascii"\n',
}

FAMILIES = ["tiny", "llama3", "qwen2_5", "gemma", "tekken"]


def _tokenizer(family: str, folder: Path) -> str:
    if family == "tiny":
        tokenizer = byte_tokenizer()
        tokenizer.chat_template = "".join(tool_style("qwen_3").template)  # of a model that may reason
        tokenizer.save_pretrained(folder / "tiny")
        config = {"model_type": "llama", "vocab_size": 512, "eos_token_id": tokenizer.pad_token_id}
        (folder / "tiny" / "config.json").write_text(json.dumps(config))
        return str(folder / "tiny")
    if family == "tekken":
        if find_spec("mistral_common") is None:
            pytest.skip("the tekken vocabulary comes with mistral-common, which is not installed")
        return "tekken"
    return str(tokenizer_folder(family))


def _run(*arguments: str, settings: Path) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(TESTS.parent), str(TESTS)])
    environment = {**os.environ, "PYTHONPATH": path, "STRUCTGEN_SETTINGS": str(settings)}
    return subprocess.run(
        [sys.executable, "-m", *arguments], capture_output=True, text=True, env=environment, check=False
    )


#: Ids by which the model's logits are wider than the tokenizer; where they are, there is another end of texts, too.
EXTRA = (0, 271)


def _check(family: str, settings: str, folder: Path) -> None:
    """Ask each engine's adapter, after a build step for all of them."""
    definitions = folder / "definitions"
    definitions.mkdir()
    for name, text in DEFINITIONS.items():
        (definitions / name).write_text(text)
    file = folder / "structgen.toml"
    file.write_text(f"cache = {json.dumps(str(folder / 'cache'))}\non_miss = 'refuse'\n{SETTINGS[settings]}")
    tokenizer = _tokenizer(family, folder)
    engines = [argument for name in ENGINES for argument in ("--for", name)]
    warmed = _run("structgen.cli", "warm", str(definitions), "-t", tokenizer, *engines, settings=file)
    assert warmed.returncode == 0, warmed.stderr
    looked = _run("structgen.cli", "doctor", str(definitions), "-t", tokenizer, *engines, settings=file)
    assert looked.returncode == 0, looked.stdout
    for extra in EXTRA:
        served = _run("fakes.serving", str(folder), tokenizer, str(extra), *ENGINES, settings=file)
        assert served.returncode == 0, served.stderr
        found: Any = json.loads((folder / "answers.json").read_text())
        assert found.keys() == KNOWN.keys()
        for engine, answers in found.items():
            unknown = {name: answers.pop(name) for name in list(answers) if name.endswith("unknown")}
            assert unknown != {}
            assert all("not in the cache" in answer for answer in unknown.values()), engine
            assert len(answers) >= 3
            assert {name: answer for name, answer in answers.items() if answer != "hit"} == {}, (engine, extra)


@pytest.mark.parametrize(
    "family", [name if name == "tiny" else pytest.param(name, marks=pytest.mark.nightly) for name in FAMILIES]
)
def test_what_is_warmed_is_served(family: str, tmp_path: Path) -> None:
    _check(family, "plain", tmp_path)


@pytest.mark.nightly
def test_an_operators_settings_are_those_of_the_build_step(tmp_path: Path) -> None:
    _check("tiny", "other", tmp_path)
