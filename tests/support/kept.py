"""What is kept by an object: everything that can be reached from it and is data."""

from __future__ import annotations

import gc
from array import array
from collections import Counter, deque
from types import BuiltinFunctionType, FunctionType, ModuleType

_NOT_DATA = (ModuleType, type, FunctionType, BuiltinFunctionType)
_CONTAINERS = (dict, list, set, deque, array)


def kept(root: object, without: tuple[type, ...] = ()) -> Counter[str]:
    """Type → how many objects of it can be reached from `root`; "in Owner.name" → how many items
    are in containers that an attribute of this name holds.

    Modules, classes and functions are not looked into, so that caches with a bound of their own
    (`functools.lru_cache`) do not count. Nor are instances of `without`: what a test stands on.
    """
    seen, todo = {id(root)}, [(root, "")]
    found: Counter[str] = Counter()
    aside = (*_NOT_DATA, *without)
    while todo:
        one, where = todo.pop()
        found[type(one).__name__] += 1
        if isinstance(one, _CONTAINERS):
            found[f"in {where}"] += len(one)
        names = _attributes(one)
        own = getattr(one, "__dict__", {})
        for each in [*gc.get_referents(one), *own.values()]:
            if (
                each is own
                or id(each) in seen
                or isinstance(each, aside)
                or type(each).__name__ == "_lru_cache_wrapper"
            ):
                continue
            seen.add(id(each))
            name = names.get(id(each))
            todo.append((each, where if name is None else f"{type(one).__name__}.{name}"))
    return found


def _attributes(one: object) -> dict[int, str]:
    """The id of each attribute's value → its name."""
    slots = [name for kind in type(one).__mro__ for name in getattr(kind, "__slots__", ())]
    values = {id(getattr(one, name)): name for name in slots if hasattr(one, name)}
    return values | {id(value): name for name, value in getattr(one, "__dict__", {}).items()}


def grown(before: Counter[str], after: Counter[str], least: int) -> dict[str, int]:
    """The counts that are greater by `least` or more, and by how much."""
    return {name: after[name] - before[name] for name in after if after[name] - before[name] >= least}
