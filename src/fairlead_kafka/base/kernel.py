"""Kernels: functions that Numba compiles, each beside a plain twin that serves until it has.

A kernel takes and returns flat arrays and integers. It is written once in the subset of Python that Numba knows, and a
second time, independently, as its `plain` twin: the twin answers while nothing is compiled (a first call never waits for
a compiler) and is the oracle in the tests. Numba itself is imported by `compile`, not before: it takes about a second.

`compile` may run on a background thread while others call the kernel: the call goes through one attribute that is
assigned once the machine code stands, and an assignment is atomic. Numba's own lock orders two compilations.

A helper is a small function that kernels call; it must live in the file of its kernels, because Numba's cache on disk
looks at the date of that file alone. `copy_bytes` is the exception: it is part of this module and does not change.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, ParamSpec, TypeVar, cast

import numpy as np
import numpy.typing as npt

P = ParamSpec("P")
R = TypeVar("R")

READ_BYTES = "Array(uint8, 1, 'C', readonly=True)"
READ_BOOL = "Array(boolean, 1, 'C', readonly=True)"
READ_INT32 = "Array(int32, 1, 'C', readonly=True)"
READ_INT64 = "Array(int64, 1, 'C', readonly=True)"
WRITE_BYTES = "uint8[::1]"
WRITE_BOOL = "boolean[::1]"
WRITE_INT8 = "int8[::1]"
WRITE_INT32 = "int32[::1]"
WRITE_INT64 = "int64[::1]"
WRITE_TABLE = "int64[:, ::1]"
"""Types for signatures. A READ type takes writable arrays too, for a microsecond more per call; see `read_only`."""

KERNELS: list[Kernel[..., Any]] = []
"""Every kernel of the process, in the order of definition."""
_HELPERS: list[Callable[..., Any]] = []
_prepared: set[str] = set()


def signature(result: str, *arguments: str) -> str:
    """The text of a Numba signature: `signature("int64", READ_BYTES)` is `int64(<array type>)`."""
    return f"{result}({', '.join(arguments)})"


def read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A contiguous read-only view of `array`: the exact type of the READ signatures, so that a call needs no conversion."""
    flags = array.flags
    if flags.c_contiguous and not flags.writeable:
        return array
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


class Kernel(Generic[P, R]):
    """A callable with two bodies: the compiled one once `ready`, its `plain` twin before."""

    def __init__(self, source: Callable[P, R], signatures: tuple[str, ...], plain: Callable[P, R]) -> None:
        self.source = source
        self.signatures = signatures
        self.plain = plain
        self.ready = False
        self.__name__ = source.__name__
        self.__doc__ = source.__doc__
        self._active: Callable[P, R] = plain

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the compiled body if it is ready, else the plain twin."""
        return self._active(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<Kernel {self.source.__module__}.{self.__name__} {'compiled' if self.ready else 'plain'}>"

    def compile(self) -> None:
        """Compile, or load from Numba's cache on disk, for the explicit signatures; then serve with it.

        Where no directory for the cache can be written (a read-only install without a home), the code is compiled
        for this process alone.
        """
        if self.ready:
            return
        from numba import njit
        from numba.core.compiler_lock import global_compiler_lock

        with global_compiler_lock:
            if self.ready:
                return
            _prepare()
            try:
                compiled = njit(list(self.signatures), nogil=True, cache=True)(self.source)
            except RuntimeError as error:
                if "cannot cache" not in str(error):
                    raise
                compiled = njit(list(self.signatures), nogil=True)(self.source)
            self._active = compiled
            self.ready = True


def kernel(*signatures: str, plain: Callable[P, R]) -> Callable[[Callable[P, R]], Kernel[P, R]]:
    """Decorator: make a `Kernel` of a function in Numba's Python, for the given signatures, with `plain` as its twin."""

    def decorate(source: Callable[P, R]) -> Kernel[P, R]:
        made = Kernel(source, signatures, plain)
        KERNELS.append(made)
        return made

    return decorate


def helper(function: Callable[P, R]) -> Callable[P, R]:
    """Decorator: let kernels of the same file call `function`; it stays an ordinary function for everyone else."""
    _HELPERS.append(function)
    return function


def compile_all() -> None:
    """Compile every registered kernel; safe to call on a background thread, and again."""
    for each in KERNELS:
        each.compile()


def copy_bytes(target: npt.NDArray[np.uint8], position: int, source: npt.NDArray[np.uint8], start: int, size: int) -> None:
    """`target[position:position + size] = source[start:start + size]`; in a kernel one `memcpy`, which checks no bounds.

    Numba's own slice assignment moves 2 GB/s and a loop over bytes 1 GB/s; `memcpy` moves 24 GB/s at 100 bytes a time.
    """
    target[position : position + size] = source[start : start + size]


def _prepare() -> None:
    """Make the helpers known to Numba; the caller holds Numba's lock."""
    from numba.extending import register_jitable

    if "copy_bytes" not in _prepared:
        _prepared.add("copy_bytes")
        _overload_copy_bytes()
    while _HELPERS:
        register_jitable(_HELPERS.pop(0))


def _overload_copy_bytes() -> None:
    """Give `copy_bytes` its compiled form."""
    from numba.core import cgutils, types
    from numba.extending import intrinsic, overload

    move = cast(Any, cgutils.raw_memcpy)

    def memcpy(_context: Any, target: Any, position: Any, source: Any, start: Any, size: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            target_value, to, source_value, at, count = arguments
            target_array = context.make_array(signature.args[0])(context, builder, target_value)
            source_array = context.make_array(signature.args[2])(context, builder, source_value)
            move(builder, builder.gep(target_array.data, [to]), builder.gep(source_array.data, [at]), count, 1)
            return context.get_dummy_value()

        return types.void(target, types.int64, source, types.int64, types.int64), generate

    compiled_memcpy = cast(Any, intrinsic)(memcpy)

    def compiled_copy_bytes(target: Any, position: Any, source: Any, start: Any, size: Any) -> Any:
        def body(target: Any, position: Any, source: Any, start: Any, size: Any) -> None:
            compiled_memcpy(target, position, source, start, size)

        return body

    overload(copy_bytes)(compiled_copy_bytes)
