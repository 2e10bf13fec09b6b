"""README and docs: their Python runs, and their links lead somewhere."""

from __future__ import annotations

import doctest
import re
import sys
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from fakes import fake_vllm
from fakes.fake_llama_cpp import FakeLlama
from fakes.fake_onnxruntime_genai import FakeGenerator
from fakes.fakes import byte_vocabulary
from fakes.tiny_models import byte_tokenizer, tiny_llama

import structgen
import structgen.runtime

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    ROOT / "examples/README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]

#: Fenced Python. A page is a script: its blocks run one after the other, with the names that `SETUPS` has for what
#: its prose speaks of. Those whose fence says ``python no-run`` are only parsed: they need a network, or an engine
#: that has no fake. Fenced ``pycon`` is a session, and runs as a doctest.
FENCE = re.compile(r"^```python( no-run)?\n(.*?)^```$", re.M | re.S)
SESSION = re.compile(r"^```pycon\n(.*?)^```$", re.M | re.S)
#: In backquotes: a path in the repository, or in the package; a name of two words or more that a class could have.
PATH = re.compile(r"`((?:structgen|tests|benchmarks|examples|compiler|runtime|definitions|kernels)/[\w/.]+)`")
CLASS = re.compile(r"`((?:[A-Z][a-z]+){2,})[`.(]")
LINK = re.compile(r"\[[^\]\n]*\]\(([^)\s]+)\)")
PICTURE = re.compile(r"<(?:img src|source [^>]*srcset)=\"([^\"]+)\"")

#: Bytes of a picture at most: they come with every clone.
LARGEST_PICTURE = 150_000


def blocks(page: Path) -> list[tuple[str, bool, str]]:
    """The fenced Python blocks of a page: ``page:line``, whether it runs, and its text."""
    text = page.read_text(encoding="utf-8")
    return [
        (f"{page.relative_to(ROOT)}:{text.count(chr(10), 0, fence.start()) + 1}", not fence[1], fence[2])
        for fence in FENCE.finditer(text)
    ]


def on_batches(_: pytest.MonkeyPatch) -> dict[str, Any]:
    torch = pytest.importorskip("torch")
    vocabulary = bytewise_vocabulary()
    date, person = (
        structgen.compile(each, vocabulary)
        for each in (structgen.Regex(r"\d{4}-\d{2}-\d{2}"), structgen.JsonSchema({"properties": {"name": {}}}))
    )
    return {
        "vocabulary": vocabulary, "date": date, "person": person, "max_new_tokens": 3, "guide": structgen.Guide(date),
        "model": lambda _: torch.zeros(4, vocabulary.size), "sample": lambda logits: logits.argmax(-1).tolist(),
        "above": [-1, 0, 1, -1], "rows": [0, 0, 0, 1],
        "version": structgen.compile(structgen.Regex(r"\d+\.\d+"), vocabulary),
    }  # fmt: skip


def on_streaming(_: pytest.MonkeyPatch) -> dict[str, Any]:
    step = {"properties": {"do": {"enum": ["wait", "go"]}}, "additionalProperties": False}
    schema = {
        "type": "object",
        "required": ["steps"],
        "additionalProperties": False,
        "properties": {"steps": {"type": "array", "items": step, "minItems": 1, "maxItems": 2}},
    }
    index = structgen.compile(structgen.JsonSchema(schema, whitespace="compact"), bytewise_vocabulary())
    return {
        "sg": structgen,
        "index": index,
        "start": print,
        "sample": lambda mask: int(structgen.runtime.ids_of(mask)[-1]),
    }


def on_transformers(patch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What is read from the hub is a small model."""
    transformers = pytest.importorskip("transformers")
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformers.generation.continuous_batching.cb_logits_processors", reason="< 5.10")
    tokenizer = byte_tokenizer()
    vocabulary = structgen.Vocabulary.from_transformers(tokenizer)
    width, eos, pad = vocabulary.size, tokenizer.eos_token_id, tokenizer.pad_token_id
    patch.setattr(transformers.AutoTokenizer, "from_pretrained", lambda _: tokenizer)
    model = tiny_llama(width, eos, pad)
    patch.setattr(transformers.AutoModelForCausalLM, "from_pretrained", lambda _: model)
    # Otherwise most of the machine's memory is taken for the cache.
    blocks = transformers.ContinuousBatchingConfig(num_blocks=64, max_batch_tokens=64, page_size=16)
    begin = partial(model.init_continuous_batching, continuous_batching_config=blocks)
    patch.setattr(model, "init_continuous_batching", begin)
    index = structgen.compile(structgen.Regex(r"\d{4}-\d{2}-\d{2}"), vocabulary)
    config = transformers.GenerationConfig(eos_token_id=eos, pad_token_id=pad, max_new_tokens=4)
    return {
        **dict.fromkeys(("date_index", "number_index", "person_index"), index),
        "config": config,
        "batch": 2,
        "model_step": lambda: torch.zeros(2, width),
    }


def on_migrating(patch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A model whose logits are all alike, for texts that end by themselves."""
    torch, tokenizer = pytest.importorskip("torch"), byte_tokenizer()
    schema = {"type": "array", "items": {"enum": ["yes", "no"]}, "minItems": 2, "maxItems": 2}
    return {
        "tokenizer": tokenizer, "width": len(tokenizer) + 3, "schema": schema,
        "pattern": r"[0-9]{4}-[0-9]{2}-[0-9]{2}", "sample": lambda logits: int(logits.argmax(-1)),
        "model_step": lambda: torch.zeros(1, len(tokenizer) + 3),
    }  # fmt: skip


def bytewise_vocabulary() -> Any:
    """That of a tokenizer, so that it knows how texts are split."""
    pytest.importorskip("transformers")
    return structgen.Vocabulary.from_transformers(byte_tokenizer())


def on_engines(patch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Engines that are fakes; mlx-lm and Outlines have none, and `make test-engines` runs the like."""
    engines: dict[str, dict[str, Any]] = {
        "llama_cpp": {"Llama": LlamaOfPath, "LogitsProcessorList": list},
        "onnxruntime_genai": {
            "Model": str,
            "Tokenizer": lambda model: SimpleNamespace(encode=lambda text: []),
            "GeneratorParams": str,
            "Generator": lambda model, parameters: FakeGenerator([[]]),
        },
        "vllm": {"LLM": ValidatingLLM, "SamplingParams": SimpleNamespace},
    }
    for name, content in (*fake_vllm.MODULES.items(), *engines.items()):
        module = ModuleType(name)
        vars(module).update(__path__=[], **content)
        patch.setitem(sys.modules, name, module)
    for name in ("vllm", "vllm_backend"):
        patch.setitem(sys.modules, f"structgen.integrations.{name}", ModuleType(name))  # forgotten again at the end
        patch.delitem(sys.modules, f"structgen.integrations.{name}")
    patch.setenv("STRUCTGEN_CACHE_DIR", str(Path.cwd() / "cache"))  # the test's own folder
    patch.setattr(FakeGenerator, "append_tokens", lambda self, tokens: None, raising=False)
    patch.setattr(structgen.Vocabulary, "from_pretrained", lambda _: byte_vocabulary())
    return {}


class LlamaOfPath(FakeLlama):
    """A model that draws at random."""

    def __init__(self, path: str) -> None:
        super().__init__(0)

    def __call__(self, prompt: str, *, logits_processor: list[Any], max_tokens: int) -> list[int]:
        return self.generate(list(prompt.encode()), logits_processor[0], max_tokens)


class ValidatingLLM:
    """Does with requests what vLLM does before it begins; its texts are empty."""

    def __init__(self, model: str, *, additional_config: dict[str, Any]) -> None:
        from structgen.integrations.vllm import settings_of

        settings_of(SimpleNamespace(additional_config=additional_config))

    def generate(self, prompts: list[str], params: Any) -> list[Any]:
        from structgen.integrations.vllm import StructgenLogitsProcessor

        StructgenLogitsProcessor.validate_params(params)
        return [SimpleNamespace(outputs=[SimpleNamespace(text="")]) for _ in prompts]


#: By page: what its prose speaks of, and its blocks do not make.
SETUPS: dict[str, Callable[[pytest.MonkeyPatch], dict[str, Any]]] = {
    "batches.md": on_batches, "streaming.md": on_streaming, "transformers.md": on_transformers,
    "engines.md": on_engines, "migrating.md": on_migrating, "quickstart.md": on_transformers,
    "traces.md": on_transformers, "README.md": on_transformers,
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::structgen.errors.GrammarWarning")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_python_blocks_run(page: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "argv", [page.name])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(ROOT), *sys.path])
    found = [
        (runs, compile(source, place, "exec", dont_inherit=True))  # a reader has no annotations of the future
        for place, runs, source in blocks(page)
    ]
    if not any(runs for runs, _ in found):
        return
    names: dict[str, Any] = {"__name__": "example", **SETUPS.get(page.name, lambda _: {})(monkeypatch)}  # type: ignore[no-untyped-call]
    for runs, code in found:
        if runs:
            exec(code, names)


def test_the_readme_is_short_and_all_of_it_runs() -> None:
    found = blocks(ROOT / "README.md")
    assert len(found) >= 3
    assert all(runs for _, runs, _ in found)
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= 1000


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_sessions_show_what_python_prints(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    names: dict[str, Any] = {}
    for session in SESSION.finditer(text):
        line = text.count("\n", 0, session.start())
        test = doctest.DocTestParser().get_doctest(session[1], {}, page.name, str(page), line)
        test.globs = names  # as a page's blocks do, its sessions go on from one another
        runner.run(test, clear_globs=False)
    assert runner.summarize(verbose=False).failed == 0


def test_package_docstring() -> None:
    result = doctest.testmod(structgen)
    assert result.attempted >= 4
    assert result.failed == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_lead_somewhere(page: Path) -> None:
    links = [target.split("#")[0] for target in LINK.findall(page.read_text(encoding="utf-8"))]
    local = [target for target in links if target and "://" not in target]
    assert [target for target in local if not (page.parent / target).exists()] == []


def test_pictures_are_there_and_small() -> None:
    shown = {(page.parent / name).resolve() for page in PAGES for name in PICTURE.findall(page.read_text("utf-8"))}
    assert shown == set((ROOT / "docs" / "images").iterdir())
    for picture in shown:
        assert picture.read_bytes().startswith(b"\x89PNG")
        assert picture.stat().st_size <= LARGEST_PICTURE


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_paths_and_classes_are_called_so(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert [path for path in PATH.findall(text) if not any(map(Path.exists, files_of(path)))] == []
    assert [name for name in CLASS.findall(text) if name not in words_of_code()] == []


def files_of(path: str) -> list[Path]:
    return [folder / (path + ending) for folder in (ROOT, ROOT / "structgen") for ending in ("", ".py")]


@cache
def words_of_code() -> frozenset[str]:
    folders = ("structgen", "tests", "benchmarks", "examples")
    files = [file for folder in folders for file in (ROOT / folder).rglob("*.py") if file != Path(__file__)]
    return frozenset(word for file in files for word in re.findall(r"\w+", file.read_text(encoding="utf-8")))
