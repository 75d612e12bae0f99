"""Who calls groups, transactions and topics by names of every length: nobody but itself may suffer from it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from fairlead_kafka.runtime import VirtualHost
from fairlead_kafka.simulation.committer import Asker
from fairlead_kafka.wire import ApiKey, Message

FIND_VERSION, JOIN_VERSION, COMMIT_VERSION, INIT_VERSION, METADATA_VERSION = 4, 9, 8, 4, 9
SESSION_MS = 150
"""Of the members of such groups, who are never heard of again: what a broker keeps of a group is written then, on a timer."""
STAND_IN = "i" * 30_000
"""Takes the place of a longer name while a request is made: the encoder may not make one that has it."""


class LongIds:
    """Asks all brokers, each time under one name for everything."""

    def __init__(self, host: VirtualHost, addresses: Sequence[str]) -> None:
        self._asker = Asker(host)
        self._addresses = addresses

    def begin(self, length: int) -> None:
        """Ask whatever takes a name of the caller's, with one of `length` bytes."""
        name = STAND_IN if length > len(STAND_IN) else "i" * length
        for address in self._addresses:
            ask = partial(self._ask, address, length)
            for key_type in (0, 1):
                ask(ApiKey.FIND_COORDINATOR, FIND_VERSION, Message(key_type=key_type, coordinator_keys=[name]))
            ask(ApiKey.METADATA, METADATA_VERSION, _metadata(name))
            ask(ApiKey.OFFSET_COMMIT, COMMIT_VERSION, _commit(name))
            ask(ApiKey.INIT_PRODUCER_ID, INIT_VERSION, _init(name))
            self._join(address, length, name, "")

    def _join(self, address: str, length: int, name: str, member: str) -> None:
        def told(answer: Message | None) -> None:
            if answer is not None and answer.member_id and not member:
                self._join(address, length, name, answer.member_id)

        self._asker.ask(address, ApiKey.JOIN_GROUP, JOIN_VERSION, _join(name, member), told, partial(_lengthen, length))

    def _ask(self, address: str, length: int, api_key: ApiKey, version: int, message: Message) -> None:
        self._asker.ask(address, api_key, version, message, _unheard, partial(_lengthen, length))


def _unheard(_: Message | None) -> None:
    """An answer that nobody waits for."""


def _lengthen(length: int, request: bytes) -> bytes:
    """The request with `length` bytes wherever it has the stand-in; its size at the front counts them."""
    found = _compact(len(STAND_IN))
    body = request[4:].replace(found, _compact(length))
    return len(body).to_bytes(4, "big") + body


def _compact(length: int) -> bytes:
    """A compact string of so many letters."""
    rest, varint = length + 1, b""
    while rest > 0x7F:
        varint += bytes([rest & 0x7F | 0x80])
        rest >>= 7
    return varint + bytes([rest]) + b"i" * length


def _metadata(name: str) -> Message:
    return Message(
        topics=[Message(name=name)],
        allow_auto_topic_creation=True,
        include_cluster_authorized_operations=False,
        include_topic_authorized_operations=False,
    )


def _commit(name: str) -> Message:
    partition = Message(partition_index=0, committed_offset=1, committed_leader_epoch=-1, committed_metadata=name)
    topics = [Message(name="events", partitions=[partition])]
    return Message(group_id=name, generation_id_or_member_epoch=-1, member_id="", group_instance_id=None, topics=topics)


def _init(name: str) -> Message:
    return Message(transactional_id=name, transaction_timeout_ms=1_000, producer_id=-1, producer_epoch=-1)


def _join(name: str, member: str) -> Message:
    return Message(
        group_id=name,
        session_timeout_ms=SESSION_MS,
        rebalance_timeout_ms=SESSION_MS,
        member_id=member,
        group_instance_id=None,
        protocol_type="consumer",
        protocols=[Message(name="range", metadata=b"")],
        reason=None,
    )
