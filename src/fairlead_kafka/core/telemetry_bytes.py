"""The bytes of pushed metrics: OpenTelemetry's `MetricsData` (opentelemetry-proto,
`metrics.proto`), compressed with a codec that the broker accepts.

Written here, and not with the extra `telemetry`, so that every client can push: it is one message
of strings and numbers. Tests decode it with opentelemetry-proto.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence

from fairlead_kafka.base.units import NS_PER_MS
from fairlead_kafka.core.telemetry_report import Point
from fairlead_kafka.records import Compression, compress

_VARINT, _FIXED64, _LENGTH = 0, 1, 2
_DELTA, _CUMULATIVE = 1, 2
"""`AggregationTemporality`."""
_DOUBLE = struct.Struct("<d")
_UINT64 = struct.Struct("<Q")
_CODECS = frozenset(int(each) for each in Compression)


def encoded(
    labels: Mapping[str, str], points: Sequence[Point], wall_ms: int, delta: bool, accepted: Sequence[int]
) -> tuple[int, bytes]:
    """The first codec of `accepted` that this client has (0: none), and the metrics as of `wall_ms`
    (milliseconds since 1970), compressed by it."""
    codec = next((Compression(each) for each in accepted if each in _CODECS), Compression.none)
    return int(codec), compress(codec, metrics_data(labels, points, wall_ms, delta))


def metrics_data(labels: Mapping[str, str], points: Iterable[Point], wall_ms: int, delta: bool) -> bytes:
    """OpenTelemetry's `MetricsData`, encoded: one resource with these labels; points of one name
    are one metric."""
    by_name: dict[str, list[Point]] = {}
    for point in points:
        by_name.setdefault(point.name, []).append(point)
    metrics = b"".join(_field(2, _metric(name, each, wall_ms, delta)) for name, each in by_name.items())
    resource = b"".join(_field(1, _key_value(*label)) for label in labels.items())
    return _field(1, _field(1, resource) + _field(2, metrics))


def _metric(name: str, points: Sequence[Point], wall_ms: int, delta: bool) -> bytes:
    written = b"".join(_field(1, _number(point, wall_ms)) for point in points)
    head = _field(1, name.encode())
    if points[0].start_ms is None:
        return head + _field(5, written)
    temporality = _tag(2, _VARINT) + _varint(_DELTA if delta else _CUMULATIVE)
    return head + _field(7, written + temporality + _tag(3, _VARINT) + b"\x01")


def _number(point: Point, wall_ms: int) -> bytes:
    """OpenTelemetry's `NumberDataPoint`, encoded, with the value as a double, as Kafka's clients
    write sums and gauges."""
    start = b"" if point.start_ms is None else _tag(2, _FIXED64) + _UINT64.pack(point.start_ms * NS_PER_MS)
    at = _tag(3, _FIXED64) + _UINT64.pack(wall_ms * NS_PER_MS)
    attributes = b"".join(_field(7, _key_value(*attribute)) for attribute in point.attributes)
    return start + at + _tag(4, _FIXED64) + _DOUBLE.pack(point.value) + attributes


def _key_value(key: str, value: str) -> bytes:
    return _field(1, key.encode()) + _field(2, _field(1, value.encode()))


def _field(number: int, data: bytes) -> bytes:
    return _tag(number, _LENGTH) + _varint(len(data)) + data


def _tag(number: int, kind: int) -> bytes:
    return _varint(number << 3 | kind)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
