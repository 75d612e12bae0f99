"""Each event of the log's table is logged in its situation, with its fields; what is held back;
what is printed by default."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import AuthenticationFailed, BrokerError, FairleadError, UsageError
from fairlead_kafka.base.units import NS_PER_S
from fairlead_kafka.core import event_log
from fairlead_kafka.core.event_log import (
    BATCH_RETRIED,
    EVENTS,
    ITEMS_MAX,
    LINES_MAX,
    METADATA_FAILED,
    PARTITIONS_LOST,
    VALUE_MAX,
    WINDOW_S,
    Event,
    EventLog,
)
from fairlead_kafka.wire import ApiKey
from tests.support.epoch_rig import HEARTBEAT, Coordinated
from tests.support.fake_broker import Client, FakeBroker, Scene, metadata_message
from tests.support.producer_rig import Rig
from tests.support.transaction_rig import Scene as Transactions
from tests.unit.test_core_login import PASSWORDS, Scripted, secured_broker, secured_scene


def connection_is_lost() -> None:
    broker = FakeBroker()
    scene = Scene(Client(client_id="shop"), broker)
    scene.until_ready()
    scene.host.submit(scene.brokers[0][1], broker.hang_up())
    scene.host.run_until(lambda: scene.network.blocked(0))


def no_broker_is_there() -> None:
    Scene(Client(client_id="shop", bootstrap_servers="nowhere:9092")).host.advance(100)


def connection_is_idle() -> None:
    scene = Scene(Client(client_id="shop", connections_max_idle_ms=10_000), FakeBroker())
    scene.until_ready()
    scene.host.advance(10_001)


def client_logs_in() -> None:
    secured_scene(secured_broker(), client_id="shop").until_ready()


def metadata_has_no_brokers() -> None:
    broker = FakeBroker()
    broker.answers[ApiKey.METADATA] = lambda request: metadata_message({})
    Scene(Client(client_id="shop"), broker).host.advance(1_000)


def broker_asks_for_another_start() -> None:
    broker, refusal = FakeBroker(), metadata_message({})
    refusal.error_code = ErrorCode.REBOOTSTRAP_REQUIRED
    broker.answers[ApiKey.METADATA] = lambda request: refusal
    Scene(Client(client_id="shop"), broker).host.advance(1_000)


def member_is_fenced() -> None:
    rig = Coordinated()
    with rig.member(client_id="shop") as member:
        rig.converge(member, t=[0, 1])
        rig.converge(member, t=[1])
        rig.coordinator.fail(HEARTBEAT, ErrorCode.FENCED_MEMBER_EPOCH)
        rig.polled(member, lambda: "lost" in rig.heard.signs())


def poll_is_late() -> None:
    rig = Coordinated()
    with rig.member(client_id="shop", max_poll_interval_ms=5_000) as member:
        rig.converge(member, t=[0])
        rig.host.advance(5_000)


def coordinator_is_loading() -> None:
    rig = Coordinated()
    with rig.member(client_id="shop", enable_auto_commit=False) as member:
        rig.converge(member, t=[0])
        rig.coordinator.fail(ApiKey.OFFSET_COMMIT, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        member.commit({("t", 0): 1})


def membership_is_refused() -> None:
    rig = Coordinated()
    member = rig.member(client_id="shop", group_instance_id="one")
    rig.coordinator.fail(HEARTBEAT, ErrorCode.FENCED_INSTANCE_ID)
    with pytest.raises(BrokerError):
        rig.polled(member, lambda: False)
    member.close()


def produced(*codes: int, count: int = 10, **configs: object) -> Rig:
    """Send to a partition whose broker answers with these codes first; then its leader moves."""
    rig = Rig(brokers=2)
    rig.cluster.create("t", 2)
    left = iter(codes)
    rig.cluster.on_produce = lambda *_: next(left, None)
    producer = rig.producer(client_id="shop", **configs)
    acks = [producer.send("t", b"%06d" % each, partition=0) for each in range(count)]
    for ack in acks:
        with suppress(FairleadError):
            ack.result()
    return rig


def batch_is_refused_for_now() -> None:
    produced(ErrorCode.CORRUPT_MESSAGE)


def batch_is_too_large() -> None:
    produced(ErrorCode.MESSAGE_TOO_LARGE)


def batch_is_refused() -> None:
    produced(ErrorCode.INVALID_RECORD, count=1)


def leader_moves() -> None:
    rig = Rig(brokers=2)
    rig.cluster.create("t", 2)
    producer = rig.producer(client_id="shop", metadata_max_age_ms=1_000)
    producer.send("t", b"a", partition=0).result()
    rig.cluster.move("t", 0, 1)
    producer.send("t", b"a", partition=0).result()


def transaction_fails() -> None:
    scene = Transactions()
    scene.coordinator.faults[ApiKey.ADD_PARTITIONS_TO_TXN] += [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
    producer = scene.another(client_id="shop")
    producer.init_transactions()
    with pytest.raises(FairleadError), producer.transaction():
        producer.send("t", b"a", partition=0).result()


def producer_is_ended_by(code: int) -> None:
    scene = Transactions()
    scene.coordinator.faults[ApiKey.END_TXN] += [code]
    scene.producer = scene.another(client_id="shop")
    with pytest.raises(BrokerError):
        scene.live(b"a", offset=1)
    scene.producer.close()


def producer_is_fenced() -> None:
    producer_is_ended_by(ErrorCode.PRODUCER_FENCED)


def producer_cannot_go_on() -> None:
    producer_is_ended_by(ErrorCode.INVALID_TXN_STATE)


SITUATIONS: dict[str, tuple[Callable[[], None], str]] = {
    "connection_opened": (connection_is_lost, "node=- address=broker:9092"),
    "logged_in": (client_logs_in, "node=- mechanism=PLAIN"),
    "connection_closed": (
        connection_is_idle,
        'node=0 reason="the connection to broker 0 at broker:9092 was closed (idle)"',
    ),
    "connection_lost": (connection_is_lost, 'node=0 address=broker:9092 error="closed by the peer"'),
    "connection_failed": (
        no_broker_is_there,
        'node=- address=nowhere:9092 error="connection refused" attempt=1',
    ),
    "request_retried": (coordinator_is_loading, 'work="committing offsets of group'),
    "brokers_changed": (connection_is_lost, "cluster=cluster controller=0 nodes=0"),
    "partitions_changed": (batch_is_too_large, "topic=t partitions=2 before=0 error=-"),
    "leader_changed": (leader_moves, "topic=t partition=0 node=1 before=0 epoch="),
    "rebootstrapped": (broker_asks_for_another_start, 'reason="a broker asked for it"'),
    "metadata_failed": (metadata_has_no_brokers, 'error="it named no brokers"'),
    "group_joined": (member_is_fenced, "group=g member="),
    "partitions_assigned": (member_is_fenced, "group=g count=2 partitions=t-0,t-1"),
    "partitions_revoked": (member_is_fenced, "group=g count=1 partitions=t-0"),
    "partitions_lost": (member_is_fenced, "group=g count=1 partitions=t-1"),
    "member_fenced": (member_is_fenced, "error=FENCED_MEMBER_EPOCH"),
    "poll_too_late": (poll_is_late, "limit_ms=5000"),
    "membership_failed": (membership_is_refused, "group.instance.id 'one'"),
    "group_left": (coordinator_is_loading, "group=g member="),
    "batch_retried": (batch_is_refused_for_now, "node=0 topic=t partition=0 records=10 attempt=1 error="),
    "batch_split": (batch_is_too_large, "topic=t partition=0 records=10 parts="),
    "batch_failed": (batch_is_refused, "topic=t partition=0 records=1 error="),
    "producer_id_granted": (batch_is_refused, "transactional_id=- producer_id=1001 epoch=0"),
    "transaction_failed": (transaction_fails, "transactional_id=app error="),
    "producer_fenced": (producer_is_fenced, "transactional_id=app producer_id="),
    "producer_failed": (producer_cannot_go_on, "transactional_id=app error="),
}


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.name)
def test_each_event_is_logged_in_its_situation(event: Event, caplog: pytest.LogCaptureFixture) -> None:
    situation, expected = SITUATIONS[event.name]
    caplog.set_level(logging.DEBUG, logger="fairlead_kafka")
    situation()
    found = [
        record
        for record in caplog.records
        if record.name == event.logger and record.getMessage().startswith(f"{event.name} client_id=shop ")
    ]
    assert found, caplog.text
    assert {record.levelno for record in found} == {event.level}
    lines = [record.getMessage() for record in found]
    assert any(expected in line for line in lines), lines
    assert all("\n" not in line and all(f" {field}=" in line for field in event.fields) for line in lines)


def test_a_password_is_in_no_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="fairlead_kafka")
    client_logs_in()
    scene = secured_scene(secured_broker(), Scripted(AuthenticationFailed("wrong")), client_id="shop")
    scene.host.advance(1_000)
    assert "connection_failed" in caplog.text
    assert not any(password.decode() in caplog.text for password in PASSWORDS)


# The log itself


def test_lines_beyond_the_bound_are_held_back_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="fairlead_kafka")
    now = [5]
    log = EventLog("shop", lambda: now[0])
    for _ in range(LINES_MAX + 7):
        log.log(METADATA_FAILED, "no")
    assert [record.getMessage() for record in caplog.records] == [
        "metadata_failed client_id=shop error=no"
    ] * LINES_MAX
    log.log(PARTITIONS_LOST, "g", 0, ())
    assert "partitions_lost" in caplog.records[-1].getMessage(), "each event has a bound of its own"
    now[0] += WINDOW_S * NS_PER_S
    log.log(METADATA_FAILED, "no")
    assert caplog.records[-1].getMessage() == "metadata_failed client_id=shop error=no held_back=7"
    log.log(METADATA_FAILED, "no")
    assert caplog.records[-1].getMessage() == "metadata_failed client_id=shop error=no"


def test_a_level_that_is_off_counts_nothing(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR, logger="fairlead_kafka")
    log = EventLog("shop", lambda: 0)
    for _ in range(LINES_MAX + 1):
        log.log(METADATA_FAILED, "no")
    caplog.set_level(logging.DEBUG, logger="fairlead_kafka")
    log.log(METADATA_FAILED, "no")
    assert len(caplog.records) == 1


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "-"),
        (7, "7"),
        ("", '""'),
        ("plain", "plain"),
        ("two words", '"two words"'),
        ('a"b', r'"a\"b"'),
        ("a=b", '"a=b"'),
        ("a\nb", r'"a\nb"'),
        (UsageError("no good"), '"no good"'),
        ((), '""'),
        ((1, 2), "1,2"),
        (range(ITEMS_MAX + 5), ",".join(map(str, range(ITEMS_MAX))) + ",+5"),
        ("x" * (VALUE_MAX + 1), "x" * (VALUE_MAX - 1) + "…"),
    ],
)
def test_values_are_one_word_or_quoted(value: object, shown: str) -> None:
    assert event_log.line("e", [("key", value)]) == f"e key={shown}"


def test_a_line_has_a_value_for_each_field(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger=BATCH_RETRIED.logger)
    with pytest.raises(ValueError, match="argument 2 is shorter"):
        EventLog("shop", lambda: 0).log(BATCH_RETRIED, 1)


def test_the_table_names_each_event_once() -> None:
    assert len({event.name for event in EVENTS}) == len(EVENTS) == len(SITUATIONS)
    assert {value for value in vars(event_log).values() if isinstance(value, Event)} == set(EVENTS)


def test_nothing_is_printed_unless_the_application_configures_logging() -> None:
    program = (
        "from fairlead_kafka.core.event_log import EVENTS, EventLog\n"
        "log = EventLog('shop', lambda: 0)\n"
        "for event in EVENTS:\n"
        "    log.log(event, *event.fields)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=Path(__file__).parent
    )
    assert (ran.stdout, ran.stderr) == ("", "")
