"""Requests of every API and version, sound and garbled, on several connections of one broker, with
time going on between them; with or without an authorizer.

A finding: what comes out of the machine's step, an error logged with its trace (a handler, a timer
or a callback raised what it should not), an answer that is not of its request's schema, and a
broker that does not answer ApiVersions in the end.
"""

from __future__ import annotations

import contextlib
import logging
import traceback
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from fairlead_kafka.base.acls import AclBinding
from fairlead_kafka.base.config_broker_security import STANDARD_AUTHORIZER
from fairlead_kafka.base.errors import FairleadError
from fairlead_kafka.base.principal import ANONYMOUS
from fairlead_kafka.broker.dispatch import PRIVATE, REGISTRY
from fairlead_kafka.core import events as ev
from fairlead_kafka.wire import ApiKey, FrameReader, Message, decode_response, encode_request
from fairlead_kafka.wire.schemas import REQUEST, load_schema
from tests.fuzz.broker_words import TOPICS, learn, too_long, words
from tests.fuzz.messages import Words, garbled, make
from tests.fuzz.tape import Tape
from tests.support.broker_driver import Driver
from tests.support.rights import binding

REQUESTS_MAX = 60
CONNECTIONS = 3
CONFIG = {
    "group.min.session.timeout.ms": 500,
    "group.initial.rebalance.delay.ms": 0,
    "log.cleaner.backoff.ms": 500,
    "offsets.retention.check.interval.ms": 1000,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 500,
    "auto.create.topics.enable": False,
}
AUTHORIZER = {"authorizer.class.name": STANDARD_AUTHORIZER}
RIGHTS = [
    binding(right)._replace(principal=str(ANONYMOUS))
    for right in (
        "DESCRIBE TOPIC t",
        "ALL TOPIC *",
        "WRITE TOPIC t",
        "READ TOPIC c",
        "READ GROUP g",
        "ALL GROUP *",
        "ALL TRANSACTIONAL_ID *",
        "DESCRIBE CLUSTER",
        "CLUSTER_ACTION CLUSTER",
        "ALL CLUSTER",
        "DENY READ TOPIC t",
        "DENY DESCRIBE GROUP g*",
    )
]
"""Of which the requester is given up to two."""
APIS = sorted(REGISTRY)
THEMES: tuple[tuple[ApiKey, ...], ...] = (
    (),
    (
        ApiKey.PRODUCE,
        ApiKey.PRODUCE,
        ApiKey.LIST_OFFSETS,
        ApiKey.FETCH,
        ApiKey.DELETE_RECORDS,
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
    ),
    (
        ApiKey.JOIN_GROUP,
        ApiKey.JOIN_GROUP,
        ApiKey.SYNC_GROUP,
        ApiKey.HEARTBEAT,
        ApiKey.LEAVE_GROUP,
        ApiKey.OFFSET_COMMIT,
    ),
    (
        ApiKey.INIT_PRODUCER_ID,
        ApiKey.ADD_PARTITIONS_TO_TXN,
        ApiKey.PRODUCE,
        ApiKey.ADD_OFFSETS_TO_TXN,
        ApiKey.END_TXN,
        ApiKey.TXN_OFFSET_COMMIT,
    ),
    (ApiKey.PRODUCE, ApiKey.LIST_OFFSETS),
    (
        ApiKey.CREATE_TOPICS,
        ApiKey.DELETE_TOPICS,
        ApiKey.CREATE_PARTITIONS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        ApiKey.PRODUCE,
    ),
)
"""A run goes by one of these, mostly: states that take several requests of a kind are out of reach
where forty kinds take turns."""
PAUSES_MS = (0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 10, 100, 100, 600, 3000)
AFTERMATH_MS = 3000
NOISE = (
    b"GET / HTTP/1.1\r\n\r\n",
    b"\x16\x03\x01\0\x05",
    b"\0\0\0\0",
    b"\xff\xff\xff\xff",
    b"\x06\x3f\xff\xff\0",
    b"\0\0\0\x08\0\x03\0\x63\0\0\0\0",
    b"\0",
)


class Logged(Exception):
    """Something was logged with its trace: it was caught at the last place where it could be.
    `place`: where it was raised."""

    def __init__(self, place: str, trace: str) -> None:
        super().__init__(trace)
        self.place = place


class ErrorLog(logging.Handler):
    """Keeps what is logged as an error."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: list[Logged] = []

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if error is None:
            return
        frames = [
            frame for frame in traceback.extract_tb(error.__traceback__) if "fairlead_kafka" in frame.filename
        ]
        where = " < ".join(
            f"{frame.filename.rpartition('/')[2]}:{frame.name}:{frame.lineno}"
            for frame in reversed(frames[-3:])
        )
        text = f"{record.getMessage()}\n{''.join(traceback.format_exception(error))}"
        self.found.append(Logged(f"logged {type(error).__name__} in {where}", text))

    def __enter__(self) -> ErrorLog:
        logger = logging.getLogger("fairlead_kafka")
        self._before = logger.level, logger.propagate
        logger.addHandler(self)
        logger.setLevel(logging.ERROR)
        logger.propagate = False
        return self

    def __exit__(self, *_: object) -> None:
        logger = logging.getLogger("fairlead_kafka")
        logger.removeHandler(self)
        level, logger.propagate = self._before
        logger.setLevel(level)

    def check(self) -> None:
        """Raise what was found."""
        if self.found:
            raise self.found[0]


class Peer:
    """One connection to the broker: takes answers, and reads those of sound requests."""

    def __init__(self, driver: Driver, number: int, known: Words) -> None:
        self.driver, self.number, self.known = driver, number, known
        self.closed = False
        self.held = False
        self.frames = FrameReader()
        self.sent: deque[tuple[int, int, int]] | None = deque()
        self.correlation = 0
        driver.clients[number] = self  # type: ignore[assignment]
        driver.broker.receive(ev.Accepted(number, 1, "fuzz:1"))
        driver.run()

    def take(self, buffers: Any) -> None:
        """An answer: of its schema, and to what was asked."""
        for frame in self.frames.feed(b"".join(bytes(each) for each in buffers)):
            if self.sent is None or not self.sent:
                continue
            api_key, version, correlation = self.sent.popleft()
            if api_key == ApiKey.API_VERSIONS and int.from_bytes(frame[4:6], "big") == 35:
                version = 0
            assert int.from_bytes(frame[:4], "big") == correlation, (
                f"{ApiKey(api_key).name}: an answer to something else"
            )
            learn(self.known, api_key, decode_response(api_key, version, frame))

    def ask(self, api_key: int, version: int, message: Message, answered: bool = True) -> bytes | None:
        """The bytes of a request; None if it cannot be encoded."""
        with contextlib.suppress(FairleadError, UnicodeEncodeError):
            data = too_long(
                b"".join(
                    bytes(each)
                    for each in encode_request(api_key, version, self.correlation + 1, "fuzz", message)
                )
            )
            self.correlation += 1
            if answered and self.sent is not None:
                self.sent.append((api_key, version, self.correlation))
            return data
        return None


def run(tape: Tape) -> int:
    """A broker with two topics, and up to sixty requests to it."""
    return _served(tape, CONFIG, ())


def rights(tape: Tape) -> int:
    """The same where an authorizer decides, and the requester has a right or two, or none."""
    granted = [tape.pick(RIGHTS) for _ in range(tape.below(3))]
    return _served(tape, CONFIG | AUTHORIZER, granted)


def _served(tape: Tape, config: Mapping[str, Any], granted: Sequence[AclBinding]) -> int:
    with ErrorLog() as log:
        driver = Driver(dict(config))
        controller = driver.controller
        refused = [error for error in controller.create_acls(granted) if error] if granted else []
        assert not refused, refused
        ids = [
            controller.create_topic(name, partitions=2, configs=configs).topic_id
            for name, configs in zip(TOPICS, ({}, COMPACTED), strict=True)
        ]
        driver.advance(20)
        known = words(ids)
        theme = tape.pick(THEMES)
        peers: list[Peer] = []
        opened = made = 0
        while made < REQUESTS_MAX and not tape.ended:
            if len(peers) < CONNECTIONS:
                opened += 1
                peers.append(Peer(driver, -opened, known))
            peer = peers[tape.below(CONNECTIONS) % len(peers)]
            _say(driver, peer, tape, known, theme)
            made += 1
            if tape.chance(4) and not peer.closed:
                driver.broker.receive(ev.Disconnected(peer.number, "reset by peer"))
                peer.closed = True
            driver.advance(tape.pick(PAUSES_MS))
            peers = [each for each in peers if not each.closed]
            log.check()
        driver.advance(AFTERMATH_MS)
        log.check()
        _still_there(driver, known)
        log.check()
    return max(1, made)


COMPACTED = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "delete.retention.ms": "0"}


def _say(driver: Driver, peer: Peer, tape: Tape, known: Words, theme: Sequence[ApiKey]) -> None:
    """One request or something like it, in one piece or several."""
    if tape.chance(6):
        data: bytes | None = tape.pick(NOISE) if tape.chance(128) else tape.raw(tape.below(40))
        peer.sent = None
    elif tape.chance(4):
        peer.sent = None
        body = tape.raw(tape.below(64))
        data = peer.ask(int(tape.pick(sorted(PRIVATE))), 0, Message(body=[body]))
    else:
        api_key = tape.pick(theme if theme and not tape.chance(40) else APIS)
        api = REGISTRY[api_key]
        version = api.high - tape.below(api.high - api.low + 1)
        message = make(load_schema(api_key, version, REQUEST).body, tape, known)
        data = peer.ask(api_key, version, message, not (api_key == ApiKey.PRODUCE and message.acks == 0))
        if data is not None and tape.chance(24):
            peer.sent = None  # what it answers, if anything, is its own affair
            data = garbled(data, tape)
            if tape.chance(200) and len(data) >= 4:
                data = len(data[4:]).to_bytes(4, "big") + data[4:]
    if not data:
        return
    size = tape.pick((len(data), len(data), len(data), 1 + len(data) // 2, 1 + len(data) // 5))
    for start in range(0, len(data), size):
        if peer.closed:
            return
        driver.broker.receive(ev.Received(peer.number, data[start : start + size]))
        driver.run()


def _still_there(driver: Driver, known: Words) -> None:
    """Whatever was sent, the next one is served."""
    peer = Peer(driver, -1_000_000, known)
    data = peer.ask(ApiKey.API_VERSIONS, 3, Message(client_software_name="fuzz", client_software_version="1"))
    assert data is not None
    driver.broker.receive(ev.Received(peer.number, data))
    driver.run()
    assert peer.sent is not None
    assert not peer.sent, "the broker answers nobody any more"
