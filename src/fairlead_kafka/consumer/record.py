"""`Record`: a record as `Consumer.poll` returns it."""

from __future__ import annotations

from typing import Any, NamedTuple


class Record(NamedTuple):
    """A record as `Consumer.poll` returns it: a named tuple, which is cheap to make.

    `timestamp_ms` is milliseconds since 1970, set by the producer (`timestamp_type` 0) or by the
    broker on append (1). `key` and `value` are bytes, or None for null, which is not the empty
    value; or what `key.deserializer` and `value.deserializer` make of them. `headers` are (key,
    value) pairs in the order written.
    """

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    timestamp_type: int
    key: Any
    value: Any
    headers: tuple[tuple[str, bytes | None], ...] = ()
