"""CRC-32C (Castagnoli) of a batch, by the processor's own instruction where it has one
(google-crc32c)."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

import google_crc32c
import numpy as np
import numpy.typing as npt

from fairlead_kafka.records.layout import ATTRIBUTES, CRC, Data, as_array

_CRC = struct.Struct(">I")
crc_value: Callable[[npt.NDArray[np.uint8]], int] = google_crc32c.value
"""The bare function, for loops over batches. It takes bytes and arrays, not bytearrays or
memoryviews."""


def crc32c(data: Data) -> int:
    """The CRC-32C of `data`, unsigned."""
    return crc_value(as_array(data))


def batch_crc(array: npt.NDArray[np.uint8], start: int, stop: int) -> int:
    """The CRC that the batch at `array[start:stop]` should carry. An array, because slicing one
    copies no bytes."""
    return crc_value(array[start + ATTRIBUTES : stop])


def stamp_crcs(buffer: memoryview, array: npt.NDArray[np.uint8], starts: Sequence[int], end: int) -> None:
    """`stamp_crc` for batches that lie one behind the other, from each of `starts` to the next, the
    last up to `end`."""
    value, pack_into = crc_value, _CRC.pack_into
    for start, stop in zip(starts, [*starts[1:], end], strict=True):
        pack_into(buffer, start + CRC, value(array[start + ATTRIBUTES : stop]))


def stamp_crc(buffer: memoryview | bytearray, array: npt.NDArray[np.uint8], start: int, stop: int) -> None:
    """Compute and write the CRC of the batch at `start:stop`; `buffer` (writable) and `array` are
    the same memory."""
    _CRC.pack_into(buffer, start + CRC, crc_value(array[start + ATTRIBUTES : stop]))
