"""`structgen.system.dataclass` makes classes as Python's own `dataclasses` does, which is the judge."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from dataclasses import KW_ONLY, InitVar
from typing import Any, ClassVar

import pytest

from structgen.system import dataclass as ours


def _classes(of: Any) -> list[type]:
    """The same classes, made by one module or the other."""

    @of.dataclass(frozen=True)
    class Pair:
        left: int
        right: str = "r"
        kinds: ClassVar[int] = 2

    @of.dataclass(frozen=True)
    class Three(Pair):
        more: tuple[int, ...] = ()

        def __post_init__(self) -> None:
            object.__setattr__(self, "more", (*self.more, self.left))

    @of.dataclass
    class Grows:
        values: list[int] = of.field(default_factory=list)
        seen: dict[str, int] = of.field(default_factory=dict, init=False)

    @of.dataclass(frozen=True, eq=False, repr=False)
    class Itself:
        value: int

    @of.dataclass(frozen=True)
    class Shown:
        value: int

        def __repr__(self) -> str:
            return "shown"

    @of.dataclass(frozen=True)
    class Given:
        source: InitVar[str]
        _: KW_ONLY
        option: bool = True
        note: str = of.field(default="", compare=False, repr=False)
        text: str = of.field(init=False)

        def __post_init__(self, source: str) -> None:
            object.__setattr__(self, "text", source.upper())

    return [Pair, Three, Grows, Itself, Shown, Given]


CALLS: list[tuple[int, tuple[Any, ...], dict[str, Any]]] = [
    (0, (1,), {}), (0, (1, "a"), {}), (0, (), {"left": 1, "right": "a"}), (0, (), {}), (0, (1, 2, 3), {}),
    (0, (1,), {"kinds": 3}), (1, (1, "a", (2,)), {}), (1, (4,), {"more": (5,)}), (2, (), {}), (2, ([1],), {}),
    (2, (), {"seen": {}}), (3, (1,), {}), (4, (1,), {}),
    (5, ("a",), {}), (5, ("a", False), {}), (5, ("a",), {"option": False, "note": "n"}), (5, ("a",), {"text": "b"}),
]  # fmt: skip


def _described(of: Any, number: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> object:
    """What can be told of an object that a call makes."""
    cls = _classes(of)[number]
    try:
        made, again = cls(*args, **kwargs), cls(*args, **kwargs)
    except TypeError:
        return "refused"
    names = [each.name for each in dataclasses.fields(made)]  # type: ignore[arg-type]
    told: list[object] = [vars(made), names, dataclasses.asdict(made), made == again, made != (1,)]  # type: ignore[call-overload]
    told += [copy.copy(made) == made, getattr(cls, "right", None), getattr(cls, "values", None)]
    if number != 3:
        told.append(repr(made))
    try:
        told += [hash(made) == hash(again), number == 3 or hash(made)]
    except TypeError:
        told.append("no hash")
    try:
        made.left = made.value = made.values = 7  # type: ignore[attr-defined]
    except dataclasses.FrozenInstanceError:
        told.append("frozen")
    told.append(str(inspect.signature(cls)))
    changes = {"source": "b"} if number == 5 else {}
    for replaced in (of.replace(made, **changes), dataclasses.replace(made, **changes)):  # type: ignore[type-var]
        told.append(vars(replaced))
    return told


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_objects_are_as_pythons(call: tuple[int, tuple[Any, ...], dict[str, Any]]) -> None:
    assert _described(ours, *call) == _described(dataclasses, *call)


def test_init_is_compiled_when_it_is_first_called() -> None:
    pair: Any = _classes(ours)[0]
    before = pair.__init__
    pair(1)
    assert pair.__init__ is not before
    assert pair.__init__.__code__.co_varnames == ("self", "left", "right")


@ours.dataclass(frozen=True)
class Kept:
    """What is pickled by its name."""

    value: int


def test_objects_can_be_pickled_and_are_equal_to_none_of_another_class() -> None:
    assert pickle.loads(pickle.dumps(Kept(3))) == Kept(3)
    assert Kept(3) != _classes(ours)[4](3)
