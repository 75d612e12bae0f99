"""Topics that a read names and that are not there: said first, with the one that was most likely
meant."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator

import pytest

import fairlead_kafka
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.spark.options import parse_read_options
from fairlead_kafka.spark.reader import FairleadReader
from fairlead_kafka.spark.schema import source_schema
from fairlead_kafka.spark.stream_reader import FairleadStreamReader


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with fairlead_kafka.Cluster(brokers=1) as cluster:
        with fairlead_kafka.Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin:
            admin.create_topics([fairlead_kafka.NewTopic("events", 3)])
        yield cluster.bootstrap_servers


def failure(servers: str, streaming: bool, **chosen: str) -> str:
    """What Spark prints of a read of what is not there."""
    options = parse_read_options(
        {"kafka.bootstrap.servers": servers, **chosen, "startingOffsets": "earliest"}, streaming
    )
    schema = source_schema(options.layout)
    plan: Callable[[], object] = (
        FairleadStreamReader(options, schema).initialOffset
        if streaming
        else FairleadReader(options, schema).partitions
    )
    with pytest.raises(BrokerError) as raised:
        plan()
    return "".join(traceback.format_exception(raised.value))


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        ({"subscribe": "evnets"}, "topic evnets is not in the cluster; did you mean events?"),
        ({"subscribe": "xyzzy"}, "topic xyzzy is not in the cluster; create it, or check its name"),
        (
            {"assign": '{"events": [0, 7]}'},
            "topic events, partition 7 is not in the cluster (topic events has 3 partitions)",
        ),
    ],
)
def test_a_topic_that_is_not_there_is_told_first(
    servers: str, streaming: bool, chosen: dict[str, str], said: str
) -> None:
    printed = failure(servers, streaming, **chosen)
    before, found, behind = printed.partition(f"BrokerError: UNKNOWN_TOPIC_OR_PARTITION (3): {said}\n")
    assert found
    assert "UNKNOWN_TOPIC_OR_PARTITION" not in before
    assert "direct cause" not in printed
    assert "It came of fairlead_kafka.base.errors.BrokerError: UNKNOWN_TOPIC_OR_PARTITION (3)" in behind
