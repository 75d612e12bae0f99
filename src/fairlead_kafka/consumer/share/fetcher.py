"""Fetching and acknowledging: one request under way per broker, in its share session.

A broker is asked for records only while a poll waits and no fetched record is left, because locks
begin to run out when records are acquired. So at most one answer per broker waits, of
`fetch.max.bytes` each. Acknowledgements go with a fetch that is due anyway, else by themselves.
Kafka's counterpart: `ShareConsumeRequestManager`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import NamedTuple
from uuid import UUID

from fairlead_kafka.base.checks import holds
from fairlead_kafka.base.codes import ErrorCode, policy
from fairlead_kafka.base.config import Settings
from fairlead_kafka.base.errors import BrokerError, TimedOut, UnsupportedVersion
from fairlead_kafka.base.ids import NO_LEADER, Node, TopicPartition
from fairlead_kafka.base.rights import broker_error
from fairlead_kafka.base.units import ms_to_ns
from fairlead_kafka.consumer.share.acknowledging import Acks, Acquired, Place, apart
from fairlead_kafka.consumer.share.chunk import ShareChunk
from fairlead_kafka.consumer.share.membership import NO_SHARE_GROUPS
from fairlead_kafka.consumer.share.metrics import ShareMeter
from fairlead_kafka.consumer.share.outcomes import Outcomes
from fairlead_kafka.consumer.share.requests import (
    acknowledge_topics,
    by_place,
    fetch_topics,
    forgotten_topics,
)
from fairlead_kafka.consumer.share.session import FINAL_EPOCH, ShareSession, Waiting, epoch_after
from fairlead_kafka.core.backoff import Backoff
from fairlead_kafka.core.machine import Rng
from fairlead_kafka.core.network import Network
from fairlead_kafka.wire import ApiKey
from fairlead_kafka.wire.messages import (
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareFetchRequest,
    ShareFetchResponse,
)

RENEW_VERSION = 2
"""Version of ShareAcknowledge that renews locks (KIP-1222), since Kafka 4.2."""
ERRORS_KEPT = 16
"""Errors that wait for a poll to raise them; further ones are dropped, oldest first."""
ACQUIRE_MODES = {"batch_optimized": 0, "record_limit": 1}
_SESSION_ERRORS = frozenset({ErrorCode.SHARE_SESSION_NOT_FOUND, ErrorCode.INVALID_SHARE_SESSION_EPOCH})
"""Errors that a new session puts right at once."""
_MISSING = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
    }
)
"""Errors of a partition that newer metadata put right."""
_REPORTED = frozenset({ErrorCode.CORRUPT_MESSAGE})
"""Codes that the table calls retriable, but the same bytes would be read again."""
_Leader = ShareFetchResponse.LeaderIdAndEpoch | ShareAcknowledgeResponse.LeaderIdAndEpoch
_Answer = ShareFetchResponse | ShareAcknowledgeResponse


class _AckAnswer(NamedTuple):
    """A broker's answer to the acknowledgements of one partition."""

    code: int
    said: str | None


class ShareFetcher:
    """Share sessions with all brokers. Part of the machine; all calls come from within its step.

    `group`: (group id, member id).
    """

    def __init__(
        self, settings: Settings, network: Network, rng: Rng, group: tuple[str, str], meter: ShareMeter
    ) -> None:
        self._network = network
        self._rng = rng
        self._group_id, self._member_id = group
        self._max_wait_ms = settings["fetch.max.wait.ms"]
        self._min_bytes = settings["fetch.min.bytes"]
        self._max_bytes = settings["fetch.max.bytes"]
        self._mode = ACQUIRE_MODES[settings["share.acquire.mode"]]
        self._timeout_ms = settings["request.timeout.ms"] + self._max_wait_ms
        self._backoff = Backoff(settings["retry.backoff.ms"], settings["retry.backoff.max.ms"])
        self._sessions: dict[int, ShareSession] = {}
        self._numbers = 0
        self._by_node: dict[int, dict[Place, TopicPartition]] = {}
        self._grouped: tuple[int, int] | None = None
        self._chunks: deque[ShareChunk] = deque()
        self.meter = meter
        self.outcomes = Outcomes(meter)
        self.errors: deque[Exception] = deque(maxlen=ERRORS_KEPT)
        """Errors for the application: each is raised by one poll."""
        self.max_records = 0
        """Records that a waiting poll wants at most; 0: no poll waits, and nothing is fetched."""
        self.closing = False
        self.now_ns = 0
        """The time of this step; its owner sets it first."""
        self.lock_timeout_ms: int | None = None
        """How long brokers lock what they deliver, as the last answer said."""
        self._fetch_count = 0

    # What the machine asks

    def undelivered_bytes(self) -> int:
        """Bytes of answers that no poll has taken."""
        return sum(len(chunk.data) for chunk in list(self._chunks))

    def acknowledge(self, acks: Iterable[Acks], deadline_ns: int) -> None:
        """Send acknowledgements as soon as their brokers can be asked, until `deadline_ns`
        (monotonic). `outcomes` gets what becomes of them."""
        for each in acks:
            if not len(each.offsets):
                continue
            self.outcomes.ask(each)
            session = self._sessions.get(each.node_id)
            if session is None or session.number != each.session or not session.opened:
                self.outcomes.complete(each, self._lost(each.node_id))
                continue
            session.waiting.append(Waiting(each, deadline_ns))
            for chunk in self._chunks:
                self._overtake(session, chunk)

    def take(self, max_records: int) -> list[ShareChunk]:
        """Take the oldest chunks that wait, until they have `max_records` offsets."""
        taken: list[ShareChunk] = []
        count = 0
        while self._chunks and count < max_records:
            chunk = self._chunks.popleft()
            if self.now_ns >= chunk.lock_ns:
                self.meter.expired += chunk.size
                continue
            taken.append(chunk)
            count += chunk.size
        return taken

    def give_back(self) -> list[ShareChunk]:
        """Take all chunks that wait, to be released: the owner wants no more of them."""
        chunks, self._chunks = list(self._chunks), deque()
        return chunks

    def advance(self, assigned: Mapping[Place, TopicPartition], version: int) -> None:
        """Send the requests that can be sent. `assigned`: the partitions to read; `version` grows
        when it changes."""
        self._regroup(assigned, version)
        self._expire()
        for node_id in self._by_node:
            if node_id not in self._sessions and self.max_records:
                self._sessions[node_id] = ShareSession(node_id, self._number())
        # The broker asked for records last comes last: with record_limit one is asked at a time.
        for session in sorted(self._sessions.values(), key=lambda session: session.fetch_number):
            if not session.busy:
                self._attend(session)

    def over(self) -> bool:
        """True if, closing, every session is closed or given up."""
        return all(session.over and not session.busy for session in self._sessions.values())

    def close(self, error: Exception) -> None:
        """Complete all open acknowledgements with `error`; the network is closed by its owner."""
        for session in self._sessions.values():
            for each in session.restart(self._number()):
                self.outcomes.complete(each.acks, error)

    def deadline_ns(self) -> int | None:
        """Monotonic time, ns, at which the next back-off ends or the next acknowledgement's time is
        up; None: there is neither."""
        times = [
            session.retry_at_ns
            for session in self._sessions.values()
            if session.retry_at_ns > self.now_ns and not session.busy
        ]
        times += [each.deadline_ns for session in self._sessions.values() for each in session.waiting]
        return min(times, default=None)

    def check(self) -> None:
        """Raise CheckFailed unless the acknowledgements and chunks that wait fit the share
        sessions."""
        kept = [each for session in self._sessions.values() for each in (*session.waiting, *session.sent)]
        self.outcomes.check(sum(len(each.acks.offsets) for each in kept))
        for session in self._sessions.values():
            session.check()
        for chunk in self._chunks:
            session = self._sessions[chunk.node_id]
            holds("a chunk of a session that is over waits", chunk.session == session.number)

    # Which partitions are where

    def _number(self) -> int:
        self._numbers += 1
        return self._numbers

    def _regroup(self, assigned: Mapping[Place, TopicPartition], version: int) -> None:
        metadata = self._network.metadata
        if self._grouped == (version, metadata.version):
            return
        self._grouped = (version, metadata.version)
        wanted = {partition.topic for partition in assigned.values()}
        for topic in metadata.topics():
            if topic not in wanted:
                metadata.forget(topic)
        self._by_node = {}
        for (topic_id, number), partition in assigned.items():
            metadata.want(partition.topic, self.now_ns)
            known = metadata.topic(partition.topic)
            leader = metadata.leader(*partition)
            if known is not None and leader != NO_LEADER and known.topic_id == topic_id:
                self._by_node.setdefault(leader, {})[topic_id, number] = partition
            elif known is not None:
                metadata.request_update()
        self._grouped = (version, metadata.version)

    def _fetches(self, session: ShareSession) -> bool:
        """True if a fetch may go to the broker of this session."""
        if self.max_records == 0 or self._chunks or self.closing:
            return False
        one_at_a_time = self._mode == ACQUIRE_MODES["record_limit"]
        others = (each for each in self._sessions.values() if each is not session)
        return not (one_at_a_time and any(each.fetching for each in others))

    # Sending

    def _attend(self, session: ShareSession) -> None:
        """Send the request that is due to a broker without a request under way, if one is."""
        wanted = self._by_node.get(session.node_id, {}) if self._fetches(session) else {}
        ends = self.closing and not session.over
        if ends and not session.opened:
            session.over = True
            return
        if not (wanted or session.waiting or ends) or self.now_ns < session.retry_at_ns:
            return
        if self._network.blocked(session.node_id):
            self._restart(session, self._lost(session.node_id))
            session.over = self.closing
            return
        if not self._network.ready(session.node_id):
            self._network.connect(session.node_id)
            return
        version = self._version(session, ApiKey.SHARE_ACKNOWLEDGE)
        if version is None:
            return
        if version < RENEW_VERSION:
            self._refuse_renewals(session)
        alone = ends or any(each.acks.renews or each.acks.place not in wanted for each in session.waiting)
        if alone or not wanted:
            if ends or session.waiting:
                self._acknowledge(session, final=ends)
        else:
            self._fetch(session, wanted)

    def _version(self, session: ShareSession, api_key: ApiKey) -> int | None:
        try:
            return self._network.version(session.node_id, api_key)
        except UnsupportedVersion as error:
            problem = UnsupportedVersion(f"group {self._group_id!r}: {NO_SHARE_GROUPS}")
            problem.__cause__ = error
            self.errors.append(problem)
            self._rest(session)
            session.over = self.closing
            return None

    def _refuse_renewals(self, session: ShareSession) -> None:
        old = UnsupportedVersion("brokers are too old to renew a lock: Apache Kafka does since 4.2")
        kept = []
        for each in session.waiting:
            if each.acks.renews:
                self.outcomes.complete(each.acks, old)
            else:
                kept.append(each)
        session.waiting = kept

    def _fetch(self, session: ShareSession, wanted: Mapping[Place, TopicPartition]) -> None:
        acks = session.send()
        message = ShareFetchRequest(
            group_id=self._group_id,
            member_id=self._member_id,
            share_session_epoch=session.epoch,
            max_wait_ms=self._max_wait_ms,
            min_bytes=self._min_bytes,
            max_bytes=self._max_bytes,
            max_records=self.max_records,
            batch_size=self.max_records,
            share_acquire_mode=self._mode,
            is_renew_ack=False,
            topics=fetch_topics([place for place in wanted if place not in session.known], by_place(acks)),
            forgotten_topics_data=forgotten_topics([place for place in session.known if place not in wanted]),
        )
        session.known = dict(wanted)
        session.busy = session.fetching = True
        self._fetch_count += 1
        session.fetch_number = self._fetch_count

        def done(answer: ShareFetchResponse | None, error: Exception | None) -> None:
            self._fetched(session, answer, error)

        self._network.send(session.node_id, ApiKey.SHARE_FETCH, message, done, timeout_ms=self._timeout_ms)

    def _acknowledge(self, session: ShareSession, *, final: bool) -> None:
        acks = session.send()
        message = ShareAcknowledgeRequest(
            group_id=self._group_id,
            member_id=self._member_id,
            share_session_epoch=FINAL_EPOCH if final else session.epoch,
            is_renew_ack=any(each.renews for each in acks),
            topics=acknowledge_topics(by_place(acks)),
        )
        session.busy = True
        session.over = final

        def done(answer: ShareAcknowledgeResponse | None, error: Exception | None) -> None:
            self._acknowledged(session, answer, error)

        self._network.send(session.node_id, ApiKey.SHARE_ACKNOWLEDGE, message, done)

    # Answers

    def _usable(self, session: ShareSession, answer: _Answer | None, error: Exception | None) -> bool:
        """Note what an answer says of all partitions; False if it ended the session."""
        if answer is None or answer.error_code:
            self._failed(session, ErrorCode.NONE if answer is None else answer.error_code, error)
            return False
        session.epoch = epoch_after(session.epoch)
        self.meter.throttles += 1
        self.meter.throttle_ms += answer.throttle_time_ms
        self.meter.throttle_max_ms = max(self.meter.throttle_max_ms, answer.throttle_time_ms)
        if answer.acquisition_lock_timeout_ms > 0:
            self.lock_timeout_ms = answer.acquisition_lock_timeout_ms
        if answer.node_endpoints:
            self._network.metadata.saw_nodes(
                Node(node.node_id, node.host, node.port, node.rack) for node in answer.node_endpoints
            )
        return True

    def _fetched(
        self, session: ShareSession, answer: ShareFetchResponse | None, error: Exception | None
    ) -> None:
        if not self._usable(session, answer, error) or answer is None:
            return
        rows = {
            (topic.topic_id, row.partition_index): row
            for topic in answer.responses
            for row in topic.partitions
        }
        ack_answers = {
            place: _AckAnswer(row.acknowledge_error_code, row.acknowledge_error_message)
            for place, row in rows.items()
        }
        sound = self._complete_acks(session, ack_answers)
        for (topic_id, number), row in rows.items():
            partition = session.known.get((topic_id, number))
            if partition is not None:
                sound = self._read(session, (topic_id, partition), row) and sound
        if sound:
            session.failures = 0
        else:
            self._rest(session)

    def _acknowledged(
        self, session: ShareSession, answer: ShareAcknowledgeResponse | None, error: Exception | None
    ) -> None:
        if not self._usable(session, answer, error) or answer is None:
            return
        ack_answers: dict[Place, _AckAnswer] = {}
        for topic in answer.responses:
            for row in topic.partitions:
                ack_answers[topic.topic_id, row.partition_index] = _AckAnswer(
                    row.error_code, row.error_message
                )
        partitions = {each.acks.place: each.acks.partition for each in session.sent}
        for topic in answer.responses:
            for row in topic.partitions:
                partition = partitions.get((topic.topic_id, row.partition_index))
                if row.error_code and partition is not None:
                    self._moved(partition, row.error_code, row.current_leader)
        if not self._complete_acks(session, ack_answers):
            self._rest(session)
        if session.over:
            self._restart(session, self._lost(session.node_id))

    def _failed(self, session: ShareSession, code: int, error: Exception | None) -> None:
        """End a session whose request got no usable answer."""
        session.busy = session.fetching = False
        reason = (
            error
            if error is not None
            else broker_error(code, f"share group {self._group_id!r} at node {session.node_id}", "Read")
        )
        opened = session.opened
        self._restart(session, reason)
        if code in _SESSION_ERRORS and opened:
            return
        self._network.metadata.request_update()
        self._rest(session)
        if code and not policy(code).retriable:
            self.errors.append(reason)

    def _complete_acks(self, session: ShareSession, ack_answers: Mapping[Place, _AckAnswer]) -> bool:
        """Complete the acknowledgements that a request carried, by its answer; False if some are to
        be sent again later."""
        again = False
        for each in session.answered():
            left_out = _AckAnswer(ErrorCode.UNKNOWN_SERVER_ERROR, "the answer left it out")
            code, said = ack_answers.get(each.acks.place, left_out)
            passes = policy(code).retriable and code not in _MISSING and not policy(code).refreshes_metadata
            if not code:
                self.outcomes.complete(each.acks, None)
            elif passes and self.now_ns < each.deadline_ns and not session.over:
                session.waiting.append(each)
                again = True
            else:
                what = f"acknowledging {each.acks.partition}: {said or policy(code).meaning}"
                self.outcomes.complete(each.acks, broker_error(code, what, "Read"))
        return not again

    def _read(
        self,
        session: ShareSession,
        where: tuple[UUID, TopicPartition],
        row: ShareFetchResponse.PartitionData,
    ) -> bool:
        """Keep the records acquired of one partition, by `row` of an answer; False if it has an
        error after which the broker is to be left alone for a while."""
        topic_id, partition = where
        if row.error_code:
            self._moved(partition, row.error_code, row.current_leader)
            passes = policy(row.error_code).retriable or row.error_code in _MISSING
            if not passes or row.error_code in _REPORTED:
                text = f"reading {partition}: {row.error_message or policy(row.error_code).meaning}"
                self.errors.append(broker_error(row.error_code, text, "Read"))
            return False
        acquired = apart(
            Acquired(each.first_offset, each.last_offset, each.delivery_count)
            for each in row.acquired_records
            if 0 <= each.first_offset <= each.last_offset
        )
        if not acquired:
            return True
        lock_ns = self.now_ns + ms_to_ns(self.lock_timeout_ms or 0)
        chunk = ShareChunk(
            partition, topic_id, session.node_id, session.number, acquired, memoryview(row.records), lock_ns
        )
        self.meter.acquired += chunk.size
        self.meter.bytes_fetched += len(chunk.data)
        self._chunks.append(chunk)
        self._overtake(session, chunk)
        return True

    def _overtake(self, session: ShareSession, chunk: ShareChunk) -> None:
        """Fail acknowledgements, not sent yet, of records that came again in `chunk`: their locks
        had ended."""
        for acks in session.overtake(chunk):
            late = f"acknowledging {acks.partition}: the lock had ended, and the records came again"
            self.outcomes.complete(acks, BrokerError(ErrorCode.INVALID_RECORD_STATE, late))

    def _moved(self, partition: TopicPartition, code: int, leader: _Leader | None) -> None:
        """Look for a partition's leader again, if an error says so (KIP-951)."""
        if code in _MISSING or policy(code).refreshes_metadata:
            metadata = self._network.metadata
            metadata.request_update()
            if leader is not None and leader.leader_id >= 0:
                metadata.saw_leader(*partition, leader.leader_id, leader.leader_epoch)

    # Inside

    def _restart(self, session: ShareSession, reason: Exception) -> None:
        """Forget the session with a broker, which has released, or will release, all records
        acquired in it. Acknowledgements in it fail with `reason`."""
        for each in session.restart(self._number()):
            self.outcomes.complete(each.acks, reason)
        self._chunks = deque(chunk for chunk in self._chunks if chunk.node_id != session.node_id)

    def _lost(self, node_id: int) -> BrokerError:
        text = f"the share session with node {node_id} is over, and what it had acquired is freed"
        return BrokerError(ErrorCode.SHARE_SESSION_NOT_FOUND, text)

    def _expire(self) -> None:
        """Fail acknowledgements whose time is up."""
        for session in self._sessions.values():
            late = [each for each in session.waiting if self.now_ns >= each.deadline_ns]
            if late:
                session.waiting = [each for each in session.waiting if self.now_ns < each.deadline_ns]
                trouble = self._network.trouble()
                for each in late:
                    text = f"acknowledging {each.acks.partition}: not done within the time allowed; {trouble}"
                    self.outcomes.complete(each.acks, TimedOut(text))

    def _rest(self, session: ShareSession) -> None:
        """Send nothing to a broker until its back-off ends, which grows with each failure in a
        row."""
        session.retry_at_ns = self.now_ns + self._backoff.wait_ns(session.failures, self._rng)
        session.failures += 1
