"""Helpers that the handlers of share groups' requests share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol
from uuid import UUID

from fairlead_kafka.base.acls import AclOperation, AclResourceType
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.broker.api.common import reason
from fairlead_kafka.broker.api.rights import demand
from fairlead_kafka.broker.controller.features import SHARE_VERSION, level
from fairlead_kafka.broker.log import Partition
from fairlead_kafka.broker.requester import Requester
from fairlead_kafka.broker.services import Services
from fairlead_kafka.broker.share_groups import EVENTS_BY_TYPE, RENEW_TYPE, SessionKey, ShareKey

MEMBER_ID_MAX_LENGTH = 36
"""Characters of a member's id: a UUID as text (Kafka's `KafkaApis.isMemberIdValid`)."""

TOPIC_REFUSED = "Topic authorization failed."
NOT_HOSTED = "This server does not host this topic-partition."
Place = tuple[UUID, int]
"""A topic id, and a partition's number."""
Outcome = BrokerError | None
"""Outcome of a partition of a request: the error, or None."""


def check_share_groups(broker: Services) -> None:
    """Raise BrokerError UNSUPPORTED_VERSION where share groups are switched off."""
    if not level(broker.controller.image, SHARE_VERSION):
        raise BrokerError(
            ErrorCode.UNSUPPORTED_VERSION,
            "share groups are switched off: set the feature share.version to 1",
        )


def check_member(
    broker: Services, session: Requester, group_id: str | None, member_id: str | None
) -> SessionKey:
    """The key of the share session that a request belongs to. BrokerError: UNSUPPORTED_VERSION,
    INVALID_REQUEST, GROUP_AUTHORIZATION_FAILED."""
    check_share_groups(broker)
    if group_id is None:
        raise BrokerError(ErrorCode.INVALID_REQUEST, "Invalid group id in the request.")
    demand(session, AclOperation.READ, AclResourceType.GROUP, group_id)
    if not member_id or len(member_id) > MEMBER_ID_MAX_LENGTH:
        raise BrokerError(ErrorCode.INVALID_REQUEST, "Invalid member id in the request.")
    return SessionKey(group_id, member_id)


def find_led(broker: Services, session: Requester, place: Place) -> Partition:
    """A partition that is led here and that the session may read. BrokerError: UNKNOWN_TOPIC_ID,
    TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER."""
    topic_id, number = place
    topic = broker.controller.image.topics_by_id.get(topic_id)
    if topic is None:
        raise BrokerError(ErrorCode.UNKNOWN_TOPIC_ID, f"there is no topic of the id {topic_id}")
    demand(session, AclOperation.READ, AclResourceType.TOPIC, topic.name)
    found = broker.partitions.find(topic, number)
    if isinstance(found, int):
        raise BrokerError(found, f"{topic.name}-{number} is not led by broker {broker.node_id}")
    return found


def leader_hint(broker: Services, place: Place, error: BrokerError) -> tuple[int, int] | None:
    """Node id and epoch of the leader, to answer with an error that says that this broker is not
    the leader; None for other errors."""
    if error.code not in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH):
        return None
    return broker.partitions.leader_hint(broker.controller.image.topics_by_id.get(place[0]), place[1])


class AckBatch(Protocol):
    """A run of acknowledged offsets, as ShareFetch and ShareAcknowledge have it."""

    first_offset: int
    last_offset: int
    acknowledge_types: list[int]


def check_batches(batches: Iterable[AckBatch], renewing: bool) -> None:
    """Raise BrokerError INVALID_REQUEST unless the offsets of a partition's acknowledgements
    ascend, none comes twice, and each has a valid type."""
    above = -1
    for batch in batches:
        types, count = batch.acknowledge_types, batch.last_offset - batch.first_offset + 1
        allowed = all(one in EVENTS_BY_TYPE and (renewing or one != RENEW_TYPE) for one in types)
        if (
            count < 1
            or batch.first_offset <= above
            or not types
            or len(types) not in (1, count)
            or not allowed
        ):
            raise BrokerError(
                ErrorCode.INVALID_REQUEST,
                f"offsets {batch.first_offset} to {batch.last_offset} cannot be acknowledged with the types "
                f"{types[:8]}",
            )
        above = batch.last_offset


@dataclass(slots=True)
class Acknowledging:
    """Acknowledgements of one request, for many partitions; `done` is called once with the outcome
    of each, by `complete` or later."""

    broker: Services
    session: Requester
    key: SessionKey
    done: Callable[[dict[Place, Outcome]], None]
    outcomes: dict[Place, Outcome] = field(default_factory=dict)
    _waiting: int = 1

    def take(self, place: Place, batches: Sequence[AckBatch], renewing: bool) -> None:
        """Apply the acknowledgements of one partition's records. If a partition is named twice, its
        first error is answered."""
        self.outcomes.setdefault(place, None)
        self._waiting += 1
        try:
            check_batches(batches, renewing)
            find_led(self.broker, self.session, place)
            share = self.broker.share_partitions.find(ShareKey(self.key.group_id, *place))
            if share is None:
                raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, NOT_HOSTED)
            said = [
                (one.first_offset, one.last_offset, [EVENTS_BY_TYPE[each] for each in one.acknowledge_types])
                for one in batches
            ]
            share.acknowledge(self.key.member_id, said, partial(self._written, place))
        except BrokerError as error:
            self._failed(place, error)
            self.complete()

    def _written(self, place: Place, code: int) -> None:
        if code:
            self._failed(place, BrokerError(code, "the acknowledgement could not be written"))
        self.complete()

    def _failed(self, place: Place, error: BrokerError) -> None:
        if self.outcomes[place] is None:
            self.outcomes[place] = error

    def complete(self) -> None:
        """Note that one part is complete, or, once, that all parts have begun. The last call has
        the outcomes passed to `done`."""
        self._waiting -= 1
        if not self._waiting:
            self.done(self.outcomes)


def code_and_message(outcome: Outcome) -> tuple[int, str | None]:
    """Error code and text of an outcome: (0, None) where there is no error."""
    return (ErrorCode.NONE, None) if outcome is None else (outcome.code, reason(outcome))
