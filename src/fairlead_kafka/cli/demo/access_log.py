"""Access-log lines: from a file, streamed, or from a seeded generator, as Arrow tables of key
(client address) and value (line)."""

from __future__ import annotations

import random
from bisect import bisect
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

from fairlead_kafka.base.units import MIB
from fairlead_kafka.cli.demo.line_formats import InputOfNoUse, check_lines, common_line

READ_BLOCK_BYTES = 4 * MIB
"""A file is read and produced in tables of about this size, so that no file is held whole."""
_COMPRESSED = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zstd"}
"""Codecs by the bytes that their files begin with."""
GENERATED_TABLE_ROWS = 20_000
HOST_COUNT = 1_500
"""Addresses in the generated log; a few of them make most of the requests, as in a real one."""
BROKEN_LINE_SHARE = 0.001
"""Share of generated lines cut off in the middle, as a crashed server leaves them: they belong into
quarantine."""

LINES_PER_S = 20.0
ENDING_HOST = "end-of-log"

_PATHS = (
    "/",
    "/index.html",
    "/blog/",
    "/blog/kafka",
    "/images/logo.png",
    "/style.css",
    "/robots.txt",
    "/api/orders",
    "/search",
    "/favicon.ico",
)
_STATUSES, _STATUS_WEIGHTS = (
    ("200", "304", "301", "206", "404", "403", "500", "503"),
    (880, 45, 16, 5, 40, 4, 8, 2),
)
_AGENTS = (
    "Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0",
    "curl/8.9.1",
    "Mozilla/5.0 (compatible; ExampleBot/2.1)",
    "-",
)
_MONTH = "Nov/2026"


def generated(rows: int, seed: int = 1, lines_per_s: float = LINES_PER_S) -> Iterator[pa.Table]:
    """Tables of `rows` lines in the combined log format, `lines_per_s` for each second of the log's
    time; the same for the same `seed`."""
    rng = random.Random(seed)
    hosts = [
        f"{rng.randrange(1, 224)}.{rng.randrange(256)}.{rng.randrange(256)}.{rng.randrange(1, 255)}"
        for _ in range(HOST_COUNT)
    ]
    host_weights = list(accumulate(1 / (rank + 1) for rank in range(HOST_COUNT)))
    status_weights = list(accumulate(_STATUS_WEIGHTS))
    made = 0
    while made < rows:
        count = min(GENERATED_TABLE_ROWS, rows - made)
        lines = []
        for number in range(made, made + count):
            host = hosts[bisect(host_weights, rng.random() * host_weights[-1])]
            status = _STATUSES[bisect(status_weights, rng.random() * status_weights[-1])]
            size = "-" if status == "304" else str(int(rng.lognormvariate(8.5, 1.6)))
            second = int(number / lines_per_s)
            day, hour, minute = 1 + second // 86_400 % 28, second // 3600 % 24, second // 60 % 60
            when = f"{day:02}/{_MONTH}:{hour:02}:{minute:02}:{second % 60:02} +0000"
            path, agent = rng.choice(_PATHS), rng.choice(_AGENTS)
            line = f'{host} - - [{when}] "GET {path} HTTP/1.1" {status} {size} "-" "{agent}"'
            lines.append((line[: len(line) // 3] if rng.random() < BROKEN_LINE_SHARE else line).encode())
        made += count
        yield _keyed(lines)


def ending() -> pa.Table:
    """A table of one line of the year 2999, which closes all windows but its own: the watermark
    follows the latest time seen."""
    return _keyed(
        [f'{ENDING_HOST} - - [31/Dec/2999:23:59:59 +0000] "GET /end-of-log HTTP/1.1" 200 0 "-" "-"'.encode()]
    )


def from_file(path: Path) -> Iterator[pa.Table]:
    """The lines of a file, each with its first field as key, in tables. InputOfNoUse if the file
    has no line or cannot be read."""
    for lines in blocks_of_lines(path):
        yield _keyed(lines)


def access_lines(path: Path) -> Iterator[pa.Table]:
    """The lines of an access log, JSON lines as those of the common format (`line_formats`).
    NotAnAccessLog for other lines."""
    first = True
    for block in blocks_of_lines(path):
        lines = [common_line(line) for line in block]
        if first:
            check_lines(lines, f"--input {path}")
            first = False
        yield _keyed(lines)


def blocks_of_lines(path: Path) -> Iterator[list[bytes]]:
    """The lines of a file, read in blocks and inflated if it is compressed; line ends are taken
    off, `\\r\\n` too.

    InputOfNoUse if there is no line in it, or it cannot be read.
    """
    lines: list[bytes] = []
    try:
        with _opened(path) as file:
            rest = b""
            while block := file.read(READ_BLOCK_BYTES):
                if len(lines) > 1:
                    yield [line.rstrip(b"\r") for line in lines[:-1]]
                lines = (rest + block).split(b"\n")
                rest = lines[-1]
    except OSError as error:  # Arrow has no number for an archive that is damaged
        reason = error.strerror or str(error)
        raise InputOfNoUse(
            f"--input {path}: cannot be read ({reason}); give the path of an access log, or leave --input out"
        ) from None
    if lines and not lines[-1]:
        lines.pop()  # the file ends with a line's end
    if lines:
        yield [line.rstrip(b"\r") for line in lines]
    else:
        raise InputOfNoUse(
            f"--input {path}: the file is empty; give an access log with at least one line, or leave --input "
            "out"
        )


def _opened(path: Path) -> BinaryIO | pa.NativeFile:
    """The file, inflated if it is compressed; read once from its beginning, so that a pipe will
    do."""
    file = path.open("rb")
    start = file.peek(max(map(len, _COMPRESSED)))
    codec = next((codec for mark, codec in _COMPRESSED.items() if start.startswith(mark)), None)
    return file if codec is None else pa.CompressedInputStream(pa.PythonFile(file, mode="r"), codec)


def _keyed(lines: list[bytes]) -> pa.Table:
    """Lines with their first field as key; a line without one has a null key, and stays."""
    values = pa.array(lines, pa.binary())
    keys = pc.struct_field(pc.extract_regex(values, r"^(?P<host>\S+)"), "host")
    return pa.table({"key": keys, "value": values})
