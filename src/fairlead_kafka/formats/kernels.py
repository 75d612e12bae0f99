"""Kernels that turn Avro and Protobuf into columns and back (`src/native/formats.c`), and their
reference implementations.

**Slots.** A table of `rows` rows has `slots`, columns of 64-bit integers one after the other, and
`valid`, columns of booleans likewise. Numbers stand for themselves, floats for their bits. Bytes
take two slots: where they begin in a source, and how many they are.

**Operations**, of five numbers each: kind, slot, argument, skip, valid.

Avro's operations are the parts of a value, in order. A slot of -1 is skipped. UNION, of null and
another type: `argument` says which branch is null, `skip` how many operations are passed over for
it, `valid` where it is noted. LIST: arrays and maps; the next `skip` operations are an item. Read,
its slots are where the items begin and how many; written, where their bytes begin, how many bytes,
how many items. ENUM: `argument` is the number of symbols. FIXED: of bytes.

Protobuf's are a message's fields: `argument` is the field's number, `skip` its wire type. `valid`
of -1 is a field without presence of its own, which is written unless it is zero.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fairlead_kafka.base.kernel import kernel

Bytes = npt.NDArray[np.uint8]
Bools = npt.NDArray[np.bool_]
Int64 = npt.NDArray[np.int64]

OP_FIELDS = 5
LONG, INT, BOOLEAN, FLOAT, DOUBLE, BYTES, FIXED, ENUM, UNION, LIST = range(10)
(
    P_INT64,
    P_INT32,
    P_UINT32,
    P_SINT64,
    P_SINT32,
    P_BOOL,
    P_FIXED64,
    P_FIXED32,
    P_SFIXED32,
    P_BYTES,
    P_MESSAGE,
) = range(11)
WIRE_VARINT, WIRE_64, WIRE_BYTES, WIRE_32 = 0, 1, 2, 5
_U64 = 2**64
VARINT_BYTES_MAX = 10


class _Wrong(Exception):
    """Bytes that the kernels do not decode, and leave to other code."""


@kernel
def decode_avro(
    source: Bytes, starts: Int64, ends: Int64, counts: Int64, whole: int, ops: Int64, rows: int,
    slots: Int64, valid: Bools, faults: Bools,
) -> int:  # fmt: skip
    """Read runs of values, `counts[i]` from `starts[i]` on and before `ends[i]`, into consecutive
    rows.

    With `whole` a run must take all of its bytes. `faults` becomes true for runs that do not, or
    that have values which kernels do not take; returns how many there are. Assumes that slots and
    valid begin as zero.
    """
    table = ops.reshape(-1, OP_FIELDS).tolist()
    data = source.tobytes()
    row = 0
    for run, (start, stop, count) in enumerate(
        zip(starts.tolist(), ends.tolist(), counts.tolist(), strict=True)
    ):
        try:
            position = start
            if not 0 <= start <= stop <= len(data) or not 0 <= count <= rows - row:
                raise _Wrong
            for item in range(count):
                position = _walk(data, position, stop, table, _Row(slots, valid, rows, row + item))
            if whole and count and position != stop:
                raise _Wrong
        except _Wrong:
            faults[run] = True
        row += count
    return int(faults.sum())


class _Row:
    """One row of the slots and validity that are being filled; without them for values that are
    passed over."""

    def __init__(self, slots: Int64 | None, valid: Bools | None, rows: int, row: int) -> None:
        self._slots, self._valid, self._rows, self._row = slots, valid, rows, row

    def put(self, slot: int, value: int) -> None:
        """Write a number, in two's complement if it has 64 bits."""
        if slot >= 0 and self._slots is not None:
            self._slots[slot * self._rows + self._row] = value - _U64 if value >= _U64 // 2 else value

    def put_valid(self, slot: int, value: bool) -> None:
        """Write a boolean."""
        if slot >= 0 and self._valid is not None:
            self._valid[slot * self._rows + self._row] = value

    def is_valid(self, slot: int) -> bool:
        """True or False, as it was put."""
        return slot >= 0 and self._valid is not None and bool(self._valid[slot * self._rows + self._row])


_NO_ROW = _Row(None, None, 0, 0)


def _walk(data: bytes, position: int, stop: int, ops: list[list[int]], row: _Row) -> int:
    number = 0
    while number < len(ops):
        kind, slot, argument, skip, valid = ops[number]
        number += 1
        if kind in (LONG, INT, ENUM):
            value, position = _long(data, position, stop)
            limit = {LONG: 2**63, INT: 2**31, ENUM: argument}[kind]
            if not (0 if kind == ENUM else -limit) <= value < limit:
                raise _Wrong
            row.put(slot, value)
        elif kind in (BOOLEAN, FLOAT, DOUBLE):
            size = {BOOLEAN: 1, FLOAT: 4, DOUBLE: 8}[kind]
            value = int.from_bytes(_piece(data, position, stop, size), "little")
            if kind == BOOLEAN and value > 1:
                raise _Wrong
            row.put(slot, value)
            position += size
        elif kind in (BYTES, FIXED):
            size = argument
            if kind == BYTES:
                size, position = _long(data, position, stop)
            _piece(data, position, stop, size)
            if slot >= 0:
                row.put(slot, position)
                row.put(slot + 1, size)
            position += size
        elif kind == UNION:
            branch, position = _long(data, position, stop)
            if branch not in (0, 1):
                raise _Wrong
            row.put_valid(valid, branch != argument)
            number += skip if branch == argument else 0
        else:
            count, position = _long(data, position, stop)
            if not 0 <= count <= stop - position:
                raise _Wrong
            if slot >= 0:
                row.put(slot, position)
                row.put(slot + 1, count)
            for _ in range(count):
                position = _walk(data, position, stop, ops[number : number + skip], _NO_ROW)
            if count:
                if _piece(data, position, stop, 1) != b"\0":
                    raise _Wrong
                position += 1
            number += skip
    return position


def _piece(data: bytes, position: int, stop: int, size: int) -> bytes:
    if not 0 <= size <= stop - position:
        raise _Wrong
    return data[position : position + size]


def _varint(data: bytes, position: int, stop: int) -> tuple[int, int]:
    value = 0
    for count in range(VARINT_BYTES_MAX):
        byte = _piece(data, position + count, stop, 1)[0]
        value |= (byte & 127) << (7 * count)
        if byte < 128:
            if value >= _U64:
                raise _Wrong
            return value, position + count + 1
    raise _Wrong


def _long(data: bytes, position: int, stop: int) -> tuple[int, int]:
    value, position = _varint(data, position, stop)
    return (value >> 1) ^ -(value & 1), position


def _varint_of(value: int) -> bytes:
    made = bytearray()
    while value > 127:
        made.append(value & 127 | 128)
        value >>= 7
    return bytes([*made, value])


def _zigzag_of(value: int) -> bytes:
    return _varint_of(((value << 1) ^ (value >> 63)) % _U64)


@kernel
def encode_avro(
    ops: Int64, rows: int, slots: Int64, valid: Bools, source: Bytes, prefix: Bytes, given: Bools,
    out: Bytes, offsets: Int64,
) -> int:  # fmt: skip
    """Write the rows that are `given` to `out`, each after `prefix`; `offsets` gets where each row
    begins, and the last ends.

    Returns the position after the last, or -1 if `out` is too small or a piece is none of `source`.
    Assumes that slots and valid have all that operations name.
    """
    table = ops.reshape(-1, OP_FIELDS).tolist()
    cells, present = (each.reshape(-1, max(rows, 1)) for each in (slots, valid))
    data, position = source.tobytes(), 0
    offsets[0] = 0
    for row in range(rows):
        made = bytearray(prefix.tobytes() if given[row] else b"")
        number = 0 if given[row] else len(table)
        while number < len(table):
            kind, slot, argument, skip, is_valid = table[number]
            number += 1
            if kind in (LONG, INT, ENUM):
                made += _zigzag_of(int(cells[slot, row]))
            elif kind in (BOOLEAN, FLOAT, DOUBLE):
                size = {BOOLEAN: 1, FLOAT: 4, DOUBLE: 8}[kind]
                made += (int(cells[slot, row]) % _U64).to_bytes(8, "little")[:size]
            elif kind == UNION:
                there = bool(present[is_valid, row])
                made += _zigzag_of(1 - argument if there else argument)
                number += 0 if there else skip
            else:
                start, size = int(cells[slot, row]), int(cells[slot + 1, row])
                if not 0 <= start <= start + size <= len(data):
                    return -1
                if kind == BYTES:
                    made += _zigzag_of(size)
                elif kind == LIST and cells[slot + 2, row]:
                    made += _zigzag_of(int(cells[slot + 2, row]))
                made += data[start : start + size] + (b"\0" if kind == LIST else b"")
        position = _put(out, position, made)
        if position < 0:
            return -1
        offsets[row + 1] = position
    return position


def _put(out: Bytes, position: int, made: bytes | bytearray) -> int:
    if len(made) > len(out) - position:
        return -1
    out[position : position + len(made)] = np.frombuffer(bytes(made), np.uint8)
    return position + len(made)


@kernel
def decode_protobuf(
    source: Bytes, starts: Int64, ends: Int64, given: Bools, ops: Int64, slots: Int64, valid: Bools,
    faults: Bools,
) -> int:  # fmt: skip
    """Read a message for each row `given`, from `starts` to `ends`, into its slots.

    `faults` becomes true for rows whose bytes are no message, or have what kernels do not take
    (groups, a message that comes twice, a known field of another wire type); returns how many.
    Assumes that slots and valid begin as zero.
    """
    fields = {op[2]: op for op in ops.reshape(-1, OP_FIELDS).tolist()}
    data = source.tobytes()
    for number in np.flatnonzero(given).tolist():
        row = _Row(slots, valid, len(starts), number)
        position, stop = int(starts[number]), int(ends[number])
        try:
            if not 0 <= position <= stop <= len(data):
                raise _Wrong
            while position < stop:
                position = _field(data, position, stop, fields, row)
        except _Wrong:
            faults[number] = True
    return int(faults.sum())


def _field(data: bytes, position: int, stop: int, fields: dict[int, list[int]], row: _Row) -> int:
    tag, position = _varint(data, position, stop)
    if tag >= 2**32 or tag < 8:
        raise _Wrong
    wire = tag & 7
    start = position
    if wire == WIRE_VARINT:
        value, position = _varint(data, position, stop)
    elif wire in (WIRE_64, WIRE_32):
        size = 8 if wire == WIRE_64 else 4
        value = int.from_bytes(_piece(data, position, stop, size), "little")
        position += size
    elif wire == WIRE_BYTES:
        value, start = _varint(data, position, stop)
        _piece(data, start, stop, value)
        position = start + value
    else:
        raise _Wrong
    found = fields.get(tag >> 3)
    if found is None:
        return position
    kind, slot, _, expected, valid = found
    if wire != expected or (kind == P_MESSAGE and row.is_valid(valid)):
        raise _Wrong
    low = value % 2**32
    if kind in (P_BYTES, P_MESSAGE):
        row.put(slot, start)
        row.put(slot + 1, value)
    elif kind in (P_INT32, P_SFIXED32):
        row.put(slot, low - 2**32 if low >= 2**31 else low)
    elif kind in (P_UINT32, P_FIXED32):
        row.put(slot, low)
    elif kind in (P_SINT64, P_SINT32):
        value = value if kind == P_SINT64 else low
        row.put(slot, (value >> 1) ^ -(value & 1))
    else:
        row.put(slot, int(value != 0) if kind == P_BOOL else value)
    row.put_valid(valid, True)
    return position


@kernel
def encode_protobuf(
    ops: Int64, rows: int, slots: Int64, valid: Bools, source: Bytes, prefix: Bytes, given: Bools,
    out: Bytes, offsets: Int64,
) -> int:  # fmt: skip
    """Write the rows `given` as messages, each after `prefix`; as `encode_avro` otherwise.

    Assumes the same.
    """
    table = ops.reshape(-1, OP_FIELDS).tolist()
    cells, present = (each.reshape(-1, max(rows, 1)) for each in (slots, valid))
    data, position = source.tobytes(), 0
    offsets[0] = 0
    for row in range(rows):
        made = bytearray(prefix.tobytes() if given[row] else b"")
        for kind, slot, argument, wire, is_valid in table if given[row] else ():
            pieces = kind in (P_BYTES, P_MESSAGE)
            value = int(cells[slot + pieces, row])
            if not (present[is_valid, row] if is_valid >= 0 else value):
                continue
            made += _varint_of(argument << 3 | wire)
            if pieces:
                start = int(cells[slot, row])
                if not 0 <= start <= start + value <= len(data):
                    return -1
                made += _varint_of(value) + data[start : start + value]
            elif wire == WIRE_VARINT:
                if kind == P_SINT32:
                    value = (value << 1 ^ value >> 31) % 2**32
                made += _zigzag_of(value) if kind == P_SINT64 else _varint_of(value % _U64)
            else:
                made += (value % _U64).to_bytes(8, "little")[: 8 if wire == WIRE_64 else 4]
        position = _put(out, position, made)
        if position < 0:
            return -1
        offsets[row + 1] = position
    return position


@kernel
def gather_pieces(source: Bytes, starts: Int64, sizes: Int64, out: Bytes) -> int:
    """Copy pieces of `source` one after the other. Returns the position after the last, or -1 if
    `out` is too small or a piece is none of `source`. Assumes as many sizes as starts."""
    position = 0
    for start, size in zip(starts.tolist(), sizes.tolist(), strict=True):
        if not 0 <= start <= start + size <= len(source) or size > len(out) - position:
            return -1
        out[position : position + size] = source[start : start + size]
        position += size
    return position
