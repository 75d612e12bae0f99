"""What is kept by an object: everything that can be reached from it and is data."""

from __future__ import annotations

import gc
from collections import Counter
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

_NOT_DATA = (ModuleType, type, FunctionType, BuiltinFunctionType)


def kept(root: object, without: tuple[type, ...] = ()) -> Counter[str]:
    """Type → how many objects of it can be reached from `root`, and under "items" the lengths of
    all containers.

    Modules, classes and functions are not looked into, so that caches with a bound of their own
    (`functools.lru_cache`) do not count. Nor are instances of `without`: what a test stands on.
    """
    seen, todo = {id(root)}, [root]
    found: Counter[str] = Counter()
    aside = (*_NOT_DATA, *without)
    while todo:
        one = todo.pop()
        found[type(one).__name__] += 1
        if hasattr(one, "__len__") and not isinstance(one, str | bytes | memoryview):
            found["items"] += len(one)
        for each in gc.get_referents(one):
            if id(each) not in seen and not isinstance(each, aside) and not _wraps(each):
                seen.add(id(each))
                todo.append(each)
    return found


def _wraps(one: Any) -> bool:
    return type(one).__name__ == "_lru_cache_wrapper"


def grown(before: Counter[str], after: Counter[str], least: int) -> dict[str, int]:
    """The counts that are greater by `least` or more, and by how much."""
    return {name: after[name] - before[name] for name in after if after[name] - before[name] >= least}
