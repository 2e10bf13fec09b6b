"""`dataclass` for classes that a first mask loads: as Python's own, but its methods take no time until they are used.

Python's compiles six functions for a class when its module is loaded, 0.4 ms, and loads `inspect` before, 8 ms: a
third of the time to a first mask from a file. Here ``__init__`` is compiled when the first object is made, and the
other methods are the same for all classes. What `dataclasses` and `inspect` tell of classes they tell of these.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NoReturn


class _Options(dict[str, Any]):
    """What `dataclasses.field` takes."""


_NONE = object()  # no default

#: A field's annotation, whether it is given by name alone, and its options, default or `_NONE`. (The collector of
#: garbage looks at dictionaries for ever, and at such tuples once.)
_Own = tuple[str, bool, Any]


def _field(**options: Any) -> Any:
    return _Options(options)


def _dataclass(cls: Any = None, *, frozen: bool = False, eq: bool = True, repr: bool = True) -> Any:
    if cls is None:
        return lambda cls: _dataclass(cls, frozen=frozen, eq=eq, repr=repr)
    own, is_named = vars(cls), False
    cls.__own_fields__ = fields = dict(getattr(cls, "__own_fields__", {}))
    for name, hint in cls.__annotations__.items():
        is_named |= hint == "KW_ONLY"
        if hint != "KW_ONLY" and not hint.startswith("ClassVar"):
            fields[name] = hint, is_named, own.get(name, _NONE)
            if isinstance(own.get(name), _Options):
                if "default" in own[name]:
                    setattr(cls, name, own[name]["default"])
                else:
                    delattr(cls, name)
    cls.__dataclass_fields__, cls.__signature__ = _Pythons(), _PythonsSignature()
    if "__init__" not in own:
        cls.__init__ = _first_init(cls, frozen)
    if eq:
        names = _names(fields, "compare")
        cls.__key__ = staticmethod(attrgetter(*names) if len(names) > 1 else lambda each: _values(each, names))
        cls.__eq__ = own.get("__eq__", _equal)
        cls.__hash__ = own.get("__hash__") or (_hash if frozen else None)
    if repr:
        cls.__repr__ = own.get("__repr__", _shown)
    if frozen:
        cls.__setattr__ = cls.__delattr__ = _refuse
    return cls


def _replace(each: Any, /, **changes: object) -> Any:
    names = _names(type(each).__own_fields__, "init")
    return type(each)(**{name: getattr(each, name) for name in names if name not in changes} | changes)


if TYPE_CHECKING:
    from dataclasses import KW_ONLY as KW_ONLY
    from dataclasses import InitVar as InitVar
    from dataclasses import dataclass as dataclass
    from dataclasses import field as field
    from dataclasses import replace as replace
else:
    dataclass, field, replace = _dataclass, _field, _replace
    KW_ONLY = InitVar = None  # in annotations alone


def _options(field: _Own) -> dict[str, Any]:
    _, is_named, value = field
    own = value if isinstance(value, _Options) else {} if value is _NONE else {"default": value}
    return {"kw_only": is_named} | own


def _names(fields: dict[str, _Own], option: str) -> list[str]:
    """The fields for which an option is on."""
    on = (name for name, field in fields.items() if not isinstance(field[2], _Options) or field[2].get(option, True))
    return [name for name in on if not fields[name][0].startswith("InitVar")]


def _first_init(cls: Any, frozen: bool) -> Callable[..., None]:
    """An ``__init__`` that compiles the one that stands in its place from then on."""

    def __init__(self: object, *args: object, **kwargs: object) -> None:
        arguments, named, lines, left = ["self"], ["*"], [], []
        names: dict[str, Any] = {"_set": object.__setattr__, "_none": object()}
        for name, field in cls.__own_fields__.items():
            argument, value, options = name, name, _options(field)
            if "default_factory" in options:
                names[f"_make_{name}"] = options["default_factory"]
                argument, value = f"{name}=_none", f"_make_{name}()"
                if options.get("init", True):
                    value += f" if {name} is _none else {name}"
            elif "default" in options:
                names[f"_default_{name}"] = options["default"]
                argument = f"{name}=_default_{name}"
            if options.get("init", True):
                (named if options["kw_only"] else arguments).append(argument)
            elif value is name:
                continue
            if field[0].startswith("InitVar"):
                left.append(name)
            else:
                lines.append(f"_set(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
        arguments += named if len(named) > 1 else []
        lines.append(f"self.__post_init__({', '.join(left)})" if hasattr(cls, "__post_init__") else "pass")
        exec(f"def __init__({', '.join(arguments)}):\n " + "\n ".join(lines), names)
        cls.__init__ = names["__init__"]
        cls.__init__(self, *args, **kwargs)

    return __init__


def _values(each: object, names: list[str]) -> tuple[object, ...]:
    return tuple([getattr(each, name) for name in names])


def _equal(self: Any, other: Any) -> Any:
    return self.__key__(self) == self.__key__(other) if type(other) is type(self) else NotImplemented


def _hash(self: Any) -> int:
    return hash(self.__key__(self))


def _shown(self: Any) -> str:
    names = _names(self.__own_fields__, "repr")
    return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"


def _refuse(self: object, name: str, value: object = None) -> NoReturn:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot assign to field {name!r}")


class _Pythons:
    """The fields of a class as `dataclasses` has them."""

    def __get__(self, each: object, cls: Any) -> Any:
        cls.__dataclass_fields__ = found = vars(_pythons(cls))["__dataclass_fields__"]
        return found


class _PythonsSignature:
    """The arguments of a class as `inspect` has them."""

    def __get__(self, each: object, cls: Any) -> Any:
        from inspect import signature

        return signature(_pythons(cls))


def _pythons(cls: Any) -> type:
    """A class of the same fields made by Python's `dataclasses`, where annotations find its names."""
    import dataclasses

    fields: dict[str, _Own] = cls.__own_fields__
    space: dict[str, Any] = {name: dataclasses.field(**_options(field)) for name, field in fields.items()}
    space["__annotations__"], space["__module__"] = {name: hint for name, (hint, *_) in fields.items()}, "dataclasses"
    return dataclasses.dataclass(type(cls.__name__, (), space))
