"""The metadata log on disk: one line per decision, `<CRC-32 in hex> <JSON array of records>`, each
whole or absent.

A decision is the change made by one call to the controller; its records are atomic. A crash may
leave the last line torn: it was never acknowledged, and is cut. A damaged line with sound ones
after it is not a torn tail but a damaged disk, and is refused (the start fails): guessing would
lose topics that were acknowledged.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence

from fairlead_kafka.base.errors import DecodeError
from fairlead_kafka.broker.controller.fold import MetadataRecord

_CRC_DIGITS = 8


def encode_decision(records: Sequence[MetadataRecord]) -> bytes:
    """The line of the metadata log for one decision."""
    body = json.dumps(list(records), separators=(",", ":")).encode()
    return b"%08x %s\n" % (zlib.crc32(body), body)


def decode_log(data: bytes) -> tuple[list[list[MetadataRecord]], int]:
    """All decisions in a metadata log, and the size in bytes of the part of `data` that is valid:
    the rest is a torn tail, to be cut. DecodeError, with the offset of the line, if a damaged line
    is followed by a valid one."""
    decisions: list[list[MetadataRecord]] = []
    position = 0
    while position < len(data):
        end = data.find(b"\n", position)
        line = None if end < 0 else data[position:end]
        records = None if line is None else _decode_line(line)
        if records is None:
            if line is not None and any(
                _decode_line(later) is not None for later in data[end + 1 :].split(b"\n")
            ):
                raise DecodeError(
                    "the metadata log is damaged before its end: restore the file, or start with an empty "
                    "folder",
                    position,
                )
            break
        decisions.append(records)
        position = end + 1
    return decisions, position


def _decode_line(line: bytes) -> list[MetadataRecord] | None:
    digits, body = line[:_CRC_DIGITS], line[_CRC_DIGITS + 1 :]
    if line[_CRC_DIGITS : _CRC_DIGITS + 1] != b" " or digits != b"%08x" % zlib.crc32(body):
        return None
    records = json.loads(body)
    return records if isinstance(records, list) else None
