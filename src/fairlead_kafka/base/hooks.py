"""Named places in the code where the simulation may plant a bug, to verify that its checks find the
bug.

A method marked with `@hook("what it decides")` is entered in HOOKS when its class is made, and
stays a plain method: a call costs nothing more. `Hook.replaced` replaces the method for the time of
a `with` block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar, cast

Method = Callable[..., Any]
"""A method of any signature."""
F = TypeVar("F", bound=Callable[..., object])


class Hook(NamedTuple):
    """A method that `hook` has marked: the class that has it, and its attribute there."""

    owner: type
    attribute: str

    @contextmanager
    def replaced(self, make: Callable[[Method], Method]) -> Iterator[None]:
        """Replace the hooked method by `make(original method)` within the `with` block, in this
        process."""
        sound = self.owner.__dict__[self.attribute]
        setattr(self.owner, self.attribute, make(sound))
        try:
            yield
        finally:
            setattr(self.owner, self.attribute, sound)


HOOKS: dict[str, Hook] = {}
"""Every hook by its name; filled while the modules that have them are imported."""


def hook(name: str) -> Callable[[F], F]:
    """Decorator: enter a method in HOOKS as `name`. AssertionError if another has that name."""

    def mark(function: F) -> F:
        return cast(F, _Marked(name, function))

    return mark


class _Marked:
    """Stands for a marked method in a class's body, until the class is made and enters it in
    HOOKS."""

    def __init__(self, name: str, function: Callable[..., object]) -> None:
        self._name = name
        self._function = function

    def __set_name__(self, owner: type, attribute: str) -> None:
        if self._name in HOOKS:
            raise AssertionError(
                f"two hooks are named {self._name!r}: {HOOKS[self._name]} and {owner.__name__}.{attribute}"
            )
        setattr(owner, attribute, self._function)
        HOOKS[self._name] = Hook(owner, attribute)
