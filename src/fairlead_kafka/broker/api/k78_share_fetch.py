"""ShareFetch (78): records for a member of a share group, each acquired for it alone, and on the
way what it has to say of those that it had before (KIP-932).

Versions 1-2. A share session names its partitions once, and then what changes; it is of the
connection, and with it ends what its member has. Acknowledgements are written first, then records
are acquired: at once, or when there are min_bytes of them, or some that somebody gave back, or
max_wait_ms is over. About max_records, up to the end of a batch of the log; with share_acquire_mode
1 no more than that (KIP-1206). Batches hold at least what was acquired. Version 2 also renews locks
(KIP-1222): a request that does fetches nothing, so all its limits are 0.

A batch that cannot be read, and those behind it, are not delivered, and their deliveries not
counted: CORRUPT_MESSAGE or KAFKA_STORAGE_ERROR of the partition, unless batches before it could be
read. While a batch stays damaged it blocks its group in that partition, but no record is archived
for it.

Errors of a partition: UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER, and
those of reading its state from the share coordinator. Of the whole: SHARE_SESSION_NOT_FOUND,
INVALID_SHARE_SESSION_EPOCH, SHARE_SESSION_LIMIT_REACHED (after max_wait_ms, so that nobody asks all
the time), INVALID_REQUEST; UNSUPPORTED_VERSION where the feature share.version is 0. Needs READ on
the group (GROUP_AUTHORIZATION_FAILED) and on each topic (TOPIC_AUTHORIZATION_FAILED for its
partitions).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.base.units import ms_to_ns
from fairlead_kafka.broker.api.common import reason
from fairlead_kafka.broker.api.share_requests import (
    Acknowledging,
    Outcome,
    Place,
    check_member,
    code_and_message,
    find_led,
    leader_hint,
)
from fairlead_kafka.broker.dispatch import serves
from fairlead_kafka.broker.log import Partition, ReadBatch, readable
from fairlead_kafka.broker.requester import Reply, Requester
from fairlead_kafka.broker.services import Services
from fairlead_kafka.broker.share_groups import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    Delivery,
    SessionKey,
    SharePartition,
    ShareSession,
    Wanted,
    available_bytes,
    cut,
    deliver,
)
from fairlead_kafka.wire import ApiKey, Request
from fairlead_kafka.wire.messages import ShareFetchRequest, ShareFetchResponse

_Row = ShareFetchResponse.PartitionData
_Topic = ShareFetchResponse.ShareFetchableTopicResponse
_Leader = ShareFetchResponse.LeaderIdAndEpoch
_Endpoint = ShareFetchResponse.NodeEndpoint
_Acquired = ShareFetchResponse.AcquiredRecords

_BATCH_OPTIMIZED, _RECORD_LIMIT = 0, 1
"""Acquire modes: whole batches, and never more than max_records."""
_NO_LEADER = -1
UNKNOWN_PARTITIONS_MAX = 1000
"""Partitions of a session that this broker does not know. A few may occur if a client learns of a
topic before the broker does; known partitions are bounded by the cluster."""
REFUSED_WAIT_MAX_MS = 60_000
"""Longest wait before a refused session is answered: a client that asks once a minute costs
nothing."""


@serves(ApiKey.SHARE_FETCH, versions=(1, 2))
def share_fetch(
    broker: Services, request: Request[ShareFetchRequest], session: Requester, reply: Reply
) -> None:
    """Serve ShareFetch: take acknowledgements, then acquire records and answer with them."""
    message = request.message
    try:
        key = check_member(broker, session, message.group_id, message.member_id)
        if message.share_acquire_mode not in (_BATCH_OPTIMIZED, _RECORD_LIMIT):
            raise BrokerError(
                ErrorCode.INVALID_REQUEST, f"there is no acquire mode {message.share_acquire_mode}"
            )
        if message.is_renew_ack:
            _check_renewing(message)
        share_session = _session(broker, message, key, session)
    except BrokerError as error:
        refused = ShareFetchResponse(
            throttle_time_ms=0, error_code=error.code, error_message=reason(error), responses=[]
        )
        if error.code == ErrorCode.SHARE_SESSION_LIMIT_REACHED:
            _answer_later(broker, session, message.max_wait_ms, partial(reply, refused))
        else:
            reply(refused)
        return
    fetch = _ShareFetch(broker, message, share_session, session, reply)
    acknowledging = Acknowledging(broker, session, key, fetch.acknowledged)
    for topic in message.topics:
        for asked in topic.partitions:
            if asked.acknowledgement_batches:
                place = (topic.topic_id, asked.partition_index)
                acknowledging.take(place, asked.acknowledgement_batches, message.is_renew_ack)
    acknowledging.complete()


def _answer_later(broker: Services, session: Requester, wait_ms: int, answer: Callable[[], None]) -> None:
    """Call `answer` after `wait_ms` (REFUSED_WAIT_MAX_MS at most), if the connection is still
    there."""

    def due() -> None:
        session.forget_on_close(timer.cancel)
        answer()

    timer = broker.call_later(min(max(0, wait_ms), REFUSED_WAIT_MAX_MS), due)
    session.on_close(timer.cancel)


def _check_renewing(message: ShareFetchRequest) -> None:
    limits = {
        "MaxBytes": message.max_bytes,
        "MinBytes": message.min_bytes,
        "MaxRecords": message.max_records,
        "MaxWaitMs": message.max_wait_ms,
    }
    wrong = [f"{name} must be set to 0" for name, value in limits.items() if value]
    if wrong:
        raise BrokerError(
            ErrorCode.INVALID_REQUEST, f"{', '.join(wrong)}, if the request renews acquisition locks."
        )


def _session(
    broker: Services, message: ShareFetchRequest, key: SessionKey, connection: Requester
) -> ShareSession:
    """The share session of a request, after the changes that the request names."""
    named = [(topic.topic_id, each.partition_index) for topic in message.topics for each in topic.partitions]
    acknowledges = any(each.acknowledgement_batches for topic in message.topics for each in topic.partitions)
    epoch = message.share_session_epoch
    if epoch == INITIAL_EPOCH:
        if acknowledges:
            raise BrokerError(ErrorCode.INVALID_REQUEST, "a session does not begin with acknowledgements")
        _check_named(broker, (), named)
        return broker.share_sessions.begin(key, connection, named)
    if epoch == FINAL_EPOCH and named and not acknowledges:
        raise BrokerError(ErrorCode.INVALID_REQUEST, "a session does not end with partitions to fetch")
    session = broker.share_sessions.of(key, epoch)
    for topic in message.forgotten_topics_data:
        for number in topic.partitions:
            session.partitions.pop((topic.topic_id, number), None)
    if epoch != FINAL_EPOCH:
        _check_named(broker, session.partitions, named)
    for place in named if epoch != FINAL_EPOCH else ():
        session.partitions.setdefault(place)
    return session


def _check_named(broker: Services, before: Collection[Place], named: Collection[Place]) -> None:
    """Raise BrokerError INVALID_REQUEST if a session with the partitions of `before` and `named`
    would have more than UNKNOWN_PARTITIONS_MAX that this broker does not know."""
    topics = broker.controller.image.topics_by_id

    def unknown(places: Iterable[Place]) -> set[Place]:
        return {
            (topic_id, number)
            for topic_id, number in places
            if topic_id not in topics or not 0 <= number < len(topics[topic_id].partitions)
        }

    new = unknown(named)
    if new and len(new | unknown(before)) > UNKNOWN_PARTITIONS_MAX:
        raise BrokerError(
            ErrorCode.INVALID_REQUEST,
            f"a share session may have {UNKNOWN_PARTITIONS_MAX} partitions that are not known here: forget "
            f"some, or begin again",
        )


class _ShareFetch:
    """One ShareFetch, perhaps waiting for records."""

    def __init__(
        self,
        broker: Services,
        message: ShareFetchRequest,
        share_session: ShareSession,
        session: Requester,
        reply: Reply,
    ) -> None:
        self._broker = broker
        self._message = message
        self._share_session = share_session
        self._session = session
        self._reply = reply
        self._final = message.share_session_epoch == FINAL_EPOCH
        self._acknowledged: dict[Place, Outcome] = {}
        self._errors: dict[Place, BrokerError] = {}
        self._shares: dict[Place, SharePartition] = {}
        self._parked = False
        self._over = False
        self.owner = broker.guard.owner
        """The request."""

    # --- Acknowledgements, then share partitions

    def acknowledged(self, outcomes: dict[Place, Outcome]) -> None:
        """Go on once acknowledgements are written: fetch, or end the session."""
        self._acknowledged = outcomes
        if self._share_session.over:
            self._answer({})
        elif self._final:
            self._broker.share_sessions.end(self._share_session, lambda _errors: self._answer({}))
        elif self._message.is_renew_ack or self._message.max_records <= 0:
            self._answer({})
        else:
            self._open()

    def _open(self) -> None:
        """Have the state of each share partition read from the share coordinator, unless it is
        known."""
        waiting = 1

        def initialized(place: Place, code: int) -> None:
            nonlocal waiting
            if code:
                self._errors[place] = BrokerError(code, "the state of the share partition cannot be read")
                self._shares.pop(place, None)
            waiting -= 1
            if not waiting:
                self._begin()

        for place in self._share_session.partitions:
            try:
                partition = find_led(self._broker, self._session, place)
            except BrokerError as error:
                self._errors[place] = error
                continue
            epoch = self._broker.partitions.leader_epoch(partition)
            key = self._share_session.share_key(*place)
            share = self._shares[place] = self._broker.share_partitions.of(key, partition, epoch)
            waiting += 1
            share.initialize(partial(initialized, place))
        waiting -= 1
        if not waiting:
            self._begin()

    # --- Records

    def _begin(self) -> None:
        if self._share_session.over:
            self._answer({})
            return
        waits = not (self._errors or self._acknowledged or self._message.max_wait_ms <= 0)
        if not waits or not self._share_session.partitions or self._enough():
            self._deliver()
        else:
            self._park()

    def _enough(self) -> bool:
        """True if there is reason to answer: min_bytes of records can be acquired, or a share
        partition is not active any more."""
        wanted_bytes = max(1, self._message.min_bytes)
        found_bytes = 0
        for share in self._shares.values():
            if not share.active:
                return True
            found_bytes += available_bytes(share, wanted_bytes - found_bytes)
            if found_bytes >= wanted_bytes:
                return True
        return False

    def _deliver(self) -> None:
        """Acquire the records that are available, and answer with them."""
        message, broker = self._message, self._broker
        room_bytes = min(
            message.max_bytes, broker.settings["fetch.max.bytes"], broker.clients.answer_room_bytes
        )
        room_records = message.max_records
        found: dict[Place, Delivery] = {}
        for place in list(self._share_session.partitions):
            share = self._shares.get(place)
            if share is None or room_records <= 0:
                continue
            if not share.active:
                self._errors[place] = BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "another broker leads")
                continue
            wanted = Wanted(
                self._share_session.key.member_id,
                room_records,
                max(1, message.batch_size),
                message.share_acquire_mode == _RECORD_LIMIT,
                broker.now_ns + ms_to_ns(share.settings().lock_ms),
            )
            delivery = deliver(share, wanted, room_bytes, at_least_one=not found)
            if delivery.spans:
                found[place] = delivery
                room_bytes -= delivery.size_bytes
                room_records -= delivery.records
        for place in found:
            self._share_session.served_first(place)
        self._answer(found)

    def _answer(self, found: dict[Place, Delivery]) -> None:
        """Read the batches of the records that were acquired, and reply."""
        self._over = True
        locations = [span.location for delivery in found.values() for span in delivery.spans]

        def read(batches: list[ReadBatch]) -> None:
            rows: dict[Place, _Row] = {}
            position = 0
            for place, delivery in found.items():
                stop = position + len(delivery.spans)
                rows[place] = self._filled(place, delivery, batches[position:stop])
                position = stop
            self._send(rows)

        if locations:
            self._broker.logs.read(locations, read)
        else:
            self._send({})

    def _filled(self, place: Place, delivery: Delivery, batches: Sequence[ReadBatch]) -> _Row:
        """The row of a partition, with its batches. What could not be read was not delivered, nor
        was what lies behind it: it is available again."""
        taken, error = readable(batches)
        row = _row(place[1])
        acquired, unread = cut(delivery, len(taken))
        if unread:
            self._shares[place].not_delivered(self._share_session.key.member_id, unread)
        row.__dict__["records"] = taken  # a list of buffers, which no reader gets
        row.acquired_records = [
            _Acquired(first_offset=one.first, last_offset=one.last, delivery_count=one.deliveries)
            for one in acquired
        ]
        row.error_code = ErrorCode.NONE if taken else error
        return row

    def _send(self, rows: dict[Place, _Row]) -> None:
        leaders: list[int] = []
        for place, error in self._errors.items():
            row = rows.setdefault(place, _row(place[1]))
            row.error_code, row.error_message = error.code, reason(error)
            self._hint(place, error, row, leaders)
        for place, outcome in self._acknowledged.items():
            row = rows.setdefault(place, _row(place[1]))
            row.acknowledge_error_code, row.acknowledge_error_message = code_and_message(outcome)
            if outcome is not None:
                self._hint(place, outcome, row, leaders)
        if self._message.share_session_epoch == INITIAL_EPOCH:
            for place in self._share_session.partitions:
                rows.setdefault(place, _row(place[1]))
        topics: dict[object, _Topic] = {}
        for place, row in rows.items():
            topics.setdefault(place[0], _Topic(topic_id=place[0], partitions=[])).partitions.append(row)
        answer = ShareFetchResponse(
            throttle_time_ms=0,
            error_code=ErrorCode.NONE,
            error_message=None,
            acquisition_lock_timeout_ms=self._broker.share_partitions.settings(
                self._share_session.key.group_id
            ).lock_ms,
            responses=list(topics.values()),
            node_endpoints=[
                _Endpoint(node_id=node.node_id, host=node.host, port=node.port, rack=node.rack)
                for node in self._broker.partitions.endpoints(leaders, self._session.listener)
            ],
        )
        self._reply(answer)

    def _hint(self, place: Place, error: BrokerError, row: _Row, leaders: list[int]) -> None:
        hint = leader_hint(self._broker, place, error)
        if hint is not None:
            row.current_leader = _Leader(leader_id=hint[0], leader_epoch=hint[1])
            leaders.append(hint[0])

    # --- Waiting

    def _park(self) -> None:
        broker, session = self._broker, self._share_session
        if session.waiting is not None:
            session.waiting.complete()
        session.waiting = self
        self._parked = True
        self._timer = broker.call_at(broker.now_ns + ms_to_ns(self._message.max_wait_ms), self.complete)
        self._session.on_close(self._leave)
        for place, share in self._shares.items():
            broker.purgatory.watch(share.partition, self)
            broker.share_partitions.watch(session.share_key(*place), self)

    def advanced(self, partition: Partition) -> None:
        """Called when more of a partition can be read."""
        self.available()

    def lost(self, partition: Partition) -> None:
        """Called when this broker does not lead a partition any more."""
        self.complete()

    def available(self) -> None:
        """Called when records of a share partition may have become available."""
        if self._parked and self._enough():
            self.complete()

    def complete(self) -> None:
        """Answer with the records that there are: the time to wait is over."""
        if self._parked:
            self._leave()
            self._deliver()

    def session_over(self) -> None:
        """Answer without records: the share session has ended."""
        if self._parked:
            self._leave()
            self._answer({})

    def _leave(self) -> None:
        self._parked = False
        self._timer.cancel()
        self._session.forget_on_close(self._leave)
        session = self._share_session
        if session.waiting is self:
            session.waiting = None
        for place, share in self._shares.items():
            self._broker.purgatory.forget(share.partition, self)
            self._broker.share_partitions.forget(session.share_key(*place), self)


def _row(number: int) -> _Row:
    return _Row(
        partition_index=number,
        error_code=ErrorCode.NONE,
        error_message=None,
        acknowledge_error_code=ErrorCode.NONE,
        acknowledge_error_message=None,
        current_leader=_Leader(leader_id=0, leader_epoch=0),
        records=b"",
        acquired_records=[],
    )
