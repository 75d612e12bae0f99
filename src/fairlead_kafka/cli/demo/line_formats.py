"""The formats of access logs that the demo knows: common, combined, and JSON lines, which are
written as common lines."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from itertools import islice

from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.base.json_types import Json

LINE = re.compile(rb'^(\S+) \S+ \S+ \[([^\]]+)\] "((?:[^"\\]|\\.)*)" (\d{3}) (\d+|-)')
"""The common log format, which the combined one begins with; as the demo's pipeline has it."""
TIME_FORMAT = "%d/%b/%Y:%H:%M:%S %z"
CHECKED_LINES_MAX = 1_000
"""Lines that are looked at before anything starts."""
SHOWN_MAX_LENGTH = 80
HOSTS = ("remote_addr", "remote_host", "client_ip", "clientip", "client", "host", "ip")
TIMES = ("time_local", "time_iso8601", "@timestamp", "timestamp", "time", "ts")
STATUSES = ("status", "status_code", "response", "code")
SIZES = ("body_bytes_sent", "bytes_sent", "bytes", "response_size", "size")
PATHS = ("request_uri", "uri", "url", "path")
_MILLISECONDS_FROM = 1e11
"""Seconds since 1970 reach this in the year 5138; such a number counts milliseconds."""


JSON_FIELDS = (
    f"host ({', '.join(HOSTS)}), time ({', '.join(TIMES)}) and status ({', '.join(STATUSES)}); if there are "
    "any, also size "
    f"({', '.join(SIZES)}), request, or method and path ({', '.join(PATHS)})"
)
"""Text on the fields of a JSON line: for each meaning the first of its fields that is there."""


class InputOfNoUse(ConfigError):
    """The input given as access log cannot be read, or has no line."""


class NotAnAccessLog(InputOfNoUse):
    """None of the first lines of the input is one of an access log."""


def common_line(line: bytes) -> bytes:
    """A JSON line as a line of the common log format; any other line, and one that lacks something,
    as it is."""
    text = line.lstrip(b"\xef\xbb\xbf \t")
    if not text.startswith(b"{"):
        return line
    try:
        entry = json.loads(text)
        host, status = _of(entry, HOSTS), _status(_of(entry, STATUSES))
        when = _time(_of(entry, TIMES)).strftime(TIME_FORMAT)
        request = (
            _of(entry, ("request",), "")
            or f"{_of(entry, ('method',), 'GET')} {_of(entry, PATHS, '/')} HTTP/1.1"
        )
        quoted = str(request).replace("\\", "\\\\").replace('"', '\\"')
        return f'{host} - - [{when}] "{quoted}" {status:03} {_of(entry, SIZES, "-")}'.encode()
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        return line


def check_lines(lines: Iterable[bytes], named: str) -> None:
    """NotAnAccessLog if none of the first lines, as `common_line` has them, is one of an access
    log."""
    checked = list(islice(lines, CHECKED_LINES_MAX))
    if any(map(is_access_line, checked)):
        return
    count = (
        f"{'the first ' if len(checked) == CHECKED_LINES_MAX else ''}{len(checked):,} "
        f"line{'' if len(checked) == 1 else 's'}"
    )
    first = repr(next((line for line in checked if line.strip()), b"")[:SHOWN_MAX_LENGTH])[1:]
    raise NotAnAccessLog(
        f"{named}: 0 of {count} parse as an access log: known are the common and the combined log format, "
        "and JSON lines with host, time "
        f"and status (`fairlead demo --help` names their fields); the first line is {first}"
    )


def is_access_line(line: bytes) -> bool:
    """True if the pipeline will parse it."""
    found = LINE.match(line)
    if found is None:
        return False
    try:
        datetime.strptime(found[2].decode("ascii"), TIME_FORMAT)
    except ValueError:
        return False
    return True


def _of(entry: Mapping[str, Json], names: Iterable[str], default: Json = None) -> Json:
    """The value of the first field that is present. KeyError if none of `names` is, and there is no
    default."""
    for name in names:
        if entry.get(name) not in (None, ""):
            return entry[name]
    if default is None:
        raise KeyError(str(names))
    return default


def _status(value: Json) -> int:
    """The code of an HTTP status, given as a number or as text. ValueError for anything else."""
    if not isinstance(value, (int, float, str)):
        raise ValueError(f"expected a status, got {value!r}")
    return int(value)


def _time(value: Json) -> datetime:
    """A time of ISO 8601, of the common log format, or a number of seconds or milliseconds since
    1970; in UTC if it names no time zone. ValueError for anything else."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return datetime.fromtimestamp(value / 1000 if value >= _MILLISECONDS_FROM else value, UTC)
    try:
        time = datetime.fromisoformat(str(value))
    except ValueError:
        time = datetime.strptime(str(value), TIME_FORMAT)
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)
