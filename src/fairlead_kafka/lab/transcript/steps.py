"""Steps of a transcript, and the ids, members and producers seen in answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias, TypeVar
from uuid import UUID

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.records import Compression, Slice, columns_from_lists, encode
from fairlead_kafka.wire import ApiKey, Message
from fairlead_kafka.wire.message import ApiMessage

NO_ID = UUID(int=0)
UNKNOWN_ID = UUID("01234567-89ab-cdef-0123-456789abcdef")
PREFIX = "transcript-"
"""Prefix of the names of the transcript's topics, groups and transactional ids."""
WARMING_UP = frozenset(
    {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.LEADER_NOT_AVAILABLE,
    }
)
"""Error codes until a coordinator is ready: the request is sent again."""
JUST_CHANGED = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
    }
)
"""Error codes of a broker of Apache Kafka that does not know its controller's last decision yet."""


class Kind(Enum):
    """Kinds of steps."""

    ASK = "send, and read the answer"
    SEND = "send, and leave the answer for a later step"
    ANSWER = "read the answer of the last SEND on this connection"
    SILENT = "send what gets no answer"
    RAW = "send bytes that are no request, and see what happens"
    KILL = "kill -9 the broker of the number that `on` gives"


@dataclass
class Seen:
    """Answers of one system so far, from which later requests take ids and epochs."""

    base_ms: int
    """Time of the records, ms since 1970, the same for all systems of a run."""
    kept: dict[str, Message] = field(default_factory=dict)
    ids: dict[str, UUID] = field(default_factory=dict)
    former: dict[UUID, str] = field(default_factory=dict)
    """Ids of deleted topics → names, which other topics have now."""
    version: int = 0
    """The version of the request that is being built."""

    def __getitem__(self, name: str) -> Message:
        return self.kept[name]

    def id(self, topic: str) -> UUID:
        """The id of a topic; all zeros if no answer had it."""
        return self.ids.get(topic, NO_ID)

    def learn(self, answer: object) -> None:
        """Remember the topic ids in an answer."""
        if isinstance(answer, Message):
            fields = vars(answer)
            name, topic_id = fields.get("name"), fields.get("topic_id")
            if name and topic_id and topic_id != NO_ID:
                before = self.ids.get(name, topic_id)
                if before != topic_id and topic_id not in self.former:
                    self.former[before] = name
                self.ids[name] = topic_id
            self.learn(list(fields.values()))
        elif isinstance(answer, list):
            for one in answer:
                self.learn(one)


T = TypeVar("T")
FieldValue: TypeAlias = "bool | int | float | str | bytes | UUID | ApiMessage | Iterable[FieldValue] | None"
"""Value of a request's field, lists of it and messages inside included."""
Given: TypeAlias = "T | Callable[[Seen], T]"
"""A value, or a function of what was seen so far that gives it."""
Body: TypeAlias = "FieldValue | Callable[[Seen], FieldValue]"
"""Content of a field of a step: a value, or a function of `Seen` that gives it."""


def given(value: Given[T], seen: Seen) -> T:
    """`value`, or, if it is a function, its result for `seen`."""
    found: T = value(seen) if callable(value) else value
    return found


@dataclass(frozen=True)
class Step:
    """One row of the transcript: requests of one API, one for each of `versions`."""

    name: str
    api: ApiKey
    versions: tuple[int, ...]
    fields: Mapping[str, Body]
    kind: Kind = Kind.ASK
    on: str = "a"
    """Name of the connection; one that was closed is opened again.

    A number is the id of the broker to connect to, other names are for broker 0.
    """
    keep: str | None = None
    """Name under which later steps find the answer."""
    again_on: frozenset[int] = frozenset()
    """Error codes on which the request is sent again, for a while."""
    mine: bool = False
    """True if the answer lists everything there is: only what carries `PREFIX` is compared."""
    raw: bytes = b""
    until: Callable[[Message], bool] | None = None
    """Condition on the answer; while it does not hold the request is sent again, for a while."""


def ask(
    name: str,
    api: ApiKey,
    versions: Iterable[int],
    *,
    on: str = "a",
    keep: str | None = None,
    again_on: Iterable[int] = (),
    mine: bool = False,
    **fields: Body,
) -> Step:
    """A step that sends requests and compares the answers."""
    return request(name, api, versions, fields, on=on, keep=keep, again_on=again_on, mine=mine)


def request(
    name: str,
    api: ApiKey,
    versions: Iterable[int],
    fields: Mapping[str, Body],
    *,
    on: str = "a",
    keep: str | None = None,
    again_on: Iterable[int] = (),
    mine: bool = False,
) -> Step:
    """A step that sends requests, with the fields of a mapping, and compares the answers."""
    return Step(name, api, tuple(versions), fields, Kind.ASK, on, keep, frozenset(map(int, again_on)), mine)


def send(name: str, api: ApiKey, version: int, *, on: str, **fields: Body) -> Step:
    """A step that sends a request, whose answer a later step, `answer`, reads."""
    return Step(name, api, (version,), fields, Kind.SEND, on)


def answer(name: str, api: ApiKey, version: int, *, on: str, keep: str | None = None) -> Step:
    """A step that reads the answer to `send`."""
    return Step(name, api, (version,), {}, Kind.ANSWER, on, keep)


def silent(name: str, api: ApiKey, versions: Iterable[int], *, on: str = "a", **fields: Body) -> Step:
    """A step whose request is not answered: acks=0.

    The next answer on the connection shows that none came.
    """
    return Step(name, api, tuple(versions), fields, Kind.SILENT, on)


def raw(name: str, api: ApiKey, data: bytes, *, on: str = "raw") -> Step:
    """A step that sends bytes, and compares the bytes that come back, or that the connection
    ends."""
    return Step(name, api, (0,), {}, Kind.RAW, on, raw=data)


def build(fields: Mapping[str, Body], seen: Seen) -> Message:
    """The request's message, its fields made with `seen`."""
    return Message(**{name: value(seen) if callable(value) else value for name, value in fields.items()})


def batch(
    *values: bytes | None,
    key: bytes | None = None,
    codec: str = "none",
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    transactional: bool = False,
) -> Callable[[Seen], bytes]:
    """One record batch as a producer sends it, its records a millisecond apart from `base_ms`
    on."""

    def made(seen: Seen) -> bytes:
        keys: list[bytes | None] | None = None if key is None else [key] * len(values)
        columns = columns_from_lists(
            keys, list(values), None, [seen.base_ms + number for number in range(len(values))]
        )
        encoded = encode(
            [Slice(columns, 0, len(values), None)],
            create_time_ms=seen.base_ms,
            compression=Compression.named(codec),
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            transactional=transactional,
        )
        return bytes(encoded.buffer)

    return made
