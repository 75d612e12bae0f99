"""The table of a log's partitions: by topic and number, and a topic at a time."""

from __future__ import annotations

from uuid import UUID

from fairlead_kafka.broker.controller import LeadersChanged, TopicImage
from fairlead_kafka.broker.log import Partition
from fairlead_kafka.broker.log.table import PartitionTable
from tests.support.log_rig import limits

ONE, OTHER = UUID(int=1), UUID(int=2)


def _partition(topic_id: UUID, number: int) -> Partition:
    return Partition("events", topic_id, number, limits())


def test_partitions_are_found_by_topic_and_number_and_go_with_their_topic() -> None:
    table = PartitionTable()
    first, second, other = _partition(ONE, 0), _partition(ONE, 7), _partition(OTHER, 0)
    for partition in (first, second, other):
        table.enter(partition)
    assert (table.get(ONE, 7), table.get(ONE, 1), table.get(UUID(int=3), 0)) == (second, None, None)
    assert dict(table.of_topic(ONE)) == {0: first, 7: second}
    assert dict(table.of_topic(UUID(int=3))) == {}
    assert list(table) == [first, second, other]
    assert table.forget_topic(ONE) == [first, second]
    assert table.forget_topic(ONE) == []
    assert (table.holds(first), table.holds(other), list(table)) == (False, True, [other])


def test_a_partition_that_came_after_is_not_the_one_before() -> None:
    table = PartitionTable()
    before, after = _partition(ONE, 0), _partition(ONE, 0)
    table.enter(before)
    table.forget_topic(ONE)
    table.enter(after)
    assert (table.holds(before), table.holds(after)) == (False, True)


def test_changed_leaders_are_told_topic_by_topic() -> None:
    one, other = TopicImage("one", ONE, []), TopicImage("one", OTHER, [])
    change = LeadersChanged(((one, 3), (one, 1), (other, 1), (one, 2)))
    assert [(topic.topic_id, numbers) for topic, numbers in change.by_topic()] == [
        (ONE, [3, 1]),
        (OTHER, [1]),
        (ONE, [2]),
    ]
