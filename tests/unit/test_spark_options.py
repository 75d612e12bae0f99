"""Options of the Spark source and sink: parsed with the connector's meaning, refused with the
reason."""

from __future__ import annotations

import pickle

import pytest

from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.spark.offsets import EARLIEST, LATEST
from fairlead_kafka.spark.option_checks import WrongOptions
from fairlead_kafka.spark.option_table import OPTIONS, REFUSED
from fairlead_kafka.spark.options import parse_read_options, parse_write_options
from fairlead_kafka.spark.parsed_options import Values
from fairlead_kafka.spark.progress import ProgressListener

SERVERS = {"kafka.bootstrap.servers": "localhost:9092"}


def test_a_read_of_topics_has_the_connectors_defaults() -> None:
    options = parse_read_options({**SERVERS, "subscribe": "a, b"})
    assert options.topics == ["a", "b"]
    assert (
        options.starting,
        options.ending,
        options.fail_on_data_loss,
        "headers" in options.layout.columns,
    ) == (
        EARLIEST,
        LATEST,
        True,
        False,
    )
    assert options.client == {"bootstrap.servers": "localhost:9092"}


def test_spark_lower_cases_names_and_that_is_fine() -> None:
    options = parse_read_options(
        {
            **SERVERS,
            "subscribepattern": "a.*",
            "startingoffsetsbytimestampstrategy": "LATEST",
            "minpartitions": "4",
        }
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
    assert parse_read_options(
        {**SERVERS, "subscribe": "t", "endingOffsetsByTimestamp": '{"t": {"0": 7}}'}
    ).ending_timestamps == {TopicPartition("t", 0): 7}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"subscribe": "t"}, "kafka.bootstrap.servers: required"),
        (SERVERS, "exactly one of assign, subscribe and subscribePattern"),
        ({**SERVERS, "subscribe": "t", "assign": '{"t": [0]}'}, "given: assign, subscribe"),
        ({**SERVERS, "subscribe": " , "}, "subscribe: must name at least one topic"),
        (
            {**SERVERS, "subscribe": "t", "startingOffsets": "latest"},
            "a batch read from latest would read nothing",
        ),
        ({**SERVERS, "subscribe": "t", "endingOffsets": "earliest"}, "a batch read up to earliest"),
        (
            {**SERVERS, "subscribe": "t", "startingOffsets": '{"t": {"0": -1}}'},
            "startingOffsets: latest (-1) is not possible",
        ),
        (
            {**SERVERS, "subscribe": "t", "startingOfsets": "earliest"},
            "unknown option; did you mean startingOffsets?",
        ),
        (
            {**SERVERS, "subscribe": "t", "minPartitions": "0"},
            "minPartitions: must be a whole number, at least 1",
        ),
        ({**SERVERS, "subscribe": "t", "failOnDataLoss": "no"}, "failOnDataLoss: must be true or false"),
        (
            {**SERVERS, "subscribe": "t", "maxOffsetsPerTrigger": "5"},
            "maxOffsetsPerTrigger: an option for a streaming read, not for a batch read",
        ),
        (
            {**SERVERS, "subscribe": "t", "commitOffsets": "true"},
            "commitOffsets: an option for a streaming read, not for a batch read",
        ),
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


WRONG_SETTINGS = {
    "kafka.request.timeout.ms": ("30s", "kafka.request.timeout.ms: expected a whole number (int), got '30s'"),
    "kafka.reqest.timeout.ms": (
        "30",
        "kafka.reqest.timeout.ms: no client has such a setting; did you mean kafka.request.timeout.ms?",
    ),
    "kafka.security.protocol": ("TLS", "kafka.security.protocol: must be one of"),
}
READ = {**SERVERS, "subscribe": "t"}


@pytest.mark.parametrize("name", WRONG_SETTINGS)
@pytest.mark.parametrize("streaming", [False, True])
def test_a_setting_of_the_client_that_does_not_fit_is_an_option_that_does_not(
    name: str, streaming: bool
) -> None:
    text, said = WRONG_SETTINGS[name]
    with pytest.raises(ConfigError) as of_read:
        parse_read_options({**READ, name: text}, streaming=streaming)
    with pytest.raises(ConfigError) as of_write:
        parse_write_options({**SERVERS, name: text}, streaming=streaming)
    assert said in str(of_read.value)
    assert said in str(of_write.value)


def test_everything_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(ConfigError) as raised:
        parse_write_options(
            {**SERVERS, "kafka.linger.ms": "5ms", "kafka.acks": "some", "deliveryguarantee": "twice"}
        )
    for said in (
        "kafka.linger.ms: expected a whole number (long), got '5ms'",
        "kafka.acks: must be one of",
        "deliveryGuarantee: must be",
    ):
        assert said in str(raised.value)


def test_a_setting_is_judged_by_the_client_that_it_is_for() -> None:
    parse_read_options({**READ, "kafka.isolation.level": "read_committed"})
    with pytest.raises(ConfigError, match=r"kafka\.isolation\.level: belongs to consumer, not to producer"):
        parse_write_options({**SERVERS, "kafka.isolation.level": "read_committed"})
    parse_read_options({**SERVERS, "view": "topics", "kafka.default.api.timeout.ms": "5000"})
    with pytest.raises(ConfigError, match=r"kafka\.fetch\.min\.bytes: belongs to consumer .*not to admin"):
        parse_read_options({**SERVERS, "view": "topics", "kafka.fetch.min.bytes": "1"})


def test_a_transaction_timeout_that_is_no_number_is_told_on_the_driver() -> None:
    with pytest.raises(
        ConfigError, match=r"kafka\.transaction\.timeout\.ms: expected a whole number \(int\), got '15m'"
    ):
        parse_write_options(
            {**SERVERS, "deliveryguarantee": "exactly-once", "kafka.transaction.timeout.ms": "15m"},
            streaming=True,
        )


@pytest.mark.parametrize(
    "options", [{"kafka.linger.ms": "9", "kafka.delivery.timeout.ms": "5"}, {"kafka.retries": "0"}]
)
def test_settings_of_the_producer_that_contradict_each_other_are_told_on_the_driver(
    options: dict[str, str],
) -> None:
    with pytest.raises(ConfigError, match=r"kafka\.\* options of the producer"):
        parse_write_options({**SERVERS, "deliveryguarantee": "exactly-once", **options})


def test_a_setting_of_the_client_without_its_prefix_is_named_with_it() -> None:
    for name in ("isolation.level", "group.id", "bootstrap.servers"):
        with pytest.raises(ConfigError, match=f"{name}: unknown option; did you mean kafka.{name}[?]"):
            parse_read_options({**READ, name: "x"})
    for name in ("linger.ms", "isolation.level"):
        with pytest.raises(ConfigError, match=f"{name}: unknown option; did you mean kafka.{name}[?]"):
            parse_write_options({**SERVERS, name: "5"})


@pytest.mark.parametrize(
    ("options", "only"),
    [
        ({"maxTriggerDelay": "1m", "minOffsetsPerTrigger": "few"}, "minOffsetsPerTrigger"),
        ({"commitOffsets": "true", "kafka.group.id": " "}, "kafka.group.id"),
    ],
)
def test_an_option_with_a_wrong_value_is_given_all_the_same(options: dict[str, str], only: str) -> None:
    with pytest.raises(WrongOptions) as raised:
        parse_read_options({**READ, **options}, streaming=True)
    assert [problem.partition(":")[0] for problem in raised.value.problems] == [only]


@pytest.mark.parametrize("name", ["topic", "commitLogTopic"])
def test_a_topic_that_cannot_be_is_told_on_the_driver(name: str) -> None:
    with pytest.raises(ConfigError, match=f"{name}: a topic's name is made of ASCII letters"):
        parse_write_options({**SERVERS, "deliveryguarantee": "exactly-once", name.lower(): "or ders"})


def test_parsed_options_have_a_type_for_every_option_of_the_table() -> None:
    assert list(Values.__annotations__) == [option.name for option in OPTIONS]


def test_options_do_not_show_what_the_user_gave_the_clients() -> None:
    given = {
        **SERVERS,
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.username": "me",
        "kafka.sasl.password": "hidden-1",
        "kafka.ssl.key.password": "hidden-2",
        "valueformat": "avro",
        "valueschema": '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}',
        "schemaregistry.url": "http://me:hidden-3@localhost:1",
    }
    read = parse_read_options({**given, "subscribe": "t"})
    write = parse_write_options({**given, "topic": "t", "deliveryguarantee": "exactly-once"})
    for shown in (read, write, read.layout.value, write.formats.value, ProgressListener(client=read.client)):
        assert "hidden" not in repr(shown)
    assert pickle.loads(pickle.dumps(read)).client["sasl.password"] == "hidden-1"
