"""The demo's lines: generated the same for a seed, read from files of every shape."""

from __future__ import annotations

import bz2
import gzip
import json
import os
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.cli.demo import access_log, line_formats
from fairlead_kafka.cli.demo.line_formats import NotAnAccessLog
from fairlead_kafka.spark.pipelines import template

PROGRAM = Path(template.__file__).with_name("transformations") / "access_log.py.txt"
(LINE_PATTERN,) = re.findall(r"^LINE = r'(.*)'$", PROGRAM.read_text(encoding="utf-8"), re.MULTILINE)
"""As the demo's pipeline has it."""


COMMON = b'10.0.0.1 - - [01/Nov/2026:00:00:00 +0000] "GET / HTTP/1.1" 200 100\n'


def _rows(tables: object) -> list[tuple[bytes | None, bytes]]:
    table = pa.concat_tables(tables)
    return list(zip(table["key"].to_pylist(), table["value"].to_pylist(), strict=True))


def test_a_seed_gives_the_same_lines_and_another_seed_others() -> None:
    first, again, other = (_rows(access_log.generated(500, seed)) for seed in (1, 1, 2))
    assert first == again
    assert first != other
    assert len(first) == 500


def test_generated_lines_parse_but_for_the_few_that_are_broken_on_purpose() -> None:
    rows = _rows(access_log.generated(25_000))
    broken = [value for _, value in rows if not re.match(LINE_PATTERN.encode(), value)]
    assert 0 < len(broken) < 0.003 * len(rows)


def test_generated_keys_are_skewed() -> None:
    rows = _rows(access_log.generated(5_000))
    counts = sorted(
        (sum(1 for key, _ in rows if key == one) for one in {key for key, _ in rows}), reverse=True
    )
    assert counts[0] > 20 * len(rows) / access_log.HOST_COUNT


@pytest.mark.parametrize("block_bytes", [1, 7, 1 << 20])
def test_lines_of_a_file_come_whole_whatever_the_blocks(
    block_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access_log, "READ_BLOCK_BYTES", block_bytes)
    path = tmp_path / "log"
    path.write_bytes(b"1.2.3.4 a\r\n\n\xff\xfe b\nlast without end")
    assert _rows(access_log.from_file(path)) == [
        (b"1.2.3.4", b"1.2.3.4 a"),
        (None, b""),
        (b"\xff\xfe", b"\xff\xfe b"),
        (b"last", b"last without end"),
    ]


def test_a_missing_or_empty_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        list(access_log.from_file(tmp_path / "none"))
    (tmp_path / "empty").touch()
    with pytest.raises(ConfigError, match="the file is empty"):
        list(access_log.from_file(tmp_path / "empty"))


@pytest.mark.parametrize(
    "compress",
    [gzip.compress, bz2.compress, lambda data: pa.compress(data, "zstd", asbytes=True)],
    ids=["gzip", "bzip2", "zstd"],
)
def test_a_compressed_file_is_inflated(compress: Callable[[bytes], bytes], tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(compress(COMMON * 3))
    assert _rows(access_log.access_lines(path)) == [(b"10.0.0.1", COMMON.strip())] * 3


def test_a_damaged_archive_is_said(tmp_path: Path) -> None:
    path = tmp_path / "log.gz"
    path.write_bytes(gzip.compress(COMMON * 1000)[:30] + b"x" * 50)
    with pytest.raises(ConfigError, match=r"log\.gz: cannot be read \("):
        list(access_log.access_lines(path))


def test_a_folder_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot be read \(Is a directory\)"):
        list(access_log.access_lines(tmp_path))


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"a,b,c\n1,2,3\n", "0 of 2 lines parse as an access log: known are .*; the first line is 'a,b,c'"),
        (b"one\n", "0 of 1 line parse as an access log"),
        (b"\n\nhello\n", "0 of 3 lines .*; the first line is 'hello'"),
        (b"\x00\x01\xff" * 100 + b"\n", r"0 of 1 line .*; the first line is '\\x00\\x01\\xff"),
        (b"x\n" * 5_000, "0 of the first 1,000 lines parse"),
        (
            b'{"message": "started"}\n',
            "0 of 1 line .*JSON lines with host, time and status .`fairlead demo --help`",
        ),
        (b'10.0.0.1 - - [yesterday] "GET / HTTP/1.1" 200 100\n', "0 of 1 line"),
    ],
)
def test_a_file_of_other_lines_is_said_before_anything_starts(
    content: bytes, text: str, tmp_path: Path
) -> None:
    path = tmp_path / "log"
    path.write_bytes(content)
    with pytest.raises(NotAnAccessLog, match=text):
        list(access_log.access_lines(path))


def test_one_line_of_an_access_log_is_enough(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"# a comment\n" + COMMON.strip())
    assert [value for _, value in _rows(access_log.access_lines(path))] == [b"# a comment", COMMON.strip()]


@pytest.mark.parametrize(
    ("entry", "line"),
    [
        (
            {
                "remote_addr": "10.0.0.1",
                "time_iso8601": "2026-11-01T00:00:01+00:00",
                "request": "GET /a HTTP/1.1",
                "status": "200",
                "body_bytes_sent": "5",
            },
            '10.0.0.1 - - [01/Nov/2026:00:00:01 +0000] "GET /a HTTP/1.1" 200 5',
        ),
        (
            {
                "client_ip": "::1",
                "@timestamp": "2026-11-01T02:00:00Z",
                "method": "POST",
                "path": "/x",
                "status_code": 404,
                "bytes": 12,
            },
            '::1 - - [01/Nov/2026:02:00:00 +0000] "POST /x HTTP/1.1" 404 12',
        ),
        (
            {"host": "h", "ts": 1793491200, "status": 200, "uri": "/"},
            'h - - [01/Nov/2026:00:00:00 +0000] "GET / HTTP/1.1" 200 -',
        ),
        (
            {"host": "h", "ts": 1793491200000, "status": 200},
            'h - - [01/Nov/2026:00:00:00 +0000] "GET / HTTP/1.1" 200 -',
        ),
        (
            {"host": "h", "time": "01/Nov/2026:00:00:00 +0100", "status": 200},
            'h - - [01/Nov/2026:00:00:00 +0100] "GET / HTTP/1.1" 200 -',
        ),
        (
            {"host": "h", "time": "2026-11-01 00:00:00", "status": 200, "path": '/"a"'},
            'h - - [01/Nov/2026:00:00:00 +0000] "GET /\\"a\\" HTTP/1.1" 200 -',
        ),
    ],
)
def test_a_json_line_becomes_one_of_the_common_format(entry: dict[str, Any], line: str) -> None:
    made = line_formats.common_line(json.dumps(entry).encode())
    assert made == line.encode()
    assert line_formats.is_access_line(made)


@pytest.mark.parametrize(
    "line",
    [
        b"{",
        b"{}",
        b'{"host": "h"}',
        b'{"host": "h", "time": "soon", "status": 200}',
        b'{"host": "h", "ts": 1e300, "status": 200}',
        b"[1]",
        b"plain",
    ],
)
def test_a_json_line_that_lacks_something_stays_as_it_is(line: bytes) -> None:
    assert line_formats.common_line(line) == line


@pytest.mark.parametrize(
    "line", [b'{"host": "h", "ts": 0, "status": 200, "request": "GET /\\ud800"}', b'{"a":' * 100_000]
)
def test_a_json_line_that_cannot_be_written_or_read_stays_as_it_is(line: bytes) -> None:
    assert line_formats.common_line(line) == line


def test_a_json_line_behind_a_mark_and_with_nulls_is_known() -> None:
    line = b'\xef\xbb\xbf {"host": "h", "ts": 1793491200, "status": 200, "method": null}'
    assert line_formats.common_line(line) == b'h - - [01/Nov/2026:00:00:00 +0000] "GET / HTTP/1.1" 200 -'


def test_a_pipe_will_do(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=lambda: path.write_bytes(gzip.compress(COMMON * 1000)))
    writer.start()
    assert len(_rows(access_log.access_lines(path))) == 1000
    writer.join()


def test_the_pattern_is_that_of_the_pipeline() -> None:
    assert line_formats.LINE.pattern.decode() == LINE_PATTERN
