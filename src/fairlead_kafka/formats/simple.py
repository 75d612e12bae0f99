"""Texts and numbers, as Kafka's own serializers write them: UTF-8, and big-endian of fixed size."""

from __future__ import annotations

import struct
from typing import Generic, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fairlead_kafka.formats.building import Reasons
from fairlead_kafka.formats.context import SerializationContext
from fairlead_kafka.formats.utf8 import decode_text

N = TypeVar("N", int, float)


class StringSerializer:
    """Writes texts as UTF-8; Kafka's and confluent-kafka's StringSerializer."""

    def __call__(self, value: object, context: SerializationContext | None = None) -> bytes | None:
        """The text's bytes in UTF-8; None stays null. ValueError for a text that cannot be UTF-8,
        TypeError for a value that is not a text."""
        if value is None:
            return None
        if not isinstance(value, str):
            raise TypeError(f"{value!r} is not a text")
        return value.encode()

    def encode_column(
        self, array: pa.Array, context: SerializationContext | None = None
    ) -> tuple[pa.Array, Reasons]:
        """The texts as a binary column. TypeError for a column of another type."""
        if not (pa.types.is_string(array.type) or pa.types.is_large_string(array.type)):
            raise TypeError(f"string: a string column is needed, not {array.type}")
        return array.cast(pa.binary()), {}


class StringDeserializer:
    """Reads UTF-8 as texts; Kafka's and confluent-kafka's StringDeserializer."""

    def __call__(self, data: bytes | None, context: SerializationContext | None = None) -> str | None:
        """The text that the bytes are; None for a null. ValueError for bytes that are not UTF-8."""
        return None if data is None else data.decode()

    def decode_column(
        self, array: pa.Array, context: SerializationContext | None = None
    ) -> tuple[pa.Array, Reasons]:
        """A string column and the reasons by row; nothing is copied where all values are UTF-8."""
        return decode_text(array)


class _Number:
    """A kind of number of fixed size, big-endian: its name, `struct` format, and NumPy and Arrow
    types."""

    name: str
    packing: struct.Struct
    big_endian: np.dtype[np.generic]
    arrow: pa.DataType


class _Int32(_Number):
    name, packing, big_endian, arrow = "integer", struct.Struct(">i"), np.dtype(">i4"), pa.int32()


class _Int64(_Number):
    name, packing, big_endian, arrow = "long", struct.Struct(">q"), np.dtype(">i8"), pa.int64()


class _Float64(_Number):
    name, packing, big_endian, arrow = "double", struct.Struct(">d"), np.dtype(">f8"), pa.float64()


class _NumberSerializer(_Number):
    def __call__(self, value: object, context: SerializationContext | None = None) -> bytes | None:
        """The number's bytes, big-endian; None stays null. ValueError for a number that does not
        fit, TypeError for a value that is not a number."""
        if value is None:
            return None
        try:
            return self.packing.pack(value)
        except struct.error as error:
            kind = TypeError if not isinstance(value, int | float) else ValueError
            raise kind(f"{self.name}: {value!r} does not fit ({error})") from None

    def encode_column(
        self, array: pa.Array, context: SerializationContext | None = None
    ) -> tuple[pa.Array, Reasons]:
        """A binary column and the reasons by row; numbers that do not fit are null in it. TypeError
        for a column that is not of numbers."""
        reasons: Reasons = {}
        try:
            fitting = array.cast(self.arrow)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            if not pa.types.is_integer(array.type) and not pa.types.is_floating(array.type):
                raise TypeError(
                    f"{self.name}: a column of {self.arrow} is needed, not {array.type}"
                ) from None
            fitting, reasons = self._one_by_one(array)
        numbers = fitting.fill_null(0).to_numpy(zero_copy_only=False).astype(self.big_endian)
        size = self.packing.size
        fixed = pa.Array.from_buffers(pa.binary(size), len(array), [None, pa.py_buffer(numbers)])
        whole = fixed.cast(pa.binary())
        return (pc.if_else(fitting.is_valid(), whole, None) if fitting.null_count else whole), reasons

    def _one_by_one(self, array: pa.Array) -> tuple[pa.Array, Reasons]:
        reasons: Reasons = {}
        values = array.to_pylist()
        for row, value in enumerate(values):
            try:
                pa.array([value], self.arrow)
            except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
                values[row], reasons[row] = None, f"{self.name}: {value!r} does not fit ({error})"
        return pa.array(values, self.arrow), reasons


class _NumberDeserializer(_Number, Generic[N]):
    def __call__(self, data: bytes | None, context: SerializationContext | None = None) -> N | None:
        """The number that the bytes are; None for a null. ValueError for bytes of another
        length."""
        if data is None:
            return None
        if len(data) != self.packing.size:
            raise ValueError(f"{self.name}: {len(data)} bytes instead of {self.packing.size}")
        number: N = self.packing.unpack(data)[0]
        return number

    def decode_column(
        self, array: pa.Array, context: SerializationContext | None = None
    ) -> tuple[pa.Array, Reasons]:
        """A column of numbers and the reasons by row; values of another length are null in it."""
        size = self.packing.size
        fits = pc.equal(pc.binary_length(array), size).fill_null(False).to_numpy(zero_copy_only=False)
        given = array.is_valid().to_numpy(zero_copy_only=False)
        reasons = {
            int(row): f"{self.name}: {len(array[int(row)].as_py())} bytes instead of {size}"
            for row in np.flatnonzero(given & ~fits)
        }
        numbers = np.zeros(len(array), self.big_endian)
        chosen = array.filter(pa.array(fits)).cast(pa.binary())
        if len(chosen):
            offsets = np.frombuffer(chosen.buffers()[1], np.int32)[
                chosen.offset : chosen.offset + len(chosen) + 1
            ]
            numbers[fits] = np.frombuffer(chosen.buffers()[2], np.uint8)[offsets[0] : offsets[-1]].view(
                self.big_endian
            )
        return pa.array(numbers.astype(self.big_endian.newbyteorder("=")), self.arrow, mask=~fits), reasons


class IntegerSerializer(_NumberSerializer, _Int32):
    """Writes whole numbers in four bytes; Kafka's and confluent-kafka's IntegerSerializer."""


class IntegerDeserializer(_NumberDeserializer[int], _Int32):
    """Reads whole numbers of four bytes; Kafka's and confluent-kafka's IntegerDeserializer."""


class LongSerializer(_NumberSerializer, _Int64):
    """Writes whole numbers in eight bytes; Kafka's LongSerializer."""


class LongDeserializer(_NumberDeserializer[int], _Int64):
    """Reads whole numbers of eight bytes; Kafka's LongDeserializer."""


class DoubleSerializer(_NumberSerializer, _Float64):
    """Writes numbers in eight bytes of IEEE 754; Kafka's and confluent-kafka's DoubleSerializer."""


class DoubleDeserializer(_NumberDeserializer[float], _Float64):
    """Reads numbers of eight bytes of IEEE 754; Kafka's and confluent-kafka's
    DoubleDeserializer."""
