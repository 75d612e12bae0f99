"""Public names that are loaded when they are first used (PEP 562): a program loads only the parts
that it uses."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module


def lazily(
    package: str, homes: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """A package's `__getattr__` and `__dir__`, which import a module when one of its names is first
    used.

    `homes` has for each module the names that are found there. A name, once found, becomes the
    package's own attribute. AttributeError for a name that no module has.
    """
    home_of = {name: home for home, names in homes.items() for name in names}

    def getattribute(name: str) -> object:
        home = home_of.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value: object = getattr(import_module(home), name)
        setattr(sys.modules[package], name, value)
        return value

    return getattribute, lambda: sorted([*vars(sys.modules[package]), *home_of])
