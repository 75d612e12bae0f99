"""Kernels that check what they touch: Numba's own checks of indices, and a `copy_bytes` that looks before it copies."""

from __future__ import annotations

from typing import Any

import fairlead_kafka.base.kernel as kernel_module


def install() -> None:
    """To be called before the first kernel is compiled; NUMBA_BOUNDSCHECK has the rest of it."""
    kernel_module._overload_copy_bytes = _overload_copy_bytes


def _overload_copy_bytes() -> None:
    from numba.extending import overload

    def compiled(target: Any, position: Any, source: Any, start: Any, size: Any) -> Any:
        def body(target: Any, position: Any, source: Any, start: Any, size: Any) -> None:
            if size < 0 or position < 0 or start < 0 or position + size > len(target) or start + size > len(source):
                raise IndexError("a kernel copies bytes that are not its own")
            for nth in range(size):
                target[position + nth] = source[start + nth]

        return body

    overload(kernel_module.copy_bytes)(compiled)
