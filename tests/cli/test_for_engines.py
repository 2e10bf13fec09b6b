"""``warm``, ``bundle`` and ``doctor`` with ``--for``: what an engine asks for, and whether it is there."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from fakes.tiny_models import byte_tokenizer
from typer.testing import CliRunner, Result

from structgen.cli.app import app
from structgen.integrations.settings import FILE_VARIABLE, variable_of

pytest.importorskip("transformers")

Run = Callable[..., Result]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("tokenizer")
    byte_tokenizer().save_pretrained(folder)
    return str(folder)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tokenizer: str) -> Run:
    """Run a command in this process, in a folder with some definitions."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(FILE_VARIABLE, raising=False)
    Path("person.json").write_text('{"type": "object", "properties": {"name": {"enum": ["a", "b"]}}}')
    Path("date.regex").write_text("[0-9]{4}")

    def invoke(*args: str, code: int = 0) -> Result:
        arguments = [*args, "-t", tokenizer] if args[0] in ("warm", "doctor", "bundle") else args
        result = CliRunner().invoke(app, [str(arg) for arg in arguments])
        assert result.exit_code == code, result.output
        return result

    invoke.tokenizer = tokenizer  # type: ignore[attr-defined]
    return invoke


def found(result: Result) -> dict[str, str]:
    """What ``doctor --json`` says of each definition, by name and way of asking."""
    return {each["subject"].rpartition(", for ")[0]: each["says"].split(":")[0] for each in json.loads(result.stdout)}


def test_a_server_finds_what_is_warmed_for_it_and_nothing_else(run: Run) -> None:
    both = "person.json", "date.regex", "--cache", "c"
    assert found(run("doctor", *both, "--for", "sglang", "--json", code=1)) == {
        "person, asked for by SGLang": "miss",
        "date, asked for by SGLang": "miss",
    }
    remedies = {each["remedy"] for each in json.loads(run("doctor", *both, "--json", code=1).stdout)}
    assert any("structgen warm person.json -t" in remedy for remedy in remedies)
    run("warm", *both)
    # Regexes are asked for as they are written, JSON with other whitespace.
    assert found(run("doctor", *both, "--for", "sglang", "--json", code=1)) == {
        "person, asked for by SGLang": "miss",
        "date, asked for by SGLang": "hit",
    }
    why = next(each["says"] for each in json.loads(run("doctor", *both, "--for", "sglang", "--json", code=1).stdout))
    assert "kept with whitespace='single'" in why
    assert found(run("doctor", *both, "--json")) == {"person": "hit", "date": "hit"}
    run("warm", *both, "--for", "sglang")
    shown = run("doctor", *both, "--for", "sglang", "--for", "tensorrt-llm", "--for", "llama-cpp").output
    assert shown.count("hit:") == 6
    assert "asked for by vLLM's structured outputs and vLLM's logits processor" in run(
        "doctor", *both, "--for", "vllm"
    ).output.replace("\n", " ")


def test_a_bundle_for_an_engine(run: Run) -> None:
    run("bundle", "masks.sgb", "person.json", "date.regex", "--for", "vllm")
    shown = run("doctor", "person.json", "date.regex", "--for", "vllm", "--cache", "masks.sgb").output
    assert shown.count("hit:") == 2
    run("doctor", "person.json", "--cache", "masks.sgb", code=1)


def test_a_manifest_says_for_whom(run: Run) -> None:
    Path("all.toml").write_text(
        'for = "sglang"\n[definitions]\nperson = { file = "person.json" }\n'
        'mine = { file = "person.json", for = ["mlx", "vllm"], whitespace = "compact" }\n'
    )
    warmed = json.loads(run("warm", "all.toml", "--cache", "c", "--json").stdout)["warmed"]
    assert [each["name"] for each in warmed] == ["person", "mine", "mine"]
    assert len({each["states"] for each in warmed[1:]}) == 1
    assert found(run("doctor", "all.toml", "--cache", "c", "--json")) == {
        "person, asked for by SGLang": "hit",
        "mine, asked for by a program": "hit",
        "mine, asked for by vLLM's logits processor": "hit",
    }


def test_what_no_request_asks_for_is_a_failure_and_the_rest_is_warmed(run: Run) -> None:
    Path("all.toml").write_text('[definitions.wide]\nfile = "person.json"\nwhitespace = 2\n')
    result = run("warm", "all.toml", "date.regex", "--for", "tensorrt-llm", "--cache", "c", code=1)
    assert "failed: all: definition 'wide': TensorRT-LLM asks for definitions by their texts" in result.output
    assert "hit:" in run("doctor", "date.regex", "--for", "tensorrt-llm", "--cache", "c").output
    said = run("doctor", "all.toml", "--for", "tensorrt-llm", "--cache", "c", code=1).output
    assert "operator's settings" in said


def test_settings_are_the_operators(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "settings.toml"
    tables = "[mlx]\nwhitespace = 'any'\n[vllm]\ncache = 'other'\n"
    file.write_text(f"cache = {json.dumps(str(tmp_path / 'own'))}\n{tables}")
    run("warm", "person.json", "--for", "mlx", "--settings", "settings.toml")
    assert "hit:" in run("doctor", "person.json", "--for", "mlx", "--settings", "settings.toml").output
    assert (tmp_path / "own").is_dir()
    run("doctor", "person.json", "--for", "mlx", "--cache", "own", code=1)
    monkeypatch.setenv(FILE_VARIABLE, str(file))
    run("doctor", "person.json", "--for", "mlx")
    monkeypatch.setenv(variable_of("mlx"), '{"whitespace": "compact"}')
    run("doctor", "person.json", "--for", "mlx", code=1)
    assert "a cache for each" in run("warm", "person.json", "--for", "mlx", "--for", "vllm", code=2).output
    assert "Did you mean sglang?" in run("warm", "person.json", "--for", "sglan", "--cache", "c", code=2).output
    monkeypatch.setenv(variable_of("mlx"), '{"whitespaces": "compact"}')
    assert "Did you mean whitespace?" in run("warm", "person.json", "--for", "mlx", code=2).output


def test_definitions_are_looked_for_with_a_tokenizer(run: Run) -> None:
    result = CliRunner().invoke(app, ["doctor", "person.json", "--for", "vllm"])
    assert result.exit_code == 2
    assert "--tokenizer" in result.output


def test_what_is_warmed_for_an_engine_is_not_removed_as_that_of_others(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("obstore")
    store = (tmp_path / "store").as_uri()
    run("warm", "person.json", "date.regex", "--for", "sglang", "--cache", "c", "--store", store)
    manifests = "--manifest", "person.json", "--manifest", "date.regex"
    collect = "cache", "gc", "--store", store, *manifests, "-t", run.tokenizer  # type: ignore[attr-defined]
    assert run(*collect, "--for", "sglang").output.startswith("removed 0 entries of")
    assert run(*collect).output.startswith("removed 1 entry of")
