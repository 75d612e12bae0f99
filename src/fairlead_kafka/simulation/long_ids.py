"""Uses names of every length for groups, transactions and topics; other clients must not be
affected."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from fairlead_kafka.runtime import VirtualHost
from fairlead_kafka.simulation.committer import Asker
from fairlead_kafka.wire import ApiKey, ApiMessage, RequestMessage
from fairlead_kafka.wire.messages import (
    FindCoordinatorRequest,
    InitProducerIdRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    MetadataRequest,
    OffsetCommitRequest,
)

FIND_VERSION, JOIN_VERSION, COMMIT_VERSION, INIT_VERSION, METADATA_VERSION = 4, 9, 8, 4, 9
SESSION_MS = 150
"""Session timeout of the members of such groups, ms.

They never send again, so the broker writes the group's state then, on a timer.
"""
STAND_IN = "i" * 30_000
"""Stands for a longer name while a request is encoded: the encoder refuses names of that length."""


class LongIds:
    """Sends requests in which all names are of one length to all brokers: no other client may
    suffer from them."""

    def __init__(self, host: VirtualHost, addresses: Sequence[str]) -> None:
        self._asker = Asker(host)
        self._addresses = addresses

    def begin(self, length: int) -> None:
        """Send every kind of request that has a client's name in it, with a name of `length`
        bytes."""
        name = STAND_IN if length > len(STAND_IN) else "i" * length
        for address in self._addresses:
            ask = partial(self._ask, address, length)
            for key_type in (0, 1):
                asked = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[name])
                ask(ApiKey.FIND_COORDINATOR, FIND_VERSION, asked)
            ask(ApiKey.METADATA, METADATA_VERSION, _metadata(name))
            ask(ApiKey.OFFSET_COMMIT, COMMIT_VERSION, _commit(name))
            ask(ApiKey.INIT_PRODUCER_ID, INIT_VERSION, _init(name))
            self._join(address, length, name, "")

    def _join(self, address: str, length: int, name: str, member: str) -> None:
        def answered(answer: JoinGroupResponse | None) -> None:
            if answer is not None and answer.member_id and not member:
                self._join(address, length, name, answer.member_id)

        message, altered = _join(name, member), partial(_lengthen, length)
        self._asker.ask(address, ApiKey.JOIN_GROUP, JOIN_VERSION, message, answered, altered)

    def _ask(
        self, address: str, length: int, api_key: ApiKey, version: int, message: RequestMessage[ApiMessage]
    ) -> None:
        self._asker.ask(address, api_key, version, message, _unheard, partial(_lengthen, length))


def _unheard(_: ApiMessage | None) -> None:
    """Ignore the answer."""


def _lengthen(length: int, request: bytes) -> bytes:
    """The request with a name of `length` bytes in place of each stand-in, and its size field
    corrected.
    """
    found = _compact(len(STAND_IN))
    body = request[4:].replace(found, _compact(length))
    return len(body).to_bytes(4, "big") + body


def _compact(length: int) -> bytes:
    """The header and text of a compact string of that many letters."""
    rest, varint = length + 1, b""
    while rest > 0x7F:
        varint += bytes([rest & 0x7F | 0x80])
        rest >>= 7
    return varint + bytes([rest]) + b"i" * length


def _metadata(name: str) -> MetadataRequest:
    return MetadataRequest(
        topics=[MetadataRequest.MetadataRequestTopic(name=name)],
        allow_auto_topic_creation=True,
        include_cluster_authorized_operations=False,
        include_topic_authorized_operations=False,
    )


def _commit(name: str) -> OffsetCommitRequest:
    partition = OffsetCommitRequest.OffsetCommitRequestPartition(
        partition_index=0, committed_offset=1, committed_leader_epoch=-1, committed_metadata=name
    )
    topic = OffsetCommitRequest.OffsetCommitRequestTopic(name="events", partitions=[partition])
    return OffsetCommitRequest(
        group_id=name, generation_id_or_member_epoch=-1, member_id="", group_instance_id=None, topics=[topic]
    )


def _init(name: str) -> InitProducerIdRequest:
    return InitProducerIdRequest(
        transactional_id=name, transaction_timeout_ms=1_000, producer_id=-1, producer_epoch=-1
    )


def _join(name: str, member: str) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=name,
        session_timeout_ms=SESSION_MS,
        rebalance_timeout_ms=SESSION_MS,
        member_id=member,
        group_instance_id=None,
        protocol_type="consumer",
        protocols=[JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"")],
        reason=None,
    )
