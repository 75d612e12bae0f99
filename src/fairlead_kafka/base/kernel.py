"""Kernels: functions over every record or key, in machine code, each with a reference in Python.

A kernel takes flat arrays and integers and gives integers. It is written in C (`src/native`),
compiled when the package is built, and loaded with the package as the module `_native`, which takes
a millisecond. The reference implementation, written independently from the format, is the oracle of
the tests. It runs in production only if there is no machine code, some fifty times slower; a
warning is logged once.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from types import ModuleType
from typing import Any, Generic, ParamSpec, TypeVar

import numpy as np
import numpy.typing as npt

from fairlead_kafka.base.guarded_log import GuardedLogger

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
N = TypeVar("N", bound=np.generic)

KERNELS: list[Kernel[..., Any]] = []
"""Every kernel of the process, in the order of definition."""


def _load() -> ModuleType | None:
    try:
        return importlib.import_module("fairlead_kafka.base._native")
    except ImportError as error:
        GuardedLogger("fairlead_kafka").warning(
            "no machine code for this platform (%s): records are encoded and decoded in Python, some fifty "
            "times slower; "
            "install a wheel of fairlead-kafka, or build it from source with `pip install --no-binary "
            "fairlead-kafka fairlead-kafka`",
            error,
        )
        return None


_NATIVE = _load()
MACHINE_CODE: bool = _NATIVE is not None
"""True if there is machine code; False: every kernel runs its reference implementation."""


class Kernel(Generic[P, R]):
    """A function over flat arrays, served by machine code; `reference` is its reference
    implementation.

    Arrays are C-contiguous and of exactly the item size that the kernel is made for (TypeError if
    not); whatever else its docstring says it assumes is not checked. With more than 64 KiB of
    arrays it works without the GIL.
    """

    def __init__(self, reference: Callable[P, R]) -> None:
        self.reference = reference
        self.__name__ = reference.__name__
        self.__doc__ = reference.__doc__
        self.machine_code: Callable[P, R] | None = (
            getattr(_NATIVE, reference.__name__) if MACHINE_CODE else None
        )
        self.serve(self.machine_code)

    def serve(self, body: Callable[P, R] | None) -> None:
        """Let calls run `body` from now on; None: the reference implementation. For tests."""
        self._body: Callable[P, R] = self.reference if body is None else body

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the machine code, or the reference implementation if there is none."""
        return self._body(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<Kernel {self.reference.__module__}.{self.__name__}>"


def native_type(reference: type[T]) -> type[T]:
    """The native type that replaces `reference`: it has its name without `Python`.

    `reference` itself is returned if there is no machine code.
    """
    found: type[T] = getattr(_NATIVE, reference.__name__.removeprefix("Python"), reference)
    return found


def read_only(array: npt.NDArray[N]) -> npt.NDArray[N]:
    """A contiguous read-only view of `array`."""
    flags = array.flags
    if flags.c_contiguous and not flags.writeable:
        return array
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


def kernel(reference: Callable[P, R]) -> Kernel[P, R]:
    """Decorator: make a `Kernel` of a reference implementation, whose machine code has its name."""
    made = Kernel(reference)
    KERNELS.append(made)
    return made
