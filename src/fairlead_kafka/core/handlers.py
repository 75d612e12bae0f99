"""`Handlers`: a table of the function that serves each class of operation or event."""

from __future__ import annotations

from collections.abc import Callable
from typing import Never, TypeVar, cast

T = TypeVar("T")


class Handlers:
    """A table from a class to the function that handles its objects. Type checkers check that the
    function takes that class."""

    def __init__(self) -> None:
        self._of_class: dict[type, Callable[[Never], object]] = {}

    def add(self, kind: type[T], handler: Callable[[T], object]) -> None:
        """Call `handler` for objects of exactly `kind`. KeyError if it has a handler already."""
        if kind in self._of_class:
            raise KeyError(f"{kind.__name__} has a handler already")
        self._of_class[kind] = handler

    def update(self, other: Handlers) -> None:
        """Take over the handlers of another table. KeyError if both have one for a class."""
        for kind, handler in other._of_class.items():
            self.add(kind, cast("Callable[[object], object]", handler))

    def handle(self, item: object) -> None:
        """Call the handler of the object's class. KeyError, a defect, if it has none."""
        handler = cast("Callable[[object], object]", self._of_class[type(item)])  # as `add` checked
        handler(item)
