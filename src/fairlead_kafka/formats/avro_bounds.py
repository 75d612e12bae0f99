"""Bounds of recursion and memory for Avro's bytes, checked before fastavro reads them.

fastavro calls itself for each record in a record, so few bytes of a recursive schema take all of
the C stack, and the process ends. It also trusts the count of an array whose items have no bytes,
so ten bytes may ask for any amount of time and memory. `Bounds` walks such bytes first, without
recursion. Most schemas cannot do either, and are not walked.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat
from typing import Final, NamedTuple, cast

from fairlead_kafka.formats.avro_schema import Avro, AvroSchema, Definition

VALUE_DEPTH_MAX: Final = 200
"""Records, arrays and maps within each other. fastavro takes up to 2 KiB of stack for each, and the
least stack of a thread is 512 KiB (macOS)."""
EMPTY_VALUES_MAX: Final = 10_000
"""Bound on values without bytes (null, fixed of no bytes, records of no fields), as many more than
the message has bytes: fastavro reads so many in a millisecond."""
_LONG_BYTES_MAX: Final = 10
_LONG, _SIZED, _PLAIN, _EMPTY, _UNION, _RECORD, _ENTRY, _LIST = range(8)
"""Kinds of nodes. `_SIZED`: bytes after their length; `_PLAIN`: of a size that the schema has;
`_ENTRY`: a map's key and value."""
_LEAVES = {
    "null": (_EMPTY, 0),
    "boolean": (_PLAIN, 1),
    "int": (_LONG, 0),
    "long": (_LONG, 0),
    "enum": (_LONG, 0),
    "float": (_PLAIN, 4),
    "double": (_PLAIN, 8),
    "bytes": (_SIZED, 0),
    "string": (_SIZED, 0),
}
_NAMED = ("record", "error", "enum", "fixed")


class _Node(NamedTuple):
    kind: int
    size: int
    inner: tuple[int, ...]


class _Cost(NamedTuple):
    """Upper bounds on a value of a schema: how deep it is nested, and how many values that take no
    bytes (nulls, empty records) it has more than it has bytes. Items of lists do not count."""

    depth: int
    excess: int
    is_blind: bool
    """True if no part of the value has its length in front, so fastavro passes over it without
    looking for the end of the bytes."""


class Bounds:
    """The bounds of a writer's schema, and the check of a value against them."""

    def __init__(self, schema: AvroSchema) -> None:
        """Raise ValueError if the writer's schema is not Avro."""
        parsed, named = cast("tuple[Avro, dict[str, Definition]]", schema.parsed())
        self._nodes = _Nodes(named).of(parsed)
        self.needed = _may_exceed(self._nodes)
        """False if no bytes of the schema can exceed the bounds: they are not walked then."""

    def check(self, data: bytes, start: int) -> None:
        """Check the value that begins at `start`. ValueError if it is nested too deep, has too many
        values without bytes, or is not Avro; EOFError if the bytes end before it does."""
        if self.needed:
            _Walk(self._nodes, data, start).run()


class _Walk:
    """A walk through one value. The way back up is kept in a list, not on Python's stack, which
    deep values would exhaust."""

    def __init__(self, nodes: list[_Node], data: bytes, start: int) -> None:
        self._nodes, self._data, self._start, self._position = nodes, data, start, start
        self._empty = self._depth = 0

    def run(self) -> None:
        open_: list[tuple[Iterator[int], int, int]] = []
        pending, item, deeper = iter((0,)), -1, 0  # what comes next, the list's item, and its depth
        while True:
            number = next(pending, -1)
            if number >= 0:
                node = self._nodes[number]
                if node.kind < _UNION:
                    self._leaf(node, 1)
                    continue
                open_.append((pending, item, deeper))
                item = node.inner[0] if node.kind == _LIST else -1
                deeper = int(node.kind in (_RECORD, _LIST))
                self._depth += deeper
                if self._depth > VALUE_DEPTH_MAX:
                    raise ValueError(f"records, arrays and maps are nested deeper than {VALUE_DEPTH_MAX}")
                pending = iter((self._branch(node),) if node.kind == _UNION else node.inner)
                if item < 0:
                    continue
            if item >= 0:
                count = self._block(self._nodes[item])
                if count:
                    pending = repeat(item, count)
                    continue
            if not open_:
                return
            self._depth -= deeper
            pending, item, deeper = open_.pop()

    def _leaf(self, node: _Node, count: int) -> None:
        if node.kind == _EMPTY:
            self._empty += count
            if self._empty > EMPTY_VALUES_MAX + self._position - self._start:
                raise ValueError(f"more than {EMPTY_VALUES_MAX} values have no bytes")
            return
        size = node.size
        if node.kind != _PLAIN:
            size = self._long()
            if node.kind == _LONG:
                return
        if size < 0:
            raise ValueError(f"a length of {size}")
        if size > len(self._data) - self._position:
            raise EOFError
        self._position += size

    def _branch(self, union: _Node) -> int:
        branch = self._long()
        if not 0 <= branch < len(union.inner):
            raise ValueError(f"branch {branch} of a union of {len(union.inner)}")
        return union.inner[branch]

    def _block(self, item: _Node) -> int:
        """The number of items in the next block that have to be walked over; 0 at the end of the
        list."""
        while count := self._long():
            if count < 0:
                count = -count
                self._long()  # how many bytes the block has, which fastavro does not look at either
            if item.kind != _EMPTY:
                if count > len(self._data) - self._start + EMPTY_VALUES_MAX:
                    raise EOFError  # an item has a byte, or counts as one without
                return count
            self._leaf(item, count)
        return 0

    def _long(self) -> int:
        value = shift = 0
        for byte in self._data[self._position : self._position + _LONG_BYTES_MAX]:
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                self._position += shift // 7
                return (value >> 1) ^ -(value & 1)
        if shift < _LONG_BYTES_MAX * 7:
            raise EOFError
        raise ValueError(f"a number of more than {_LONG_BYTES_MAX} bytes")


class _Nodes:
    """All nodes of a schema; a named type is one node, however often it is named."""

    def __init__(self, named: dict[str, Definition]) -> None:
        self._named = named
        self._numbers: dict[str, int] = {}
        self._schemas: list[Avro] = []

    def of(self, schema: Avro) -> list[_Node]:
        """All nodes of `schema`; the first is that of the schema itself."""
        self._number(schema)
        nodes: list[_Node] = []
        while len(nodes) < len(self._schemas):
            nodes.append(self._node(self._schemas[len(nodes)]))
        return nodes

    def _number(self, schema: Avro) -> int:
        described = self._named.get(schema, schema) if isinstance(schema, str) else schema
        name = described.get("name") if isinstance(described, dict) and described["type"] in _NAMED else None
        if name is not None and name in self._numbers:
            return self._numbers[name]
        self._schemas.append(described)
        if name is not None:
            self._numbers[name] = len(self._schemas) - 1
        return len(self._schemas) - 1

    def _node(self, described: Avro) -> _Node:
        if isinstance(described, list):
            return _Node(_UNION, 0, tuple(map(self._number, described)))
        kind = described if isinstance(described, str) else str(described["type"])
        if isinstance(described, dict):
            if kind in ("record", "error"):
                inner = tuple(self._number(field["type"]) for field in described["fields"])
                return _Node(_RECORD if inner else _EMPTY, 0, inner)
            if kind == "array":
                return _Node(_LIST, 0, (self._number(described["items"]),))
            if kind == "map":
                return _Node(_LIST, 0, (self._number(_entry(described["values"])),))
            if kind == "fixed":
                size = int(cast("dict[str, int]", described)["size"])
                return _Node(_PLAIN if size > 0 else _EMPTY, size, ())
            if kind == _ENTRY_TYPE:
                return _Node(_ENTRY, 0, (self._number("string"), self._number(described["values"])))
        if kind not in _LEAVES:
            raise ValueError(f"not an Avro schema: {kind!r} is no type")
        return _Node(*_LEAVES[kind], ())


_ENTRY_TYPE = "entry of a map"


def _entry(values: Avro) -> Definition:
    return {"type": _ENTRY_TYPE, "values": values}


def _may_exceed(nodes: list[_Node]) -> bool:
    """True if some bytes may exceed the bounds.

    The schema holds itself or is deep, or a list has items that may have more values without bytes
    than bytes, or that fastavro passes over blindly: a count of 2**62 in ten bytes would hold
    fastavro up for ever, where the reader's schema leaves the list out.
    """
    costs: dict[int, _Cost] = {}
    open_: set[int] = set()
    todo = [0]
    while todo:
        number = todo[-1]
        node = nodes[number]
        below = [inner for inner in node.inner if inner not in costs]
        if below:
            open_.add(number)
            if not open_.isdisjoint(below):
                return True
            todo += below
            continue
        todo.pop()
        open_.discard(number)
        costs[number] = cost = _cost(node, [costs[inner] for inner in node.inner])
        item = costs[node.inner[0]] if node.kind == _LIST else None
        if cost.depth > VALUE_DEPTH_MAX or (item is not None and (item.excess > 0 or item.is_blind)):
            return True
    return costs[0].excess > EMPTY_VALUES_MAX


def _cost(node: _Node, inner: list[_Cost]) -> _Cost:
    if not inner:
        return _Cost(0, 1 if node.kind == _EMPTY else -1, node.kind in (_PLAIN, _EMPTY))
    depth = max(cost.depth for cost in inner) + (node.kind in (_RECORD, _LIST))
    if node.kind == _LIST:
        return _Cost(depth, -1, False)
    if node.kind == _UNION:
        return _Cost(depth, max(cost.excess for cost in inner) - 1, False)
    return _Cost(depth, sum(cost.excess for cost in inner), all(cost.is_blind for cost in inner))
