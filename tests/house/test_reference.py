"""The reference: each public name is on one page, and its docstring says each parameter."""

from __future__ import annotations

import inspect
import re
import types
from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

import structgen
from structgen import errors, grammars, migrate, runtime

REFERENCE = Path(__file__).resolve().parents[2] / "docs/reference"
BLOCK = re.compile(r"^::: (\S+)\n(?:    .*\n)*?(?:      members: \[(.*)\]\n|(?=\n|:::|\Z))", re.M)
#: By engines that may not be here: their docstrings are read by griffe alone.
ENGINES = ("vllm", "vllm_backend", "sglang", "tensorrt_llm")
#: How no docstring begins.
OBLIQUE = re.compile(r"(What|The same|So many|Of|Where|As|That|Those|Whoever|Whatever)\b")
PAGES = {page.name: page.read_text(encoding="utf-8") for page in sorted(REFERENCE.glob("*.md"))}
OPTIONS = PAGES.pop("options.md")  # has parameters of names that are on other pages
BLOCKS = [(page, block[1], block[2] or "") for page, text in PAGES.items() for block in BLOCK.finditer(text)]


def resolve(name: str) -> Any:
    """The object of a dotted name, whose modules are imported."""
    module, _, rest = name, "", ""
    while True:
        try:
            found = import_module(module)
        except ModuleNotFoundError:
            module, _, last = module.rpartition(".")
            rest = f"{last}.{rest}".rstrip(".")
        else:
            return attrgetter(rest)(found) if rest else found


def documented() -> Iterator[tuple[str, Any]]:
    """Each name of the reference, members included, and its object."""
    for _, name, members in BLOCKS:
        if name.split(".")[2] in ENGINES if name.startswith("structgen.integrations.") else False:
            continue
        yield name, resolve(name)
        for member in filter(None, members.split(", ")):
            yield f"{name}.{member}", inspect.getattr_static(resolve(name), member, None)


def public_names() -> Iterator[str]:
    yield from (f"structgen.{name}" for name in structgen.__all__)
    for module in (runtime, grammars, migrate):
        yield from (f"{module.__name__}.{name}" for name in module.__all__)
    for name, value in vars(errors).items():
        if isinstance(value, type) and issubclass(value, Exception):
            yield f"structgen.errors.{name}"


def test_each_public_name_is_on_one_page() -> None:
    pages = Counter(id(resolve(name)) for _, name, _ in BLOCKS if not any(f".{each}." in name for each in ENGINES))
    assert {name: pages[id(resolve(name))] for name in public_names() if pages[id(resolve(name))] != 1} == {}


def unwrapped(value: Any) -> Any:
    """The function of a method, a property or a cached one."""
    if isinstance(value, (classmethod, staticmethod)):
        return value.__func__
    return getattr(value, "fget", None) or getattr(value, "func", None) or value


NAMES = dict(documented())
CALLABLES = {name: value for name, value in NAMES.items() if callable(unwrapped(value))}


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_begins_plainly(name: str) -> None:
    value = unwrapped(NAMES[name])
    if not (callable(value) or inspect.ismodule(value)) or isinstance(value, types.MemberDescriptorType):
        return  # an attribute, which its class describes
    text = inspect.getdoc(value)
    assert text, "no docstring"
    assert not OBLIQUE.match(text), text.splitlines()[0]
    assert re.match(r"[^.]*\.|[^\n]*:", text), "no first sentence"


@pytest.mark.parametrize("name", CALLABLES)
def test_the_docstring_says_each_parameter(name: str) -> None:
    value = unwrapped(CALLABLES[name])
    if isinstance(CALLABLES[name], (property, cached_property)):
        return
    if isinstance(value, type) and (issubclass(value, Exception) or getattr(value, "_is_protocol", False)):
        return
    text = inspect.getdoc(value) or ""
    signature = inspect.signature(value).parameters
    rest = [name for name, each in signature.items() if each.kind == inspect.Parameter.VAR_KEYWORD]
    wanted = [each for each in signature if each not in ("self", "cls")]
    if "Other Parameters\n---" in text:  # which are those
        wanted = [each for each in wanted if each not in rest]
    if len(wanted) == 1 and re.search(rf"``{wanted[0]}``", text):
        return  # one sentence says it
    sections = re.findall(r"^(?:Other )?Parameters\n-+\n(.*?)(?=^\S[^\n]*\n---|\Z)", text, re.M | re.S)
    said = [each for line in re.findall(r"^(\w[\w, *]*) ?:", "\n".join(sections), re.M) for each in line.split(", ")]
    assert [each for each in wanted if each not in said] == []
    assert [each for each in said if each not in wanted and not rest] == []


def test_the_page_of_options_has_those_that_matter() -> None:
    names = re.findall(r"^::: structgen\.(\S+)$", OPTIONS, re.M)
    assert {"compile", "JsonSchema", "Grammar", "Regex", "Guide", "GuideBatch", "Budget"} <= set(names)
    makers = {name for name in vars(structgen.Vocabulary) if name.startswith("from_")}
    assert {f"Vocabulary.{name}" for name in makers - {"from_table", "from_sections", "from_buffer"}} <= set(names)
