"""Which metrics a broker asks of which client, how often, and what it keeps of them (KIP-714)."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

import pytest

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.broker import telemetry
from fairlead_kafka.broker.controller.configs import client_metrics_settings
from fairlead_kafka.broker.telemetry import ClientTelemetry, Pushed, TelemetryClient, Wanted
from fairlead_kafka.records import Compression, compress

ONE, TWO, THREE = (UUID(int=number << 64) for number in (1, 2, 3))
JAVA = TelemetryClient("billing-1", "apache-kafka-java", "4.3.1", "10.0.0.7", "40001")
NAMELESS = TelemetryClient(None, None, None, "10.0.0.8", "40002")


def wanted(client: TelemetryClient, instance_id: UUID = ONE, **subscriptions: Mapping[str, str]) -> Wanted:
    settings = {name: client_metrics_settings(configs) for name, configs in subscriptions.items()}
    return ClientTelemetry().wanted(settings, instance_id, client)


def push(table: ClientTelemetry, want: Wanted, now_ms: int, data: bytes = b"", **more: object) -> int:
    """The error code of a push of ONE; 0: none."""
    given = {"instance_id": ONE, "compression": Compression.none, "terminating": False} | more
    one = Pushed(given["instance_id"], JAVA, now_ms, given["compression"], data)  # type: ignore[arg-type]
    number = int(str(more.get("subscription_id", want.subscription_id)))
    try:
        table.push(one, number, want, bool(given["terminating"]))
    except BrokerError as error:
        table.check()
        return error.code
    table.check()
    return ErrorCode.NONE


def asked(table: ClientTelemetry, want: Wanted, now_ms: int) -> int:
    try:
        table.subscribe(ONE, JAVA, want, now_ms)
    except BrokerError as error:
        return error.code
    return ErrorCode.NONE


def test_nothing_is_wanted_where_no_subscription_matches() -> None:
    want = wanted(JAVA, python={"metrics": "*", "match": "client_software_name=.*python.*"})
    assert (want.metrics, want.interval_ms) == ((), 300_000)


def test_subscriptions_that_match_are_made_one() -> None:
    want = wanted(
        JAVA,
        a={"metrics": "org.apache.kafka.producer.,org.apache.kafka.consumer.", "interval.ms": "60000"},
        b={"metrics": "org.apache.kafka.producer.", "interval.ms": "5000", "match": "client_id=billing-.*"},
        c={"metrics": "never.", "interval.ms": "100", "match": "client_id=billing"},
    )
    assert want.metrics == ("org.apache.kafka.consumer.", "org.apache.kafka.producer.")
    assert want.interval_ms == 5_000


def test_a_star_stands_for_all() -> None:
    assert wanted(JAVA, a={"metrics": "x."}, b={"metrics": "*"}).metrics == ("*",)


@pytest.mark.parametrize(
    ("match", "matches"),
    [
        ("client_software_name=apache-.*,client_software_version=4\\..*", True),
        ("client_software_name=apache-.*,client_software_version=3\\..*", False),
        ("client_source_address=10\\.0\\.0\\.7,client_source_port=40001", True),
        (f"client_instance_id={ONE}", True),
        (f"client_instance_id={TWO}", False),
    ],
)
def test_every_pattern_must_take_its_part_whole(match: str, matches: bool) -> None:
    assert bool(wanted(JAVA, one={"metrics": "*", "match": match}).metrics) is matches


def test_what_a_client_did_not_say_matches_no_pattern() -> None:
    assert wanted(NAMELESS, one={"metrics": "*", "match": "client_software_name=.*"}).metrics == ()
    assert wanted(NAMELESS, one={"metrics": "*"}).metrics == ("*",)


def test_the_id_is_another_for_another_client_interval_or_set_of_metrics() -> None:
    first = wanted(JAVA, one={"metrics": "a."})
    assert first == wanted(JAVA, other={"metrics": "a."})
    others = [
        wanted(JAVA, one={"metrics": "b."}),
        wanted(JAVA, one={"metrics": "a.", "interval.ms": "100"}),
        wanted(JAVA, TWO, one={"metrics": "a."}),
    ]
    assert first.subscription_id not in [other.subscription_id for other in others]
    assert -(1 << 31) <= first.subscription_id < 1 << 31


def test_a_client_asks_then_pushes_at_once_and_then_each_interval() -> None:
    table, want = ClientTelemetry(), wanted(JAVA, one={"metrics": "*", "interval.ms": "1000"})
    assert asked(table, want, 0) == ErrorCode.NONE
    assert asked(table, want, 999) == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert push(table, want, 10, b"1") == ErrorCode.NONE
    assert push(table, want, 1_009, b"2") == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert push(table, want, 1_010, b"3") == ErrorCode.NONE
    assert [each.data for each in table.pushed] == [b"3"]


def test_the_last_push_may_come_early_and_nothing_comes_after_it() -> None:
    table, want = ClientTelemetry(), wanted(JAVA, one={"metrics": "*", "interval.ms": "1000"})
    assert push(table, want, 0, b"1") == ErrorCode.NONE
    assert push(table, want, 1, b"2", terminating=True) == ErrorCode.NONE
    assert push(table, want, 5_000, b"3") == ErrorCode.INVALID_REQUEST
    assert [each.data for each in table.pushed] == [b"2"]


def test_a_push_under_an_old_subscription_is_refused_and_the_client_may_ask_at_once() -> None:
    table, want = ClientTelemetry(), wanted(JAVA, one={"metrics": "*", "interval.ms": "1000"})
    assert asked(table, want, 0) == ErrorCode.NONE
    old = want.subscription_id ^ 1
    assert push(table, want, 1_000, b"1", subscription_id=old) == ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    assert not table.pushed


def test_what_does_not_decompress_or_inflates_beyond_the_bound_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table, want = ClientTelemetry(), wanted(JAVA, one={"metrics": "*", "interval.ms": "100"})
    assert push(table, want, 0, b"no zstd", compression=Compression.zstd) == ErrorCode.INVALID_RECORD
    bomb = compress(Compression.zstd, bytes(telemetry.INFLATED_BYTES_MAX + 1))
    assert push(table, want, 1_000, bomb, compression=Compression.zstd) == ErrorCode.INVALID_RECORD
    assert not table.pushed
    packed = compress(Compression.zstd, b"x" * 1_000)
    assert push(table, want, 2_000, packed, compression=Compression.zstd) == ErrorCode.NONE


def test_nobody_has_the_reserved_ids() -> None:
    want = wanted(JAVA, one={"metrics": "*"})
    for number in (0, 1):
        refused = push(ClientTelemetry(), want, 0, b"1", instance_id=UUID(int=number))
        assert refused == ErrorCode.INVALID_REQUEST


def test_clients_and_the_bytes_of_their_pushes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telemetry, "CLIENTS_MAX", 2)
    monkeypatch.setattr(telemetry, "KEPT_BYTES_MAX", 10)
    table, want = ClientTelemetry(), wanted(JAVA, one={"metrics": "*", "interval.ms": "100"})
    for number, instance_id in enumerate((ONE, TWO)):
        assert push(table, want, number, b"1234567", instance_id=instance_id) == ErrorCode.NONE
    assert [each.instance_id for each in table.pushed] == [TWO], "the oldest push went"
    assert push(table, want, 1_000, b"1", instance_id=ONE) == ErrorCode.NONE
    assert push(table, want, 1_001, b"1", instance_id=THREE) == ErrorCode.NONE
    assert [each.instance_id for each in table.pushed] == [ONE, THREE], "the quietest client went"
