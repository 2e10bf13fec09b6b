"""Attributes that are worked out on first use, and results of methods that are kept."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

if TYPE_CHECKING:
    from functools import cached_property as cached_property
else:

    class cached_property:
        """As `functools.cached_property`, without the lock that this has before Python 3.12.

        It would be one for all instances of a class, and stay held in a child that is forked meanwhile. Of threads
        that work the same out at once, all get what the first of them has found.
        """

        def __init__(self, function: Callable[[object], object]) -> None:
            self._function = function
            self.__doc__ = function.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            self._name = name

        def __get__(self, instance: object, owner: type | None = None) -> object:
            if instance is None:
                return self
            return instance.__dict__.setdefault(self._name, self._function(instance))


_Owner = TypeVar("_Owner")
_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def remembered(
    method: Callable[Concatenate[_Owner, _Arguments], _Result],
) -> Callable[Concatenate[_Owner, _Arguments], _Result]:
    """The method, each of its results worked out once: an object keeps them by the positional arguments."""
    name = f"{method.__name__} by arguments"

    def known(self: _Owner, /, *args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
        results: dict[tuple[object, ...], _Result] | None = self.__dict__.get(name)
        if results is None:
            results = self.__dict__[name] = {}
        elif args in results:
            return results[args]
        result = results[args] = method(self, *args, **kwargs)
        return result

    update_wrapper(known, method)
    return known


#: What a branch has of its own.
_COPIED = frozenset({list, dict, set})


def branch(owner: _Owner) -> _Owner:
    """A copy to go on with: it has collections of its own, those of `remembered` methods among them."""
    found: _Owner = object.__new__(type(owner))
    own = vars(found)
    own.update(vars(owner))
    for name, each in vars(owner).items():
        if type(each) in _COPIED:
            own[name] = each.copy()
    return found
