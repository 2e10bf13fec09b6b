"""An operator's settings: where indexes are looked for, what a compile may cost, and what requests leave open.

They come from one TOML file, which `FILE_VARIABLE` names, from an environment variable of the engine, and from the
engine's own configuration, each before the one that it is read after. Adapters, ``structgen warm --for`` and
``structgen doctor --for`` read them by `settings_for`.
"""

from __future__ import annotations

import difflib
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..budget import Budget
from ..definitions import JsonSchema
from ..definitions.values import DIALECT_FLAGS, TAG_OPTIONS
from ..errors import ArgumentError, CacheError, DefinitionError
from ..system.types import Foreign, JsonMap
from ..tools import tool_styles

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from ..cache.cache import Cache
    from ..cache.remote.values import Write

#: The engines by name; `structgen.integrations.engines` says how each asks for definitions.
ENGINE_NAMES = ("vllm", "sglang", "tensorrt-llm", "transformers", "llama-cpp", "mlx", "onnxruntime-genai", "outlines")

#: The environment variable with the path of the operator's file.
FILE_VARIABLE = "STRUCTGEN_SETTINGS"

#: Which schemas of tools hold for arguments: of those that do not say ``"strict": false``, all, those with ``true``.
TOOL_RULES = ("said", "always", "asked")

#: The settings by name, each with its meaning.
SETTINGS = {
    "cache": "the folder of the cache, or a bundle; True, the default, for the default folder; False for none",
    "store": "the URL of an object store behind the cache",
    "store_writes": "true where what is compiled goes to the store; false is the default",
    "verify_keys": "files of Ed25519 public keys: what none of them signed is not taken from the store",
    "indexes": "the folder of indexes that requests may name",
    "on_miss": '"compile" or "refuse" what is not in the cache',
    "seconds": "how long one compile may take",
    "states": "how many states one compile may make",
    "memory": "how many bytes one compile may hold",
    "max_tokens": "true where texts are to be complete within a request's max_tokens; false is the default",
    "tool_style": 'how the model writes tool calls, a name; "auto", the default, is by the chat template',
    "strict_tools": f"whose arguments follow their schemas, one of {', '.join(map(repr, TOOL_RULES))}",
    "dialect": f"what regexes are written in, one of {', '.join(DIALECT_FLAGS)}",
    **{name: f"what JsonSchema takes as {name}" for name in TAG_OPTIONS},
}

#: Settings that mean nothing to engines that tell a backend no more than a request's definition.
UNTOLD = ("max_tokens", "tool_style", "strict_tools")


@dataclass(frozen=True)
class Settings:
    """An operator's settings; see `SETTINGS`. Raises `DefinitionError` for what means nothing.

    ``options`` are those of JSON Schemas and structural tags, for requests that leave them open.
    """

    cache: bool | str = True
    store: str = ""
    store_writes: bool = False
    verify_keys: tuple[str, ...] | list[str] = ()
    indexes: str = ""
    on_miss: str = "compile"
    seconds: float = Budget.request.seconds
    states: int = Budget.request.states
    memory: int = Budget.request.memory
    max_tokens: bool = False
    tool_style: str = "auto"
    strict_tools: str = "said"
    dialect: str = "re"
    options: Mapping[str, Foreign] = field(default_factory=dict)

    def __post_init__(self) -> None:
        is_right = {
            "cache": isinstance(self.cache, bool | str),
            "store": isinstance(self.store, str) and bool(self.cache or not self.store),
            "store_writes": isinstance(self.store_writes, bool),
            "verify_keys": isinstance(self.verify_keys, list | tuple)
            and all(isinstance(path, str) for path in self.verify_keys),
            "indexes": isinstance(self.indexes, str),
            "on_miss": self.on_miss in ("compile", "refuse"),
            "max_tokens": isinstance(self.max_tokens, bool),
            "tool_style": self.tool_style == "auto" or self.tool_style in (style.name for style in tool_styles()),
            "strict_tools": self.strict_tools in TOOL_RULES,
            "dialect": self.dialect in DIALECT_FLAGS,
            **{name: self._is_positive(name) for name in ("seconds", "states", "memory")},
        }
        for name in (name for name, right in is_right.items() if not right):
            raise DefinitionError(f"{name} is {getattr(self, name)!r}", where=name, remedy=f"It is {SETTINGS[name]}.")
        JsonSchema(True, **self.options)  # which checks them

    def _is_positive(self, name: str) -> bool:
        try:
            replace(Budget.request, **{name: getattr(self, name)})
        except ArgumentError:
            return False
        return True

    @property
    def budget(self) -> Budget:
        """The budget of each compile."""
        return replace(Budget.request, seconds=self.seconds, states=self.states, memory=self.memory)

    def open_cache(self) -> Cache | None:
        """The cache, with its store; None where there is to be none.

        Raises `CacheError` for a store, a key or a bundle that cannot be used.
        """
        from ..cache.cache import Cache

        if not self.cache:
            return None
        folder = None if self.cache is True else self.cache
        if not self.store:
            return Cache(folder)
        from ..cache.remote.values import ObjectStore

        try:
            keys = tuple(Path(path).read_bytes() for path in self.verify_keys)
        except OSError as error:
            what = f"a key cannot be read: {error.strerror or error}"
            raise CacheError(what, where="verify_keys", remedy="Name files of public keys, in PEM.") from error
        write: Write = "behind" if self.store_writes else "never"
        return Cache(folder, store=ObjectStore(self.store, write=write, verify_keys=keys))

    @classmethod
    def read(cls, settings: object, where: str = "") -> Settings:
        """The settings that a mapping holds."""
        if isinstance(settings, cls):
            return settings
        if not isinstance(settings, Mapping):
            raise DefinitionError(f"the settings of structgen are a dict, got {type(settings).__name__}", where=where)
        for name in sorted(str(name) for name in settings if name not in SETTINGS):
            near = difflib.get_close_matches(name, SETTINGS, 1)
            remedy = f"Did you mean {near[0]}?" if near else f"There are {', '.join(SETTINGS)}."
            raise DefinitionError(f"structgen has no setting {name!r}", where=where or name, remedy=remedy)
        own = {name: value for name, value in settings.items() if name in _OWN}
        return cls(**own, options={name: value for name, value in settings.items() if name not in _OWN})


_OWN = {each.name for each in fields(Settings)} - {"options"}


def variable_of(engine: str) -> str:
    """The environment variable with the settings of one engine, a JSON object: ``STRUCTGEN_VLLM``."""
    return f"STRUCTGEN_{engine.upper().replace('-', '_')}"


def settings_for(
    engine: str, given: object = None, *, without: tuple[str, ...] = (), file: str | os.PathLike[str] | None = None
) -> Settings:
    """Return the settings of one engine.

    Parameters
    ----------
    engine:
        A name of `ENGINE_NAMES`.
    given:
        Settings in the engine's own configuration. They override the environment, which overrides the file.
    without:
        Settings that do not apply to the engine: an error where they are set for it alone.
    file:
        The operator's file. None: the one that `FILE_VARIABLE` names.

    Raises
    ------
    DefinitionError
        For an unknown engine, a file or a variable that cannot be read, and invalid settings.
    """
    if engine not in ENGINE_NAMES:
        near = difflib.get_close_matches(engine, ENGINE_NAMES, 1)
        remedy = f"Did you mean {near[0]}?" if near else f"Use one of {', '.join(ENGINE_NAMES)}."
        raise DefinitionError(f"there is no engine {engine!r}", remedy=remedy)
    path, variable = file or os.environ.get(FILE_VARIABLE, ""), variable_of(engine)
    common, own = _read_file(Path(path), engine) if path else ({}, {})
    sources: list[tuple[str, object]] = [(str(path), own)]
    try:
        sources.append((variable, json.loads(os.environ.get(variable, "{}"))))
    except ValueError as error:
        raise DefinitionError(f"the settings of structgen are not JSON: {error}", where=variable) from error
    sources.append(("", {} if given is None else given))
    found = dict(common)
    for where, source in sources:
        Settings.read(source, where)
        assert isinstance(source, Mapping)
        for name in source.keys() & set(without):
            raise DefinitionError(f"the setting {name!r} has no effect here", where=where, remedy="Leave it out.")
        found |= source
    return Settings.read(found, str(path))


def _read_file(path: Path, engine: str) -> tuple[dict[str, Foreign], JsonMap]:
    """Return the settings in the operator's file, for all engines and for one."""
    try:
        held = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        what = f"the settings cannot be read: {error.strerror or error}"
        raise DefinitionError(what, where=str(path), remedy=f"Correct {FILE_VARIABLE}.") from error
    except (ValueError, RecursionError) as error:  # of TOML, or of UTF-8
        what = f"the settings are not TOML: {error}"
        raise DefinitionError(what, where=str(path), remedy="Correct it (toml.io).") from error
    tables = {name: held.pop(name) for name in ENGINE_NAMES if name in held}
    Settings.read(held, str(path))
    for name, table in tables.items():
        Settings.read(table, f"{path}, [{name}]")
    return held, tables.get(engine, {})
