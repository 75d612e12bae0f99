"""Options of the Spark source and sink: parsed with the connector's meaning, refused with the reason."""

from __future__ import annotations

import pytest

from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.spark.offsets import EARLIEST, LATEST
from fairlead_kafka.spark.option_table import OPTIONS, REFUSED
from fairlead_kafka.spark.options import parse_read_options, parse_write_options

SERVERS = {"kafka.bootstrap.servers": "localhost:9092"}


def test_a_read_of_topics_has_the_connectors_defaults() -> None:
    options = parse_read_options({**SERVERS, "subscribe": "a, b"})
    assert options.topics == ["a", "b"]
    assert (options.starting, options.ending, options.fail_on_data_loss, "headers" in options.layout.columns) == (
        EARLIEST,
        LATEST,
        True,
        False,
    )
    assert options.client == {"bootstrap.servers": "localhost:9092"}


def test_spark_lower_cases_names_and_that_is_fine() -> None:
    options = parse_read_options(
        {**SERVERS, "subscribepattern": "a.*", "startingoffsetsbytimestampstrategy": "LATEST", "minpartitions": "4"}
    )
    assert (options.pattern, options.no_starting_record, options.min_partitions) == ("a.*", "latest", 4)


def test_kafka_options_go_to_the_client() -> None:
    assert parse_write_options({**SERVERS, "kafka.linger.ms": "9", "topic": "t"}).client["linger.ms"] == "9"


def test_timestamps_go_over_offsets_and_one_for_all_over_one_by_one() -> None:
    options = parse_read_options(
        {
            **SERVERS,
            "subscribe": "t",
            "startingTimestamp": "5",
            "startingOffsetsByTimestamp": '{"t": {"0": 7}}',
            "startingOffsets": "earliest",
        }
    )
    assert options.starting_timestamps == 5
    assert parse_read_options({**SERVERS, "subscribe": "t", "endingOffsetsByTimestamp": '{"t": {"0": 7}}'}).ending_timestamps == {
        TopicPartition("t", 0): 7
    }


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"subscribe": "t"}, "kafka.bootstrap.servers: required"),
        (SERVERS, "exactly one of assign, subscribe and subscribePattern"),
        ({**SERVERS, "subscribe": "t", "assign": '{"t": [0]}'}, "given: assign, subscribe"),
        ({**SERVERS, "subscribe": " , "}, "subscribe: must name at least one topic"),
        ({**SERVERS, "subscribe": "t", "startingOffsets": "latest"}, "a batch read from latest would read nothing"),
        ({**SERVERS, "subscribe": "t", "endingOffsets": "earliest"}, "a batch read up to earliest"),
        ({**SERVERS, "subscribe": "t", "startingOffsets": '{"t": {"0": -1}}'}, "startingOffsets: latest (-1) is not possible"),
        ({**SERVERS, "subscribe": "t", "startingOfsets": "earliest"}, "unknown option; did you mean startingOffsets?"),
        ({**SERVERS, "subscribe": "t", "minPartitions": "0"}, "minPartitions: must be a whole number, at least 1"),
        ({**SERVERS, "subscribe": "t", "failOnDataLoss": "no"}, "failOnDataLoss: must be true or false"),
        (
            {**SERVERS, "subscribe": "t", "maxOffsetsPerTrigger": "5"},
            "maxOffsetsPerTrigger: an option for a streaming read, not for a batch read",
        ),
        ({**SERVERS, "subscribe": "t", "commitOffsets": "true"}, "commitOffsets: an option for a streaming read, not for a batch read"),
        ({**SERVERS, "subscribe": "t", "topic": "u"}, "topic: an option for a write, not for a batch read"),
    ],
)
def test_a_wrong_read_says_what_is_wrong(options: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError) as raised:
        parse_read_options(options)
    assert said in str(raised.value)


def test_a_write_refuses_options_of_a_read() -> None:
    with pytest.raises(ConfigError, match="subscribe: an option for reads, not for a write"):
        parse_write_options({**SERVERS, "subscribe": "t"})


def test_what_spark_adds_by_itself_is_not_unknown() -> None:
    assert parse_write_options({**SERVERS, "path": "t"}).topic is None


def test_no_option_is_both_served_and_refused() -> None:
    assert not {option.name for option in OPTIONS} & set(REFUSED)
