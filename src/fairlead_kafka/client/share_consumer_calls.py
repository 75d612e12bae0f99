"""Every call of a share consumer, written once; `ShareConsumer` and `AsyncShareConsumer` drive the
steps.

A chunk is decoded here, in the caller's thread (large ones of an async consumer on an executor).
A chunk stays pending (`InFlight`) until `hand_out`, the last step of the poll that returns its
records: one that is cancelled, or that Ctrl-C or an error ends, loses nothing, and nothing is
accepted that its caller has not seen.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, TypeVar
from uuid import UUID

from fairlead_kafka.base.errors import FairleadError, TimedOut, UsageError
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.base.units import s_to_ns
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
from fairlead_kafka.client.one_at_a_time import CallUnderWay, OneAtATime, closes
from fairlead_kafka.client.share_consumer_exchange import Exchange
from fairlead_kafka.consumer import ALL_COLUMNS, check_columns
from fairlead_kafka.consumer.share import (
    AcknowledgeType,
    AckResult,
    Decoded,
    Delivery,
    GetLockTimeout,
    ShareChunk,
    ShareConsumerMachine,
    ShareRecord,
    Shut,
    Subscribe,
    Unsubscribe,
    decode_share_chunk,
    delivery_of,
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


class Found(NamedTuple):
    """Records that a poll is about to return."""

    delivery: Delivery
    decoded: Decoded


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
        self.exchange = Exchange(self._hosted)
        self._flight = self.exchange.flight
        self._error: FairleadError | None = None
        """Error of a batch that did not decode, raised by the next poll that returns nothing else.
        """
        self._closes = closes()
        self._exclusive = OneAtATime(
            lambda: CallUnderWay(
                "another call of this share consumer is under way, perhaps that which calls its "
                "acknowledgement commit callback; one at a time, or a consumer each"
            )
        )
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
        self.exchange.collect()
        self._flight.release_pending()
        self.exchange.send(self._deadline_ns(None))
        yield from self._ask(Unsubscribe)

    def subscription(self) -> list[str]:
        """The topics subscribed to."""
        return list(self._topics)

    # Polling

    def poll(self, timeout_s: float) -> Steps[list[ShareRecord]]:
        """Records, as soon as there are any; see `ShareConsumer.poll` for time-out and errors."""
        return self._exclusive.run(self._poll(timeout_s))

    def _poll(self, timeout_s: float) -> Steps[list[ShareRecord]]:
        records, deliveries = yield from self.collect(timeout_s)
        self.hand_out(len(records), deliveries)
        return records

    def collect(self, timeout_s: float) -> Steps[tuple[list[ShareRecord], list[Delivery]]]:
        """Records for `poll` to return, and the deliveries to hand out with them."""
        found = yield from self._deliver(timeout_s, ALL_COLUMNS, self._max_poll_records)
        records: list[ShareRecord] = []
        for delivery, decoded in found:
            part = decoded.records(delivery.chunk.partition)
            records = records + part if records else part
        return records, [each.delivery for each in found]

    def poll_table(self, timeout_s: float, columns: Sequence[str] | None) -> Steps[pa.Table]:
        """A table of records, as soon as there are any; see `ShareConsumer.poll_table` for time-out
        and errors."""
        return self._exclusive.run(self._poll_table(timeout_s, columns))

    def _poll_table(self, timeout_s: float, columns: Sequence[str] | None) -> Steps[pa.Table]:
        table, deliveries = yield from self.collect_table(timeout_s, columns)
        self.hand_out(table.num_rows, deliveries)
        return table

    def collect_table(
        self, timeout_s: float, columns: Sequence[str] | None
    ) -> Steps[tuple[pa.Table, list[Delivery]]]:
        """The table for `poll_table` to return, and the deliveries to hand out with it."""
        from fairlead_kafka.consumer.share.tables import SHARE_COLUMNS, share_batches, share_table
        from fairlead_kafka.records import pooled

        names = check_columns(columns, SHARE_COLUMNS)
        limit = self._max_poll_records if self._record_limit else TABLE_MAX_RECORDS
        found = yield from self._deliver(timeout_s, names, limit, pooled)
        batches = [
            batch
            for delivery, decoded in found
            for batch in share_batches(delivery.chunk.partition, decoded, names)
        ]
        return share_table(batches, names), [each.delivery for each in found]

    def hand_out(self, records: int, deliveries: Sequence[Delivery]) -> None:
        """Note that a poll returns so many records, those of `deliveries`: its last step, after
        which it calls nothing."""
        now_ns = self._hosted.now_ns()
        if now_ns >= self._meter.rolls_ns:
            self._meter.roll(now_ns)
        self._meter.records_consumed += records
        self._flight.hand_out(deliveries)

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
        return self._exclusive.run(self._commit(timeout_s))

    def _commit(self, timeout_s: float | None) -> Steps[Outcome]:
        deadline_ns = self._deadline_ns(timeout_s)
        self._decide()
        self._flight.to_send()
        if not self._flight.incomplete():
            return {}
        yield from connect_first(self._hosted, self.settings, timeout_s, "default.api.timeout.ms")
        results = yield from self.exchange.acknowledge(deadline_ns, deadline_ns)
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
        return self._exclusive.run(self._commit_async())

    def _commit_async(self) -> Steps[None]:
        deadline_ns = self._deadline_ns(None)
        self._decide()
        self.exchange.send(deadline_ns)
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

    # Ending

    def close(self) -> Steps[None]:
        """Send acknowledgements, release all other records, leave the group and shut the machine.
        CloseUnderWay while other steps of this method are driven."""
        return self._closes.run(self._close())

    def _close(self) -> Steps[None]:
        if self.closed or self._hosted.forked:
            return
        acks = self._flight.to_send()
        self.closed = True
        completion: Completion[list[AckResult]] = Completion()
        results: list[AckResult] | None = None
        with suppress(UsageError):  # its machine has crashed: there is nothing left to shut
            self._hosted.submit(Shut(completion, acks))
            results = yield from wait_until(completion, CLOSE_S)
        outcomes = deque(results or ())
        with suppress(CallUnderWay):
            outcomes = yield from self._exclusive.run(self._last_outcomes(outcomes))
        self.exchange.report(outcomes)

    def _last_outcomes(self, outcomes: Iterable[AckResult]) -> Steps[deque[AckResult]]:
        """`outcomes`, after those of earlier calls; what no poll returned is dropped."""
        self.exchange.collect()
        self._flight.pending.clear()
        self._flight.outcomes.extend(outcomes)
        yield from ()
        return self._flight.outcomes

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
    ) -> Steps[list[Found]]:
        """The next deliveries with records to return, decoded, once the records returned before are
        acknowledged. UsageError in explicit mode if some of those were not."""
        deadline_ns = self._deadline_ns(timeout_s)
        if not self._implicit and self._flight.undecided:
            raise UsageError(
                "all records of the last poll must be acknowledged before the next one "
                f"(share.acknowledgement.mode=explicit); {self._flight.undecided} are not"
            )
        self._decide()
        self._flight.to_send()
        if self._flight.renewing:
            yield from self.exchange.acknowledge(deadline_ns, self._deadline_ns(None))
            if self._flight.renewing:
                return [
                    Found(each, self._decode(each.chunk, columns, room, only=each.offsets))
                    for each in self._flight.renewed
                ]
        if self._flight.pending:
            self.exchange.send(self._deadline_ns(None))
        while True:
            found = yield from self._decode_pending(columns, room)
            if found:
                return found
            if not (yield from self.exchange.take(deadline_ns, max_records, self._deadline_ns(None))):
                if self._error is not None and not self._flight.pending:
                    error, self._error = self._error, None
                    raise error
                return []

    def _decode_pending(self, columns: Sequence[str], room: Room | None) -> Steps[list[Found]]:
        """The records of all pending chunks whose locks last. Chunks with none, only gaps or what
        does not decode, are acknowledged."""
        flight = self._flight
        found: list[Found] = []
        for chunk in [chunk for chunk in flight.pending if chunk.lock_ns > self._hosted.now_ns()]:
            if self._offload is None or len(chunk.data) < OFFLOAD_BYTES:
                decoded = self._decode(chunk, columns, room)
            else:
                work = self._offload(lambda chunk=chunk: self._decode(chunk, columns, room))  # type: ignore[misc]
                decoded = yield from wait_for(work)
            found.append(Found(delivery_of(chunk, decoded), decoded))
            self._error = decoded.error or self._error
        pending = {id(chunk) for chunk in flight.pending}  # but those that were released meanwhile
        found = [each for each in found if id(each.delivery.chunk) in pending]
        flight.hand_out([each.delivery for each in found if not each.delivery.left])
        with_records = [each for each in found if each.delivery.left]
        kept = {id(each.delivery.chunk) for each in with_records}
        flight.pending = deque(chunk for chunk in flight.pending if id(chunk) in kept)  # others' locks ended
        return with_records

    def _decode(
        self, chunk: ShareChunk, columns: Sequence[str], room: Room | None, only: Int64 | None = None
    ) -> Decoded:
        return decode_share_chunk(chunk, columns, check_crcs=self._check_crcs, only=only, room=room)

    def _decide(self) -> None:
        """In implicit mode accept all records returned."""
        if self._implicit:
            self._flight.decide_rest(AcknowledgeType.ACCEPT)

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
