"""The stream reader of Spark 4.0 and 4.1, asked as those versions ask: where a micro-batch begins
is not said."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator

import pytest

import fairlead_kafka
from fairlead_kafka.spark.options import parse_read_options
from fairlead_kafka.spark.reading import DataLoss
from fairlead_kafka.spark.schema import source_schema
from fairlead_kafka.spark.unlimited_stream_reader import UnlimitedStreamReader

from .driving import rows

Offsets = dict[str, dict[str, int]]
Make = Callable[..., UnlimitedStreamReader]


@pytest.fixture
def unlimited(cluster: fairlead_kafka.Cluster) -> Iterator[Make]:
    """`unlimited(subscribe=…)`: a reader with these options, as a new driver makes it."""
    made = []

    def make(**options: object) -> UnlimitedStreamReader:
        lowered = {name.lower(): str(value) for name, value in options.items()}
        parsed = parse_read_options(
            {"kafka.bootstrap.servers": cluster.bootstrap_servers, **lowered}, streaming=True
        )
        made.append(pickle.loads(pickle.dumps(UnlimitedStreamReader(parsed, source_schema(parsed.layout)))))
        return made[-1]

    yield make
    for reader in made:
        reader.stop()


def latest(reader: UnlimitedStreamReader) -> Offsets:
    """Spark's question at each trigger; offsets take the way through JSON."""
    return json.loads(json.dumps(reader.latestOffset()))  # type: ignore[no-any-return]


def test_each_micro_batch_has_all_that_is_there(
    unlimited: Make, topic: str, send: Callable[..., None]
) -> None:
    send(topic, 3, 1)
    reader = unlimited(subscribe=topic, startingOffsets="earliest")
    first = latest(reader)
    assert first == {topic: {"0": 3, "1": 1}}
    assert len(rows(reader, reader.initialOffset(), first)) == 4
    assert latest(reader) == first
    send(topic, 1)
    second = latest(reader)
    assert rows(reader, first, second) == [(0, 3)]


def test_a_query_from_latest_has_its_beginning_in_the_checkpoint_first(
    unlimited: Make, topic: str, send: Callable[..., None]
) -> None:
    send(topic, 2)
    reader = unlimited(subscribe=topic)
    first = latest(reader)
    assert reader.initialOffset() == {}
    assert rows(reader, {}, first) == []
    send(topic, 1)
    restarted = unlimited(subscribe=topic)
    assert rows(restarted, first, first) == []  # as Spark tells it where the checkpoint ends
    second = latest(restarted)
    assert rows(restarted, first, second) == [(0, 2)]


def test_a_restarted_query_repeats_its_last_micro_batch_and_goes_on(
    unlimited: Make, topic: str, send: Callable[..., None]
) -> None:
    send(topic, 2)
    planned = latest(unlimited(subscribe=topic, startingOffsets="earliest"))
    send(topic, 3)
    restarted = unlimited(subscribe=topic, startingOffsets="earliest")
    assert restarted.partitions(planned, planned) == []
    assert rows(restarted, restarted.initialOffset(), planned) == [(0, 0), (0, 1)]
    assert rows(restarted, planned, latest(restarted)) == [(0, 2), (0, 3), (0, 4)]


def test_what_is_processed_is_committed_to_the_group(
    unlimited: Make, topic: str, send: Callable[..., None], admin: fairlead_kafka.Admin
) -> None:
    send(topic, 2)
    reader = unlimited(
        subscribe=topic, startingOffsets="earliest", **{"kafka.group.id": topic, "commitOffsets": "true"}
    )
    first = latest(reader)
    rows(reader, reader.initialOffset(), first)
    latest(reader)
    committed = admin.list_group_offsets([topic])[topic]
    assert {one.partition: told.offset for one, told in committed.items()} == {0: 2, 1: 0}


def test_a_log_that_was_cut_is_noticed_before_a_micro_batch_is_planned(
    unlimited: Make, topic: str, send: Callable[..., None], admin: fairlead_kafka.Admin
) -> None:
    send(topic, 5)
    first = latest(unlimited(subscribe=topic, startingOffsets="earliest"))
    admin.delete_topics([topic])
    admin.create_topics([fairlead_kafka.NewTopic(topic, partitions=2)])
    restarted = unlimited(subscribe=topic, startingOffsets="earliest")
    restarted.partitions(first, first)
    with pytest.raises(DataLoss, match="offset 5 was next"):
        restarted.latestOffset()
