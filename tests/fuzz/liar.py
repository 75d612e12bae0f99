"""A broker that lies: a proxy before real brokers that changes, garbles, delays, repeats or keeps
their answers, as its tape has it.

The real brokers serve every API, so that clients get anywhere at all: they find coordinators, join
groups, fetch what was produced. What is said of addresses is always changed, so that clients come
back to the proxy.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from fairlead_kafka.base.errors import UsageError
from fairlead_kafka.core.effects import Close, Connect, Effect, Listen, Write
from fairlead_kafka.core.events import Accepted, Connected, Disconnected, Event, Received
from fairlead_kafka.wire import ApiKey, FrameReader, Message, decode_response, encode_response, peek_request
from fairlead_kafka.wire.schema import Structure
from fairlead_kafka.wire.schemas import RESPONSE, load_schema
from tests.fuzz.messages import Words, copied, garbled, lie, make
from tests.fuzz.tape import Tape
from tests.fuzz.target_records import garbled_batch, sound

FIRST_PORT = 19_092
ADDRESSES = (
    ("127.0.0.1", FIRST_PORT),
    ("127.0.0.1", 1),
    ("nowhere", 9092),
    ("", 0),
    ("127.0.0.1", 70_000),
    ("\0", -1),
    ("h" * 300, 9092),
)
ERRORS = (
    6,
    3,
    5,
    14,
    15,
    16,
    25,
    27,
    22,
    7,
    1,
    2,
    9,
    10,
    19,
    20,
    35,
    45,
    47,
    48,
    51,
    67,
    74,
    75,
    76,
    82,
    87,
    89,
    90,
    100,
    129,
    9999,
    -1,
)
LATE_MS = (1, 50, 400, 900, 1100, 3000, 40_000)
STUBBORN_BYTES = 24
FALSE_FRAMES = (
    b"\x06\x3f\xff\xff\0\0\0\0",
    b"\x7f\xff\xff\xff",
    b"\xff\xff\xff\xff",
    b"\0\0\0\0",
    b"\0\0\0\3abc",
    b"HTTP/1.1 400 Bad Request\r\n\r\n",
)


@cache
def _structure(api_key: int, version: int) -> Structure:
    return load_schema(api_key, version, RESPONSE).body


class _Link:
    """One client's connection and the one behind it."""

    def __init__(self, front: int, back: int) -> None:
        self.front, self.back = front, back
        self.asked: deque[tuple[int, int, int]] = deque()
        self.requests, self.answers = FrameReader(), FrameReader()
        self.early: list[bytes] = []
        self.up = False
        self.mute = False
        """Nothing more is said on it: what was said before announced bytes that never come."""


class Liar:
    """A machine that listens for `brokers` brokers. `honest` until the clients have begun;
    `answers` counts what went through it."""

    def __init__(self, tape: Tape, brokers: int, real_port: int, now_ns: Callable[[], int]) -> None:
        self._tape = tape
        self._real_port = real_port
        self._now_ns = now_ns
        self._inbox: list[Event] = []
        self._effects: list[Effect] = [
            Listen(node + 1, "127.0.0.1", FIRST_PORT + node) for node in range(brokers)
        ]
        self._links: dict[int, _Link] = {}
        self._later: list[tuple[int, Effect]] = []
        self._numbers = 0
        self.answers = 0
        self.lies = 0
        self.honest = tape.pick((0, 3, 6, 12, 25))
        """So many answers are true."""
        self._share = tape.pick((60, 20, 120, 200))
        self._stubborn: dict[int, bytes] = {}
        for _ in range(tape.pick((0, 0, 1, 1, 2))):  # the same lie to every question of a kind, for ever
            self._stubborn[tape.pick((3, 0, 1, 2, 10, 22, 11, 14, 12, 8, 9, 18, 24, 26, 28))] = tape.raw(
                STUBBORN_BYTES
            )
        self.words = Words(
            records=false_records,
            by_name={"error_code": ERRORS, "node_id": (0, 1, -1, 7), "leader_id": (0, 1, -1, 7)},
        )

    # The machine

    def receive(self, event: Event) -> None:
        self._inbox.append(event)

    def step(self, now_ns: int, wall_ms: int) -> Sequence[Effect]:
        events, self._inbox = self._inbox, []
        for event in events:
            self._handle(event)
        due = [effect for when_ns, effect in self._later if when_ns <= now_ns]
        self._later = [each for each in self._later if each[0] > now_ns]
        effects, self._effects = self._effects + due, []
        return effects

    def deadline_ns(self) -> int | None:
        return min((when_ns for when_ns, _ in self._later), default=None)

    def _handle(self, event: Event) -> None:
        if isinstance(event, Accepted):
            self._numbers += 1
            link = self._links[event.connection] = self._links[self._numbers] = _Link(
                event.connection, self._numbers
            )
            self._effects.append(Connect(link.back, "127.0.0.1", self._real_port + event.listener - 1))
        elif isinstance(event, Connected | Disconnected | Received) and event.connection in self._links:
            link = self._links[event.connection]
            if isinstance(event, Connected):
                link.up = True
                self._effects.append(Write(link.back, link.early))
            elif isinstance(event, Disconnected):
                self._close(link)
            elif event.connection == link.front:
                self._asked(link, event.data)
            else:
                for frame in link.answers.feed(event.data):
                    self._answered(link, frame)

    def _asked(self, link: _Link, data: bytes) -> None:
        for frame in link.requests.feed(data):
            header = peek_request(frame)
            link.asked.append((int(header.api_key), header.version, header.correlation_id))
        if link.up:
            self._effects.append(Write(link.back, [data]))
        else:
            link.early.append(data)

    def _close(self, link: _Link) -> None:
        for number in (link.front, link.back):
            if self._links.pop(number, None) is not None:
                self._effects.append(Close(number))

    # Lies

    def _answered(self, link: _Link, frame: memoryview) -> None:
        api_key, version, correlation = link.asked.popleft()
        if link.mute:
            return
        self.answers += 1
        message = decode_response(api_key, version, frame)
        if api_key in (ApiKey.METADATA, ApiKey.DESCRIBE_CLUSTER):
            for broker in message.brokers:
                if 0 <= broker.port - self._real_port < 100:
                    broker.port = FIRST_PORT + broker.port - self._real_port
        elif api_key == ApiKey.FIND_COORDINATOR:
            for row in getattr(message, "coordinators", None) or [message]:
                if 0 <= row.port - self._real_port < 100:
                    row.port = FIRST_PORT + row.port - self._real_port
        tape, lying = self._tape, self.answers > self.honest
        if lying and api_key in self._stubborn:
            self.lies += 1
            message = self._other(api_key, version, message, Tape(self._stubborn[api_key]))
        elif not lying or not tape.chance(self._share):
            self._say(link, encoded(api_key, version, correlation, message))
            return
        else:
            self.lies += 1
            if self._disturb(link, api_key, version, correlation, message):
                return
            message = self._other(api_key, version, message, tape)
        self._say(link, encoded(api_key, version, correlation, message))

    def _other(self, api_key: int, version: int, message: Message, tape: Tape) -> Message:
        """Another answer to the same question."""
        structure = _structure(api_key, version)
        how = tape.below(8)
        if how == 0:
            return make(structure, tape, self.words)
        if how == 1:
            changed = copied(message)
            set_errors(changed, tape.pick(ERRORS), tape)
            return changed
        if how == 2 and api_key in (
            ApiKey.METADATA,
            ApiKey.FIND_COORDINATOR,
            ApiKey.FETCH,
            ApiKey.API_VERSIONS,
            ApiKey.LIST_OFFSETS,
        ):
            return _special(api_key, message, tape)
        return lie(message, structure, tape, self.words)

    def _disturb(self, link: _Link, api_key: int, version: int, correlation: int, message: Message) -> bool:
        """Do something to the answer as bytes, or to its connection; False: nothing was done."""
        tape = self._tape
        how = tape.below(20)
        data = encoded(api_key, version, correlation, message)
        if how == 0:
            self._say(link, garbled(data, tape))
        elif how == 1:
            body = garbled(data[4:], tape)
            self._say(link, len(body).to_bytes(4, "big") + body)
        elif how == 2:
            self._say(
                link,
                encoded(
                    api_key, version, tape.pick((correlation + 1, correlation - 1, 0, 2**31 - 1, -1)), message
                ),
            )
        elif how == 3:
            self._say(link, data[: tape.below(len(data) + 1)])
            link.mute = True
        elif how == 4:
            self._say(link, tape.pick(FALSE_FRAMES))
            link.mute = tape.chance(128)
        elif how == 5:
            link.mute = tape.chance(128)  # no answer at all
        elif how == 6:
            self._close(link)
        elif how == 7:
            self._say(link, data)
            self._say(link, data)
        elif how == 8:
            when_ns = self._now_ns() + tape.pick(LATE_MS) * 1_000_000
            self._later.append((when_ns, Write(link.front, [data])))
        elif how == 9:
            for start in range(0, len(data), max(1, len(data) // 7)):
                self._say(link, data[start : start + max(1, len(data) // 7)])
        else:
            return False
        return True

    def _say(self, link: _Link, data: bytes) -> None:
        if link.front in self._links and data:
            self._effects.append(Write(link.front, [data]))


def encoded(api_key: int, version: int, correlation: int, message: Message) -> bytes:
    """The bytes of an answer; what does not fit its field becomes an answer of defaults."""
    correlation = (correlation + 2**31) % 2**32 - 2**31
    try:
        return b"".join(bytes(each) for each in encode_response(api_key, version, correlation, message))
    except UsageError:
        return b"".join(bytes(each) for each in encode_response(api_key, version, correlation, Message()))


def false_records(tape: Tape) -> bytes:
    """Batches: sound ones from anywhere, garbled ones, several over one another, or none."""
    how = tape.below(5)
    if how == 0:
        return garbled_batch(tape)
    if how == 1:
        return b""
    if how == 2:
        return tape.raw(tape.below(120))
    return b"".join(sound(tape.byte()) for _ in range(1 + tape.below(3)))


def set_errors(message: Message, code: int, tape: Tape) -> None:
    """Give one of the fields that hold an error this code, or all of them."""
    fields: list[tuple[Message, str]] = []

    def collect(within: Message) -> None:
        for name, value in within.__dict__.items():
            if name.endswith("error_code"):
                fields.append((within, name))
            for each in value if isinstance(value, list) else (value,):
                if isinstance(each, Message):
                    collect(each)

    collect(message)
    if fields and tape.chance(128):
        fields = [tape.pick(fields)]
    for within, name in fields:
        setattr(within, name, code)


def _special(api_key: int, message: Message, tape: Tape) -> Message:
    """What a liar of this kind says best."""
    changed = copied(message)
    if api_key == ApiKey.METADATA:
        for broker in changed.brokers:
            broker.host, broker.port = tape.pick(ADDRESSES)
        for topic in changed.topics:
            for partition in topic.partitions:
                partition.leader_id = tape.pick((partition.leader_id, 0, 1, -1, 7, -1000))
                partition.leader_epoch = tape.pick((getattr(partition, "leader_epoch", 0), 0, -1, 2**31 - 1))
                partition.partition_index = tape.pick(
                    (partition.partition_index, partition.partition_index, 0, -1, 2**31 - 1)
                )
    elif api_key == ApiKey.FIND_COORDINATOR:
        for row in getattr(changed, "coordinators", None) or [changed]:
            row.node_id = tape.pick((1 - row.node_id, row.node_id, -1, 7, 2**31 - 1))
            row.host, row.port = tape.pick(ADDRESSES)
    elif api_key == ApiKey.FETCH:
        _false_fetch(changed, tape)
    elif api_key == ApiKey.API_VERSIONS:
        for row in changed.api_keys or []:
            row.min_version, row.max_version = tape.pick(
                ((row.min_version, row.max_version), (0, 0), (0, 99), (9, 3), (-1, -1), (90, 99))
            )
    elif api_key == ApiKey.LIST_OFFSETS:
        for topic in changed.topics:
            for partition in topic.partitions:
                partition.offset = tape.pick((partition.offset, -1, -2, 0, 2**63 - 1, -(2**63), 3))
                partition.timestamp = tape.pick((partition.timestamp, -1, 2**63 - 1))
    return changed


def _false_fetch(changed: Message, tape: Tape) -> None:
    for topic in changed.responses:
        for row in topic.partitions:
            how = tape.below(5)
            data: Any = bytes(row.records or b"")
            if how == 0:
                row.records = data * 2
            elif how == 1:
                row.records = false_records(tape)
            elif how == 2 and len(data) > 8:
                row.records = tape.pick((0, 1, 3, 2**62, -1)).to_bytes(8, "big", signed=True) + data[8:]
            elif how == 3:
                row.aborted_transactions = [
                    Message(producer_id=tape.below(3), first_offset=tape.below(9))
                    for _ in range(tape.below(4))
                ]
            row.high_watermark = tape.pick((row.high_watermark, row.high_watermark, 0, -1, 2**63 - 1))
            told_start = getattr(
                row, "log_start_offset", -1
            )  # versions before 5 have none, and leave out what they have not
            row.log_start_offset = tape.pick((told_start, told_start, 2**62, -1))
