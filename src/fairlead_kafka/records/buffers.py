"""Arrow arrays over NumPy's memory and back, by their buffers.

`pa.array`, `pa.scalar` and `Array.to_numpy` are not used: each loads pandas if it is installed,
which takes a quarter of a second and 60 MB, and fails at the end of the interpreter.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fairlead_kafka.records.arrays import Bools, Bytes

N = TypeVar("N", bound=np.generic)
_ONE_BIT = pa.bool_()


def arrow_array(values: npt.NDArray[np.generic], kind: pa.DataType, valid: Bools | None = None) -> pa.Array:
    """Numbers (of the width that `kind` has) or bools[n] as an Arrow array over the same memory;
    null where not `valid`."""
    data = (
        np.packbits(values.view(np.bool_), bitorder="little")
        if kind == _ONE_BIT
        else np.ascontiguousarray(values)
    )
    return pa.Array.from_buffers(kind, len(values), [bitmap(valid), pa.py_buffer(data)])


def repeated_text(text: str, count: int) -> pa.Array:
    """An Arrow `string` array that has `text` `count` times."""
    data = text.encode()
    offsets = np.arange(count + 1, dtype=np.int32) * np.int32(len(data))
    return pa.Array.from_buffers(
        pa.string(), count, [None, pa.py_buffer(offsets), pa.py_buffer(data * count)]
    )


def bitmap(valid: Bools | None) -> pa.Buffer | None:
    """Arrow's validity buffer, one bit for each of `valid`; None for None, which is all valid."""
    return None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))


def numpy_array(array: pa.Array, dtype: type[N]) -> npt.NDArray[N]:
    """The memory of an Arrow array of numbers, or of times, as `dtype`; what stands where it is
    null may be anything."""
    buffer = array.buffers()[1]
    if buffer is None:
        return np.zeros(len(array), dtype)
    return np.frombuffer(buffer, dtype, len(array), array.offset * np.dtype(dtype).itemsize)


def validity(array: pa.Array) -> Bools:
    """bools[n]: which items of an Arrow array are not null."""
    bits = array.buffers()[0]
    if bits is None or not array.null_count:
        return np.full(len(array), len(array) > 0 and array.null_count == 0)
    packed: Bytes = np.frombuffer(bits, np.uint8)
    found: Bools = np.unpackbits(packed, count=array.offset + len(array), bitorder="little")[
        array.offset :
    ].astype(np.bool_)
    return found
