"""Compares two systems' answers field by field: values that each system chooses are replaced first,
and remaining differences are looked up in `differences.toml`."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from importlib.resources import files
from typing import TypeAlias
from uuid import UUID

from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.broker.refusals import REFUSED_APIS
from fairlead_kafka.lab.transcript.steps import NO_ID, PREFIX, Seen
from fairlead_kafka.lab.transcript.talk import Outcome
from fairlead_kafka.records import decompress, scan
from fairlead_kafka.records.layout import HEADER_SIZE_BYTES
from fairlead_kafka.wire import Message

ABSENT = "(absent)"
_INFLATED_MAX_BYTES = 1 << 20
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_IDENTITIES = (
    "name",
    "topic",
    "api_key",
    "topic_id",
    "group_id",
    "transactional_id",
    "resource_name",
    "member_id",
    "partition_index",
    "partition_id",
    "partition",
    "index",
    "key",
    "node_id",
    "broker_id",
    "producer_id",
    "user",
    "mechanism",
)
"""Fields that identify the elements of a list; the first that an element has counts."""


class Symbols:
    """Names for values that each system makes up (ids, times), numbered in the order in which they
    are first seen, so that two systems can be compared."""

    def __init__(self, seen: Seen) -> None:
        self._base_ms = seen.base_ms
        self._topics = {topic_id: name for name, topic_id in seen.ids.items()}
        self._topics |= {topic_id: f"{name}, deleted" for topic_id, name in seen.former.items()}
        self._numbers: dict[tuple[str, int | str], int] = {}

    def numbered(self, kind: str, value: int | str) -> str:
        """A name made of `kind` and a number, the same for the same value."""
        next_number = 1 + sum(1 for other, _ in self._numbers if other == kind)
        return f"{kind} {self._numbers.setdefault((kind, value), next_number)}"

    def topic(self, topic_id: UUID) -> str:
        """The name of the topic with this id, in place of the id."""
        if topic_id == NO_ID:
            return "no id"
        return f"id of {self._topics[topic_id]}" if topic_id in self._topics else str(topic_id)

    def text(self, value: str) -> str:
        """Text with any UUID in it (a member's id, say) numbered."""
        return _UUID.sub(lambda found: f"<{self.numbered('uuid', found[0])}>", value)

    def time(self, value: int) -> int | str:
        """A time (ms since 1970) relative to the times of the transcript's records, if it is one of
        those; else "a time"."""
        if value <= 0:
            return value
        return f"base + {value - self._base_ms} ms" if 0 <= value - self._base_ms < 1000 else "a time"


_NUMBER_RULES: Mapping[str, Callable[[Symbols, int], int | str]] = {
    "port": lambda symbols, value: "a port" if value > 0 else value,
    "producer_id": lambda symbols, value: symbols.numbered("producer", value) if value >= 0 else value,
    "session_id": lambda symbols, value: symbols.numbered("session", value) if value else value,
    "log_append_time_ms": Symbols.time,
    "timestamp": Symbols.time,
    "last_timestamp": Symbols.time,
    "transaction_start_time_ms": Symbols.time,
}
"""Field → function that gives what is compared instead of its number."""
_TEXT_RULES: Mapping[str, Callable[[str], str | None]] = {
    "host": lambda value: "127.0.0.1" if value == "localhost" else value,
    "log_dir": lambda value: "a folder" if value else value,
    "cluster_id": lambda value: "an id" if value else value,
    "error_message": lambda value: "some words" if value else None,
    "batch_index_error_message": lambda value: "some words" if value else None,
    "documentation": lambda value: "some words" if value else None,
}
"""Field → function that gives what is compared instead of its text."""
Plain: TypeAlias = "bool | int | float | str | Sequence[Plain] | Mapping[str | int, Plain] | None"
"""An answer made alike: a field's name, or an index, is a key."""


def plain(outcome: Outcome, symbols: Symbols) -> Plain:
    """An answer as dicts, lists and scalars, with `symbols` for values that each system makes
    up."""
    return _plain(_mine(outcome.answer) if outcome.step.mine else outcome.answer, "", symbols)


def _plain(value: object, name: str, symbols: Symbols) -> Plain:
    if isinstance(value, Message):
        return {field: _plain(inner, field, symbols) for field, inner in vars(value).items()}
    if name == "records":
        return _batches(value, symbols)
    if isinstance(value, (list, tuple)):
        return _list(value, name, symbols)
    if isinstance(value, UUID):
        return symbols.topic(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        if name == "auth_bytes":
            return "some bytes" if len(value) else ""
        return bytes(value).hex()
    if isinstance(value, str):
        return _TEXT_RULES[name](value) if name in _TEXT_RULES else symbols.text(value)
    if isinstance(value, int) and name in _NUMBER_RULES:
        return _NUMBER_RULES[name](symbols, value)
    assert value is None or isinstance(value, (int, float)), f"{name}: no such value in Kafka's messages"
    return value


def _list(value: Sequence[object], name: str, symbols: Symbols) -> Plain:
    if name in ("isr_nodes", "mechanisms"):
        return sorted((_plain(inner, "", symbols) for inner in value), key=repr)  # a set, in no order
    if name in ("acls", "matching_acls") or (
        name == "resources" and any("acls" in vars(one) for one in value)
    ):
        rows = [_plain(inner, "", symbols) for inner in value]
        return dict(enumerate(sorted(rows, key=repr)))  # a set, of which no field tells one from the others
    return [_plain(inner, name, symbols) for inner in value]


def _batches(records: object, symbols: Symbols) -> Plain:
    """Record batches by header and records, decompressed; without checksums, and without the times
    of control batches.
    """
    if records is None:
        return None
    assert isinstance(records, (list, bytes, bytearray, memoryview)), "as a codec gives them"
    data = b"".join(records) if isinstance(records, list) else bytes(records)
    batches: list[Plain] = []
    for header in scan(data):
        row: dict[str | int, Plain] = dict(header._asdict().items())
        if header.producer_id >= 0:
            row["producer_id"] = symbols.numbered("producer", header.producer_id)
        for field in ("position", "crc", "base_timestamp_ms", "max_timestamp_ms"):
            del row[field]
        payload = data[header.position + HEADER_SIZE_BYTES : header.stop]
        if header.codec:  # no two libraries compress alike
            del row["size_bytes"]
            payload = bytes(decompress(header.compression, payload, _INFLATED_MAX_BYTES))
        row["records"] = payload.hex()
        if not header.control:
            row["times"] = [symbols.time(header.base_timestamp_ms), symbols.time(header.max_timestamp_ms)]
        batches.append(row)
    return batches


def _mine(value: object) -> object:
    """An answer without the rows about things that the transcript did not create."""
    if isinstance(value, Message):
        return Message(**{field: _mine(inner) for field, inner in vars(value).items()})
    if isinstance(value, list):
        return [_mine(one) for one in value if not isinstance(one, Message) or _named_by_us(one)]
    return value


def _named_by_us(row: Message) -> bool:
    fields = vars(row)
    name = next(
        (
            fields[field]
            for field in ("name", "group_id", "transactional_id", "resource_name")
            if field in fields
        ),
        PREFIX,
    )
    return str(name).startswith(PREFIX)


def differences(ours: Plain, theirs: Plain, path: str = "") -> Iterator[tuple[str, Plain, Plain]]:
    """Differences of two plain answers: (path, ours, theirs).

    List elements are matched by what identifies them, not by index.
    """
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for name in {**ours, **theirs}:
            step = f"[{name}]" if isinstance(name, int) else f".{name}"
            yield from differences(
                ours.get(name, ABSENT), theirs.get(name, ABSENT), f"{path}{step}".lstrip(".")
            )
    elif isinstance(ours, list) and isinstance(theirs, list):
        mine, others = _by_identity(ours), _by_identity(theirs)
        for name in {**mine, **others}:
            yield from differences(mine.get(name, ABSENT), others.get(name, ABSENT), f"{path}[{name}]")
    elif ours != theirs:
        yield path, ours, theirs


def _by_identity(elements: list[Plain]) -> dict[str | int, Plain]:
    rows = [one for one in elements if isinstance(one, dict)]
    if len(rows) < len(elements):
        return dict(enumerate(elements))
    names = [
        next((str(one[field]) for field in _IDENTITIES if one.get(field) not in (None, "", "no id")), "")
        for one in rows
    ]
    count: Counter[str] = Counter()
    keyed: dict[str | int, Plain] = {}
    for name, one in zip(names, rows, strict=True):
        keyed[name if not count[name] else f"{name}#{count[name]}"] = one
        count[name] += 1
    return keyed


@dataclass
class Explanation:
    """One entry of the data file: differences at paths like `where` in answers of `api` (in steps
    like `step`), with the reason.

    `among` names a table of refusals (`_TABLES`): the last name in brackets of the path must be in
    it, where the reason is told.
    """

    api: str
    where: list[str]
    reason: str
    step: str = "*"
    ours: str = "*"
    theirs: str = "*"
    among: str = ""
    used: int = 0

    def __post_init__(self) -> None:
        if isinstance(self.where, str):
            raise TypeError(f"where = {self.where!r}: must be a list; the letters of a text match much")

    def covers(self, outcome: Outcome, path: str, ours: Plain, theirs: Plain) -> bool:
        """True if this entry covers the difference."""
        return (
            fnmatchcase(outcome.step.api.name, self.api)
            and any(_like(path, where) for where in self.where)
            and _like(outcome.step.name, self.step)
            and _like(str(ours), self.ours)
            and _like(str(theirs), self.theirs)
            and (not self.among or _TABLES[self.among](path[path.rindex("[") + 1 : path.rindex("]")]))
        )


_TABLES: dict[str, Callable[[str], bool]] = {
    "refused APIs": lambda name: name in {str(int(api)) for api in REFUSED_APIS},
}


def _like(text: str, pattern: str) -> bool:
    """True if a path matches as by `fnmatch`, but that brackets stand for themselves: paths are
    full of them."""
    return fnmatchcase(text, pattern.replace("[", "[[]"))


def explanations(file: str = "differences.toml") -> list[Explanation]:
    """The entries of a data file beside this module. ConfigError for an incomplete one."""
    text = (files("fairlead_kafka.lab.transcript") / file).read_text()
    try:
        return [Explanation(**entry) for entry in tomllib.loads(text).get("difference", ())]
    except TypeError as error:
        raise ConfigError(f"{file}: {error}") from None
