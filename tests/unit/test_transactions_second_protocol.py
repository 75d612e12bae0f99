"""The second protocol of transactions (KIP-890): an epoch for each, partitions added by their first
batch, answers that are the same when they are asked for again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.ids import NO_PRODUCER_ID, TopicPartition
from fairlead_kafka.broker.internal import ProducerIdentity
from fairlead_kafka.broker.transactions import EPOCH_MAX, TransactionState
from fairlead_kafka.broker.transactions.coordinator import ADD_WAIT_MS
from fairlead_kafka.wire import ApiKey, Message
from tests.support.virtual_cluster import Transactor, VirtualCluster, state_of

P0, P1, P2 = (TopicPartition("events", number) for number in range(3))
BUSY, WRONG, FENCED = (
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.PRODUCER_FENCED,
)
_S = TransactionState


class Second(Transactor):
    """A producer of the second protocol: it goes on with the identity that EndTxn answers."""

    before: ProducerIdentity

    def write(self, of: TopicPartition, *values: bytes) -> None:
        assert self.produce(of, *values, version=12) == 0

    def end(self, committed: bool, version: int = 5, by: ProducerIdentity | None = None) -> int:
        asking = self.identity if by is None else by
        answer = self.cluster.ask(
            self.node_id,
            ApiKey.END_TXN,
            version,
            transactional_id=self.transactional_id,
            producer_id=asking.producer_id,
            producer_epoch=asking.epoch,
            committed=committed,
        )
        if not answer.error_code:
            self.before, self.identity = asking, ProducerIdentity(answer.producer_id, answer.producer_epoch)
            self.sequences.clear()
        else:
            assert (answer.producer_id, answer.producer_epoch) == (-1, -1)
        return int(answer.error_code)


@pytest.fixture
def cluster() -> Iterator[VirtualCluster]:
    made = VirtualCluster(brokers=1)
    made.topic()
    yield made
    made.close()


@pytest.fixture
def producer(cluster: VirtualCluster) -> Second:
    ready = Second(cluster).ready()
    assert isinstance(ready, Second)
    return ready


def later(identity: ProducerIdentity, epochs: int = 1) -> ProducerIdentity:
    return identity._replace(epoch=identity.epoch + epochs)


def marker(cluster: VirtualCluster, identity: ProducerIdentity, of: TopicPartition) -> int:
    row = Message(
        producer_id=identity.producer_id,
        producer_epoch=identity.epoch,
        transaction_result=True,
        topics=[Message(name=of.topic, partition_indexes=[of.partition])],
        coordinator_epoch=0,
        transaction_version=2,
    )
    answer = cluster.ask(cluster.leader(of), ApiKey.WRITE_TXN_MARKERS, 2, markers=[row])
    return int(answer.markers[0].topics[0].partitions[0].error_code)


def test_each_transaction_has_an_epoch_of_its_own(cluster: VirtualCluster, producer: Second) -> None:
    first = producer.identity
    producer.write(P0, b"a")
    producer.write(P1, b"b")
    producer.finish(True)
    assert producer.identity == later(first)
    producer.write(P0, b"lost")
    producer.finish(False)
    assert producer.identity == later(first, 2)
    producer.write(P0, b"c")
    producer.finish(True)
    assert cluster.values(P0) == [b"a", b"c"]
    assert cluster.values(P1) == [b"b"]


BY_CURRENT: dict[TransactionState, tuple[int, int]] = {
    _S.EMPTY: (WRONG, 0),
    _S.ONGOING: (0, 0),
    _S.PREPARE_COMMIT: (BUSY, BUSY),
    _S.PREPARE_ABORT: (BUSY, BUSY),
    _S.COMPLETE_COMMIT: (WRONG, 0),
    _S.COMPLETE_ABORT: (WRONG, 0),
}
"""State → answers to EndTxn (commit, abort) by the current epoch; from Kafka's
`TransactionCoordinator.endTransaction`."""
BY_ONE_BEFORE: dict[TransactionState, tuple[int, int]] = {
    _S.EMPTY: (FENCED, FENCED),
    _S.ONGOING: (FENCED, FENCED),
    _S.PREPARE_COMMIT: (BUSY, WRONG),
    _S.PREPARE_ABORT: (WRONG, BUSY),
    _S.COMPLETE_COMMIT: (0, WRONG),
    _S.COMPLETE_ABORT: (WRONG, 0),
}
"""As BY_CURRENT, by the epoch before: the request is asked again."""


@pytest.mark.parametrize("committed", [True, False], ids=["commit", "abort"])
@pytest.mark.parametrize("epoch", [0, -1], ids=["current", "one_before"])
@pytest.mark.parametrize("state", BY_CURRENT, ids=lambda state: state.value)
def test_the_end_is_answered_by_the_table(
    cluster: VirtualCluster, producer: Second, state: TransactionState, epoch: int, committed: bool
) -> None:
    producer.write(P0, b"first")
    producer.finish(True)
    transaction = cluster.transaction("payments")
    transaction.image = replace(
        transaction.image,
        state=state,
        partitions=frozenset({P0})
        if state in (_S.ONGOING, _S.PREPARE_COMMIT, _S.PREPARE_ABORT)
        else frozenset(),
    )
    current = producer.identity
    table = BY_ONE_BEFORE if epoch else BY_CURRENT
    expected = table[state][0 if committed else 1]
    assert producer.end(committed, by=later(current, epoch)) == expected
    if not expected:
        assert producer.identity == (current if epoch else later(current))
        cluster.quiesce()
        assert state_of(cluster) in ("CompleteCommit", "CompleteAbort")


def test_an_answer_that_was_lost_is_given_again(cluster: VirtualCluster, producer: Second) -> None:
    first = producer.identity
    producer.write(P0, b"once")
    producer.finish(True)
    for _ in range(2):
        assert producer.end(True, by=first) == 0
        assert producer.identity == later(first)
    assert producer.end(False, by=first) == WRONG
    producer.write(P0, b"twice")
    assert producer.end(True, by=first) == FENCED  # by now the next transaction is under way
    assert cluster.values(P0) == [b"once"]


def test_what_comes_late_opens_nothing(cluster: VirtualCluster, producer: Second) -> None:
    late = Second(cluster)
    late.identity = producer.identity
    producer.write(P0, b"in time")
    producer.finish(True)
    for of in (P0, P1):  # seen there in the epoch of the marker, and never seen there
        assert late.produce(of, b"late", version=12) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert cluster.values(P1) == []
    producer.write(P1, b"next")
    producer.finish(True)
    assert cluster.values(P1) == [b"next"]


def test_a_late_marker_does_not_end_the_next_transaction(cluster: VirtualCluster, producer: Second) -> None:
    producer.write(P0, b"a")
    producer.finish(True)
    producer.write(P0, b"open")
    assert marker(cluster, producer.identity, P0) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert cluster.values(P0) == [b"a"]
    producer.finish(False)
    assert marker(cluster, producer.identity, P0) == 0  # it came before, and ends nothing
    assert cluster.values(P0) == [b"a"]


def test_a_batch_of_the_next_epoch_waits_for_the_end_of_the_one_before(
    cluster: VirtualCluster, producer: Second
) -> None:
    """Until its marker is there, a partition has a transaction open, and it is not this one."""
    producer.write(P0, b"a")
    transaction = cluster.transaction("payments")
    current = producer.identity
    transaction.image = transaction.image.prepared_by_epoch(True, 1)  # and no marker comes
    producer.identity = later(current)
    producer.sequences.clear()
    assert producer.produce(P0, b"b", version=12) == BUSY
    assert producer.produce(P1, b"b", version=12) == BUSY
    assert producer.produce(P0, b"b", version=11) == ErrorCode.NOT_ENOUGH_REPLICAS
    cluster.kill(0)
    cluster.start(0)  # the log has the transaction open
    producer.identity = current
    producer.finish(True)
    producer.write(P0, b"b")
    producer.finish(True)
    assert cluster.values(P0) == [b"a", b"b"]


def test_a_first_batch_that_was_refused_is_taken_before_those_behind_it(
    cluster: VirtualCluster, producer: Second
) -> None:
    """A producer has several batches on their way to a partition that does not know it yet."""
    transaction = cluster.transaction("payments")
    transaction.image = transaction.image.prepared_by_epoch(False, 1)
    producer.identity = later(producer.identity)
    for sequence in (1, 0, 2):  # as they may be refused by connections that come and go
        producer.sequences[P1] = sequence
        assert producer.produce(P1, b"%d" % sequence, version=12) == BUSY
    transaction.image = transaction.image.completed(1)
    for sequence, error in ((1, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER), (0, 0), (1, 0), (2, 0)):
        producer.sequences[P1] = sequence
        assert producer.produce(P1, b"%d" % sequence, version=12) == error
    producer.finish(True)
    assert cluster.values(P1) == [b"0", b"1", b"2"]


def test_first_batches_that_come_to_all_brokers_at_once_are_all_taken() -> None:
    """Also right after the transaction before, whose markers meet them on their way."""
    cluster = VirtualCluster(latency_ms=2)
    cluster.topic()
    producer = Second(cluster).ready()
    assert isinstance(producer, Second)
    for number in range(3):
        asked = [
            cluster.send(
                cluster.leader(of),
                ApiKey.PRODUCE,
                12,
                **producer.request(of, [b"%d" % number]),
            )
            for of in (P0, P1, P2)
        ]
        cluster.quiesce(ADD_WAIT_MS)
        answers = [one.answer for one in asked if one.answer is not None]
        assert [answer.responses[0].partition_responses[0].error_code for answer in answers] == [0, 0, 0]
        assert producer.end(True) == 0  # and its markers are on their way
    cluster.quiesce()
    assert [cluster.values(of) for of in (P0, P1, P2)] == [[b"0", b"1", b"2"]] * 3
    cluster.close()


def test_time_that_is_up_in_the_last_epoch_fences_the_producer(
    cluster: VirtualCluster, producer: Second
) -> None:
    transaction = cluster.transaction("payments")
    transaction.image = replace(transaction.image, epoch=EPOCH_MAX - 1)
    producer.identity = producer.identity._replace(epoch=EPOCH_MAX - 1)
    producer.write(P0, b"lost")
    cluster.quiesce(120_000)
    assert [producer.end(committed) for committed in (True, False)] == [FENCED, FENCED]
    producer.ready()
    producer.write(P0, b"kept")
    producer.finish(True)
    assert cluster.values(P0) == [b"kept"]


def test_an_abort_right_behind_a_commit_is_served_once_its_markers_are_there() -> None:
    cluster = VirtualCluster(latency_ms=10)
    cluster.topic()
    producer = Second(cluster).ready()
    assert isinstance(producer, Second)
    for of in (P0, P1, P2):
        producer.write(of, b"kept")
    assert producer.end(True) == 0
    assert producer.end(False) == BUSY
    cluster.quiesce()
    assert producer.end(False) == 0
    cluster.quiesce()
    assert [cluster.values(of) for of in (P0, P1, P2)] == [[b"kept"]] * 3
    cluster.close()


def test_used_up_epochs_give_another_producer_id(cluster: VirtualCluster, producer: Second) -> None:
    transaction = cluster.transaction("payments")
    transaction.image = replace(transaction.image, epoch=EPOCH_MAX - 1)
    last = producer.identity = producer.identity._replace(epoch=EPOCH_MAX - 1)
    producer.write(P0, b"the last epoch")
    producer.finish(True)
    following = producer.identity
    assert following.producer_id != last.producer_id
    assert following.epoch == 0
    image = cluster.transaction("payments").image
    assert (image.previous_producer_id, image.next_producer_id) == (last.producer_id, NO_PRODUCER_ID)
    cluster.kill(0)
    cluster.start(0)
    assert producer.end(True, by=last) == 0
    assert producer.identity == following
    producer.write(P0, b"the first")
    producer.finish(True)
    assert producer.identity == later(following)
    assert cluster.values(P0) == [b"the last epoch", b"the first"]


def test_a_coordinator_that_dies_in_between_goes_on(cluster: VirtualCluster, producer: Second) -> None:
    producer.write(P0, b"a")
    before = producer.identity
    assert producer.end(True) == 0
    cluster.kill(0)
    cluster.start(0)
    cluster.quiesce()
    assert state_of(cluster) == "CompleteCommit"
    assert cluster.values(P0) == [b"a"]
    assert producer.end(True, by=before) == 0
    assert producer.identity == later(before)


def test_a_transaction_of_the_second_protocol_may_be_ended_by_the_first(
    cluster: VirtualCluster, producer: Second
) -> None:
    identity = producer.identity
    producer.write(P0, b"a")
    assert Transactor.end(producer, True, version=4) == 0
    cluster.quiesce()
    assert cluster.values(P0) == [b"a"]
    assert cluster.transaction("payments").image.identity == identity


def test_a_producer_whose_time_is_up_aborts_and_goes_on(cluster: VirtualCluster, producer: Second) -> None:
    producer.write(P0, b"lost")
    cluster.quiesce(120_000)
    assert state_of(cluster) == "CompleteAbort"
    assert producer.produce(P0, b"late", version=12) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert [producer.end(committed) for committed in (True, False)] == [WRONG, 0]
    producer.write(P0, b"kept")
    producer.finish(True)
    assert cluster.values(P0) == [b"kept"]


def test_so_does_one_that_adds_its_partitions_itself(cluster: VirtualCluster, producer: Second) -> None:
    before = producer.identity
    assert producer.add(P0) == 0
    producer.write(P0, b"lost")
    cluster.quiesce(120_000)
    assert [producer.end(committed) for committed in (True, False)] == [WRONG, 0]
    assert producer.identity == later(before)
    assert producer.add(P0) == 0
    producer.write(P0, b"kept")
    producer.finish(True)
    assert cluster.values(P0) == [b"kept"]


def test_offsets_are_added_by_their_commit(cluster: VirtualCluster, producer: Second) -> None:
    def commit() -> int:
        row = Message(partition_index=0, committed_offset=7, committed_leader_epoch=-1, committed_metadata="")
        answer = cluster.ask(
            0,
            ApiKey.TXN_OFFSET_COMMIT,
            5,
            transactional_id="payments",
            group_id="readers",
            producer_id=producer.identity.producer_id,
            producer_epoch=producer.identity.epoch,
            generation_id=-1,
            member_id="",
            group_instance_id=None,
            topics=[Message(name="events", partitions=[row])],
        )
        return int(answer.topics[0].partitions[0].error_code)

    found = cluster.ask(0, ApiKey.FIND_COORDINATOR, 3, key="readers", key_type=0)
    assert found.error_code == 0
    assert commit() == 0
    assert state_of(cluster) == "Ongoing"
    before = producer.identity
    producer.finish(True)
    after, producer.identity = producer.identity, before
    assert commit() == ErrorCode.INVALID_PRODUCER_EPOCH
    producer.identity = after
    assert commit() == 0
