"""Options that several subcommands share, and what they are turned into."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import StructgenError, VocabularyError

if TYPE_CHECKING:
    from ..budget import Budget
    from ..cache.cache import Cache
    from ..definitions.loading import NamedDefinition
    from ..integrations.engines import Wanted
    from ..vocabulary.vocabulary import Vocabulary

#: What definitions are read from, in words.
DEFINITION_FILES = (
    "Files (.regex, .words, .json, .tag.json, .tools.json, .lark, .gbnf, .ebnf), manifests (.toml), folders of them"
)

#: Of the names of index files.
INDEX_SUFFIX = ".sgx"

_SPANS = {"m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "ki": 1 << 10, "mi": 1 << 20, "gi": 1 << 30}


def parse_size(text: str) -> int:
    """A number of bytes: ``4096``, ``500MB``, ``1.5GiB``. Raises `typer.BadParameter` for anything else."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmg]?i?)b?", text.strip(), re.I)
    if found is None or found[2].lower() not in _UNITS:
        raise typer.BadParameter(f"{text!r} is not a size. Write 4096, 500MB or 1.5GiB.")
    return int(float(found[1]) * _UNITS[found[2].lower()])


def parse_span(text: str) -> float:
    """Seconds: ``90m``, ``12h``, ``30d``, ``8w``. Raises `typer.BadParameter` for anything else."""
    found = re.fullmatch(r"(\d{1,9}(?:\.\d+)?)([mhdw])", text.strip())
    if found is None:
        raise typer.BadParameter(f"{text!r} is not a time. Write 90m, 12h, 30d or 8w.")
    return float(found[1]) * _SPANS[found[2]]


_TOKENIZER = typer.Option(
    "--tokenizer",
    "-t",
    metavar="T",
    help="A model's folder or hub name, a tekken.json, a .gguf file, or the word [bold]tekken[/] for the newest "
    "one that mistral-common ships.",
)
Tokenizer = Annotated[str, _TOKENIZER]
Tokenizers = Annotated[list[str], _TOKENIZER]
CacheFolder = Annotated[
    Path | None,
    typer.Option(
        "--cache", metavar="DIR", help="The cache's folder.", show_default="structgen's folder in the user's cache"
    ),
]
Store = Annotated[
    str,
    typer.Option(
        "--store",
        metavar="URL",
        show_default=False,
        help="An object store: s3://bucket/prefix, gs://bucket/prefix, file:///folder.",
    ),
]
SignKey = Annotated[
    Path | None, typer.Option("--sign-key", metavar="FILE", help="Sign with this Ed25519 private key, in PEM.")
]
VerifyKeys = Annotated[
    list[Path] | None,
    typer.Option("--verify-key", metavar="FILE", help="Take only what this Ed25519 public key signed; or several."),
]
Dialect = Annotated[
    str,
    typer.Option(
        "--dialect",
        metavar="NAME",
        show_default="Python's regexes, XGrammar's EBNF",
        help="What .regex files (re, ecma, rust) or .ebnf files (xgrammar, transformers-cfg) were written for.",
    ),
]
Engines = Annotated[
    list[str] | None,
    typer.Option(
        "--for",
        metavar="ENGINE",
        show_default="what the definitions say themselves",
        help="The engine that asks for them: vllm, sglang, tensorrt-llm, transformers, llama-cpp, mlx, "
        "onnxruntime-genai, outlines; or several.",
    ),
]
SettingsFile = Annotated[
    Path | None,
    typer.Option(
        "--settings", metavar="FILE", show_default="that of STRUCTGEN_SETTINGS", help="The operator's settings, TOML."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON on standard output, for scripts.")]
MaxStates = Annotated[
    int | None, typer.Option(metavar="N", min=1, help="Give up on a definition beyond this many states.")
]
MaxMemory = Annotated[
    int | None,
    typer.Option(metavar="SIZE", parser=parse_size, help="... beyond this much memory for its arrays: 500MB, 2GiB."),
]
MaxSeconds = Annotated[float | None, typer.Option(metavar="S", min=0.001, help="... beyond this many seconds.")]


def make_budget(states: int | None, memory: int | None, seconds: float | None) -> Budget:
    """A `Budget` of the limits that were given, and its defaults for the rest."""
    from ..budget import Budget

    given = {"states": states, "memory": memory, "seconds": seconds}
    return Budget(**{name: value for name, value in given.items() if value is not None})  # type: ignore[arg-type]


def open_cache(
    folder: Path | None, url: str | None = None, sign: Path | None = None, verify: Sequence[Path] = ()
) -> Cache:
    """The cache in ``folder``, or the user's own one, with an object store behind it where there is a URL.

    Raises `typer.BadParameter` for keys without a store.
    """
    from ..cache.cache import Cache

    if url is not None:
        return open_store(folder, url, sign, verify)
    if sign is not None or verify:
        raise typer.BadParameter("Keys are for what a --store holds; name one.")
    return Cache(folder)


def open_store(folder: Path | None, url: str, sign: Path | None = None, verify: Sequence[Path] = ()) -> Cache:
    """`open_cache` with an object store, which is written at once; with the files of its keys."""
    from ..cache.cache import Cache
    from ..cache.remote.values import ObjectStore

    private = None if sign is None else sign.read_bytes()
    keys = tuple(path.read_bytes() for path in verify)
    return Cache(folder, store=ObjectStore(url, write="now", sign_key=private, verify_keys=keys))


def load_vocabulary(spec: str) -> Vocabulary:
    """Read the vocabulary that ``--tokenizer`` names; see `Tokenizer`. Raises `VocabularyError`."""
    from ..vocabulary.vocabulary import Vocabulary

    path = Path(spec)
    if spec == "tekken":
        return Vocabulary.from_tekken()
    if path.is_file():
        if path.suffix == ".gguf":
            return Vocabulary.from_gguf(path)
        if "tekken" not in path.name:
            raise VocabularyError(
                f"a tokenizer is a folder, a hub name, a tekken.json or a .gguf, got the file {path.name}",
                where=spec,
                remedy="Pass the folder that holds the file.",
            )
        return Vocabulary.from_tekken(path)
    if (path / "tekken.json").is_file() and not (path / "tokenizer.json").is_file():
        return Vocabulary.from_tekken(path / "tekken.json")
    return Vocabulary.from_pretrained(spec)


def wanted_by(
    engines: Sequence[str], definitions: Iterable[NamedDefinition], settings: Path | None, tokenizers: Iterable[str]
) -> list[Wanted | StructgenError]:
    """Return definitions as engines ask for them, those of their manifest or else these; an error where none asks.

    Of the tokenizers the chat templates are read, which say how models reason.

    A definition that is for no engine is wanted as it is. Raises `DefinitionError` for engines that are not known.
    """
    from ..integrations.engines import Wanted, wanted_by
    from ..integrations.settings import settings_for

    templates = [template for each in tokenizers if (template := _chat_template(Path(each))) is not None]
    known = {name: settings_for(name, file=settings) for name in engines}
    found: list[Wanted | StructgenError] = []
    for each in definitions:
        names = each.engines or engines
        known |= {name: settings_for(name, file=settings) for name in names if name not in known}
        for name in names:
            found += wanted_by(name, [each], known[name], templates)
        if not names:
            found.append(Wanted("", (), each))
    return found


def _chat_template(folder: Path) -> object:
    """Return an object with the chat template of a tokenizer in a folder; None where none can be read."""
    text, config = folder / "chat_template.jinja", folder / "tokenizer_config.json"
    try:
        if text.is_file():
            return SimpleNamespace(chat_template=text.read_text(encoding="utf-8"))
        found = json.loads(config.read_text(encoding="utf-8")) if config.is_file() else {}
    except (OSError, ValueError):  # which says whoever reads the tokenizer
        return None
    return SimpleNamespace(chat_template=found["chat_template"]) if "chat_template" in found else None


def cache_of(
    engines: Sequence[str], definitions: Iterable[NamedDefinition], folder: Path | None, settings: Path | None
) -> Path | None:
    """The folder of the cache: the one given, or that of the operator's settings for the engines.

    Raises `typer.BadParameter` where the engines have different ones.
    """
    names = {*engines, *(name for each in definitions for name in each.engines)}
    if folder is not None or not names:
        return folder
    from ..integrations.settings import settings_for

    [found, *others] = {settings_for(name, file=settings).cache for name in names}
    if others:
        raise typer.BadParameter("The settings have a cache for each of the engines; name one with --cache.")
    return Path(found) if isinstance(found, str) else None


def print_json(value: object) -> None:
    """Print one JSON document on standard output."""
    typer.echo(json.dumps(value, indent=2))
