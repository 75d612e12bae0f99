"""Every call of a share consumer, written once; `ShareConsumer` and `AsyncShareConsumer` drive the
steps.

A chunk is decoded here, in the caller's thread (large ones of an async consumer on an executor).
Records count as returned (`InFlight`) only where nothing can cancel the call any more, so that a
cancelled poll accepts nothing that its caller has not seen.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Protocol, TypeVar, runtime_checkable
from uuid import UUID

from fairlead_kafka.base.errors import FairleadError, TimedOut, UsageError
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.base.units import NS_PER_S, s_to_ns
from fairlead_kafka.client.hosting import (
    LONGEST_S,
    Offload,
    Opener,
    Steps,
    abandon,
    closed,
    connect,
    connect_first,
    forked_away,
    instance_id,
    open_host,
    wait_for,
    wait_until,
)
from fairlead_kafka.consumer import ALL_COLUMNS, check_columns
from fairlead_kafka.consumer.share import (
    GAP,
    Acknowledge,
    AcknowledgeType,
    AckResult,
    Acks,
    Decoded,
    Delivery,
    GetLockTimeout,
    InFlight,
    ShareChunk,
    ShareConsumerMachine,
    ShareRecord,
    Shut,
    Subscribe,
    Take,
    Taken,
    Unsubscribe,
    decode_share_chunk,
    share_settings,
)
from fairlead_kafka.consumer.share.metrics import ShareConsumerMetrics, ShareMeter
from fairlead_kafka.core.traffic_meter import sampling_of
from fairlead_kafka.records.arrays import Int64
from fairlead_kafka.runtime import Completion

if TYPE_CHECKING:
    import pyarrow as pa

    from fairlead_kafka.records import Room

T = TypeVar("T")

TABLE_MAX_RECORDS = 1_000_000
"""Records that a poll for a table asks brokers for; they give fewer: as many of each partition as
group.share.partition.max.record.locks lets be in flight."""
OFFLOAD_BYTES = 64 * 1024
"""Bytes of a chunk from which on an event loop has it decoded on a worker thread."""
CLOSE_S = 5.0
"""Seconds that `close` waits for the machine and its host."""
Outcome = dict[TopicPartition, "FairleadError | None"]
"""Partition → None if brokers have its acknowledgements, else the error of the first that
failed."""


@runtime_checkable
class AcknowledgementCommitCallback(Protocol):
    """Called with the outcome of acknowledgements, in the thread of a later poll, commit or close.

    `offsets`: those of the records, by partition. `error`: None if the broker has them. It must not
    call its consumer. Kafka's counterpart has the same name.
    """

    def __call__(
        self, offsets: Mapping[TopicPartition, Sequence[int]], error: Exception | None, /
    ) -> object: ...


class ShareConsumerCalls:
    """State of a share consumer, and steps of its calls. Not for several threads at once, except
    `close`. On an event loop `offload` runs work on a thread."""

    def __init__(
        self,
        config: Mapping[str, object],
        offload: Offload | None = None,
        opener: Opener = open_host,
    ) -> None:
        self.settings = share_settings(config)
        self.closed = False
        self.callback: AcknowledgementCommitCallback | None = None
        self._implicit = self.settings["share.acknowledgement.mode"] == "implicit"
        self._check_crcs: bool = self.settings["check.crcs"]
        self._max_poll_records: int = self.settings["max.poll.records"]
        self._record_limit = self.settings["share.acquire.mode"] == "record_limit"
        self._default_timeout_s: float = self.settings["default.api.timeout.ms"] / 1000
        self._offload = offload
        self._hosted = self.host = opener(
            lambda rng: ShareConsumerMachine(self.settings, rng), self.settings, "fairlead-share-consumer"
        )
        self._topics: tuple[str, ...] = ()
        self._flight = InFlight()
        self._pending: deque[ShareChunk] = deque()
        self._asked: Completion[Taken] | None = None
        self._acking: list[Completion[list[AckResult]]] = []
        self._error: FairleadError | None = None
        """Error of a batch that did not decode, raised by the next poll that returns nothing else.
        """
        self._calling = threading.Lock()
        self._meter = ShareMeter(sampling_of(self.settings))
        self._hosted.machine.client_metrics = self._metrics_at

    # Subscribing

    def subscribe(self, topics: Iterable[str]) -> Steps[None]:
        """Join the group, and read these topics; an empty list unsubscribes. See
        `ShareConsumer.subscribe`."""
        names = [topics] if isinstance(topics, str) else list(topics)
        if not names:
            yield from self.unsubscribe()
            return
        if "" in names:
            raise UsageError("subscribe: a topic's name must not be empty")

        def subscribing(completion: Completion[None]) -> Subscribe:
            return Subscribe(completion, names)

        yield from self._ask(subscribing)
        self._topics = tuple(dict.fromkeys(names))

    def unsubscribe(self) -> Steps[None]:
        """Leave the group."""
        self._topics = ()
        self._flight.release(self._pending)
        self._pending.clear()
        self._send(self._flight.take_decided(), self._deadline_ns(None))
        yield from self._ask(Unsubscribe)

    def subscription(self) -> list[str]:
        """The topics subscribed to."""
        return list(self._topics)

    # Polling

    def poll(self, timeout_s: float) -> Steps[list[ShareRecord]]:
        """Records, as soon as there are any; see `ShareConsumer.poll` for time-out and errors."""
        with self._one_call():
            found = yield from self._deliver(timeout_s, ALL_COLUMNS, self._max_poll_records)
            with self._returned(found):
                records: list[ShareRecord] = []
                for delivery, decoded in found:
                    part = decoded.records(delivery.chunk.partition)
                    records = records + part if records else part
            self._count(len(records))
            return records

    def poll_table(self, timeout_s: float, columns: Sequence[str] | None) -> Steps[pa.Table]:
        """A table of records, as soon as there are any; see `ShareConsumer.poll_table` for time-out
        and errors."""
        from fairlead_kafka.consumer.share.tables import SHARE_COLUMNS, share_batches, share_table
        from fairlead_kafka.records import pooled

        names = check_columns(columns, SHARE_COLUMNS)
        limit = self._max_poll_records if self._record_limit else TABLE_MAX_RECORDS
        with self._one_call():
            found = yield from self._deliver(timeout_s, names, limit, pooled)
            with self._returned(found):
                batches = [
                    batch
                    for delivery, decoded in found
                    for batch in share_batches(delivery.chunk.partition, decoded, names)
                ]
                table = share_table(batches, names)
            self._count(table.num_rows)
            return table

    def acknowledge(self, partition: TopicPartition, offset: int, chosen: AcknowledgeType) -> None:
        """Acknowledge one record of the last poll; `chosen` says what became of it. See
        `ShareConsumer.acknowledge` for errors."""
        self._check_explicit()
        self._flight.acknowledge(partition, offset, chosen)

    def acknowledge_table(self, table: pa.Table, column: str) -> None:
        """Acknowledge rows of the last poll by a column of the table, all or none; see
        `ShareConsumer.acknowledge_table`."""
        from fairlead_kafka.consumer.share.tables import decisions_of

        self._check_explicit()
        found = [
            (rows, types[indexes], delivery)
            for partition, offsets, types in decisions_of(table, column)
            for delivery, rows, indexes in self._flight.rows_of(partition, offsets)
        ]
        for rows, types, delivery in found:
            delivery.decide(rows, types)

    def commit(self, timeout_s: float | None) -> Steps[Outcome]:
        """Send the acknowledgements that are not sent, and wait for the outcome; see
        `ShareConsumer.commit`."""
        with self._one_call():
            deadline_ns = self._deadline_ns(timeout_s)
            acks = self._decided()
            if not acks and not self._flight.incomplete():
                return {}
            yield from connect_first(self._hosted, self.settings, timeout_s, "default.api.timeout.ms")
            results = yield from self._acknowledge(acks, deadline_ns, deadline_ns)
            outcome: Outcome = {}
            for each, error in results:
                failure = error if error is None or isinstance(error, FairleadError) else FairleadError(error)
                outcome[each.partition] = outcome.get(each.partition) or failure
            for partition in self._flight.incomplete():
                late = TimedOut(f"acknowledging {partition}: no answer within the time allowed")
                outcome[partition] = outcome.get(partition) or late
            return outcome

    def commit_async(self) -> Steps[None]:
        """Send the acknowledgements that are not sent, without waiting for the outcome."""
        with self._one_call():
            self._send(self._decided(), self._deadline_ns(None))
            yield from ()

    def acquisition_lock_timeout_ms(self) -> Steps[int | None]:
        """Ms for which brokers lock what they deliver; None: not known yet."""
        return (yield from self._ask(GetLockTimeout))

    def instance_id(self, timeout_s: float | None) -> Steps[UUID]:
        """The id under which a client's metrics are pushed (KIP-714); see `client_instance_id` for
        time-out and errors."""
        self.check()
        seconds = self.settings["default.api.timeout.ms"] / 1000 if timeout_s is None else timeout_s
        return instance_id(self._hosted, seconds)

    def connect(self, timeout_s: float | None) -> Steps[None]:
        """Wait until a broker is reached; see `ShareConsumer.connect` for time-out and error."""
        self.check()
        return connect(self._hosted, self.settings, timeout_s)

    @property
    def client_id(self) -> str:
        """`client.id`."""
        return str(self.settings["client.id"])

    @property
    def group_id(self) -> str:
        """`group.id`."""
        return str(self.settings["group.id"])

    def metrics(self) -> ShareConsumerMetrics:
        """Metrics of the machine and of this side, by Kafka's names; from any thread."""
        return self._metrics_at(self._hosted.now_ns())

    def _metrics_at(self, now_ns: int) -> ShareConsumerMetrics:
        return self._hosted.machine.metrics(now_ns, self._meter)

    def _count(self, records: int) -> None:
        """Count the records that a poll returns."""
        now_ns = self._hosted.now_ns()
        if now_ns >= self._meter.rolls_ns:
            self._meter.roll(now_ns)
        self._meter.records_consumed += records

    # Ending

    def close(self) -> Steps[None]:
        """Send acknowledgements, release all other records, leave the group and shut the
        machine."""
        if self.closed or self._hosted.forked:
            return
        acks = self._flight.take_decided()
        self.closed = True
        completion: Completion[list[AckResult]] = Completion()
        self._hosted.submit(Shut(completion, acks))
        results: list[AckResult] | None = None
        with suppress(UsageError):  # its machine has crashed: there is nothing left to shut
            results = yield from wait_until(completion, CLOSE_S)
        self._pending.clear()
        self._complete(results or ())

    def abandon(self) -> None:
        """End the thread of a consumer object that was dropped without `close`; records not
        acknowledged are released. `hosting.end_with` has this called."""
        if self.closed or self._hosted.forked:
            return
        self.closed = True
        abandon(self._hosted, self.end, Shut)

    def end(self) -> None:
        """Stop the host, after `close`."""
        self._hosted.close(CLOSE_S)

    def check(self) -> None:
        """Raise UsageError if the client is closed, or belongs to another process."""
        if self._hosted.forked:
            raise forked_away("share consumer")
        if self.closed:
            raise closed("share consumer")

    # Inside

    def _deliver(
        self, timeout_s: float, columns: Sequence[str], max_records: int, room: Room | None = None
    ) -> Steps[list[tuple[Delivery, Decoded]]]:
        """The next deliveries with records to return, decoded, once the records returned before are
        acknowledged. UsageError in explicit mode if some of those were not."""
        deadline_ns = self._deadline_ns(timeout_s)
        if not self._implicit and self._flight.undecided:
            raise UsageError(
                "all records of the last poll must be acknowledged before the next one "
                f"(share.acknowledgement.mode=explicit); {self._flight.undecided} are not"
            )
        acks = self._decided()
        if self._flight.renewing:
            yield from self._acknowledge(acks, deadline_ns, self._deadline_ns(None))
            renewed = self._flight.take_renewed()
            if renewed or self._flight.renewing:
                return [
                    (each, self._decode(each.chunk, columns, room, only=each.offsets)) for each in renewed
                ]
            acks = []
        while True:
            if not self._pending and not (yield from self._take(deadline_ns, max_records, acks)):
                if self._error is not None and not self._pending:
                    error, self._error = self._error, None
                    raise error
                return []
            found = yield from self._decode_pending(columns, room)
            if found:
                return found
            acks = self._flight.take_decided()  # only gaps were acquired, or what does not decode

    def _decode_pending(
        self, columns: Sequence[str], room: Room | None
    ) -> Steps[list[tuple[Delivery, Decoded]]]:
        decoded: list[tuple[ShareChunk, Decoded]] = []
        for chunk in [chunk for chunk in self._pending if chunk.lock_ns > self._hosted.now_ns()]:
            if self._offload is None or len(chunk.data) < OFFLOAD_BYTES:
                decoded.append((chunk, self._decode(chunk, columns, room)))
            else:
                work = self._offload(lambda chunk=chunk: self._decode(chunk, columns, room))  # type: ignore[misc]
                decoded.append((chunk, (yield from wait_for(work))))
        self._pending.clear()  # only now, when nothing can cancel this call any more
        found = []
        for chunk, records in decoded:
            self._error = records.error or self._error
            delivery = self._flight.add(chunk, records)
            if delivery.left:
                found.append((delivery, records))
        return found

    def _decode(
        self, chunk: ShareChunk, columns: Sequence[str], room: Room | None, only: Int64 | None = None
    ) -> Decoded:
        return decode_share_chunk(chunk, columns, check_crcs=self._check_crcs, only=only, room=room)

    @contextmanager
    def _returned(self, found: Sequence[tuple[Delivery, Decoded]]) -> Generator[None, None, None]:
        """Release the deliveries in `found` if the `with` block, which makes records of them, fails
        or is interrupted."""
        try:
            yield
        except BaseException:
            for delivery, _ in found:
                delivery.decide_rest(AcknowledgeType.RELEASE)
            raise

    def _decided(self) -> list[Acks]:
        """Take the acknowledgements that are not sent; in implicit mode all records returned are
        accepted."""
        if self._implicit:
            self._flight.decide_rest(AcknowledgeType.ACCEPT)
        return self._flight.take_decided()

    def _take(self, deadline_ns: int, max_records: int, acks: Sequence[Acks]) -> Steps[bool]:
        """Get chunks from the machine into `_pending`. False if none came in time.

        A poll that is cancelled leaves its operation with the machine; the next poll waits for the
        answer to that one first.
        """
        acks_by_ns = self._deadline_ns(None)
        remaining_s = None
        if self._asked is None:
            self._asked = Completion()
            self._hosted.submit(Take(self._asked, deadline_ns, max_records, acks, acks_by_ns))
        else:
            self._send(acks, acks_by_ns)
            remaining_s = max(0.0, (deadline_ns - self._hosted.now_ns()) / NS_PER_S)
        try:
            taken = yield from wait_until(self._asked, remaining_s)
        except Exception:
            self._asked = None
            raise
        if taken is None:
            return False
        self._asked = None
        self._pending.extend(taken.chunks)
        self._complete(taken.results)
        return bool(taken.chunks) or (remaining_s is not None and self._hosted.now_ns() < deadline_ns)

    def _send(self, acks: Sequence[Acks], deadline_ns: int) -> None:
        """Send acknowledgements without waiting; `_complete` notes the outcome later. `deadline_ns`
        is on the monotonic clock."""
        if acks:
            self._hosted.submit(Acknowledge(Completion(), None, acks, deadline_ns))

    def _acknowledge(self, acks: Sequence[Acks], deadline_ns: int, acks_by_ns: int) -> Steps[list[AckResult]]:
        """Send acknowledgements, and wait until they and earlier ones are answered. Times are ns on
        the monotonic clock.

        A call that is cancelled leaves its operation with the machine; the next call takes the
        answer.
        """
        completion: Completion[list[AckResult]] = Completion()
        self._acking.append(completion)
        self._hosted.submit(Acknowledge(completion, deadline_ns, acks, acks_by_ns))
        results = yield from wait_for(completion)
        self._acking.remove(completion)
        self._complete(results)
        return results

    def _complete(self, results: Iterable[AckResult]) -> None:
        """Note the outcomes of acknowledgements, and call the callback with them. What the callback
        raised is raised at the end."""
        results = list(results)
        for left in [each for each in self._acking if each.done()]:
            self._acking.remove(left)
            if left.error() is None:
                results += left.result()
        if not results:
            return
        self._flight.complete(results)
        failure: Exception | None = None
        for acks, error in results:
            offsets = acks.offsets[acks.types != GAP].tolist()
            if self.callback is not None and offsets and acks.number:
                try:
                    self.callback({acks.partition: offsets}, error)
                except Exception as raised:
                    failure = failure or raised
        if failure is not None:
            raise failure

    def _check_explicit(self) -> None:
        self.check()
        if self._implicit:
            raise UsageError(
                "records are acknowledged implicitly, by the next poll or commit; set "
                "share.acknowledgement.mode=explicit to acknowledge each"
            )

    def _ask(self, operation: Callable[[Completion[T]], object]) -> Steps[T]:
        self.check()
        completion: Completion[T] = Completion()
        self._hosted.submit(operation(completion))
        return (yield from wait_for(completion))

    def _deadline_ns(self, timeout_s: float | None) -> int:
        self.check()
        return self._hosted.now_ns() + s_to_ns(
            min(self._default_timeout_s if timeout_s is None else timeout_s, LONGEST_S)
        )

    @contextmanager
    def _one_call(self) -> Generator[None, None, None]:
        if not self._calling.acquire(blocking=False):
            raise UsageError(
                "another call of this share consumer is under way, perhaps that which calls its "
                "acknowledgement commit callback; one at a time, or a consumer each"
            )
        try:
            yield
        finally:
            self._calling.release()
