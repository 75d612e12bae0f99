"""What is known before a task writes, and what becomes of transactions that cannot be committed."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import StringType, StructField, StructType

import fairlead_kafka
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError, ConfigError, ItemsFailed, TimedOut, UnsupportedVersion
from fairlead_kafka.client import Admin, ConfigResource
from fairlead_kafka.spark import planners
from fairlead_kafka.spark.exactly_once import patience
from fairlead_kafka.spark.exactly_once.driver import Committer
from fairlead_kafka.spark.exactly_once.errors import CommitUnfinished, NotCommitted
from fairlead_kafka.spark.exactly_once.log import CommitLog
from fairlead_kafka.spark.exactly_once.parts import Decision
from fairlead_kafka.spark.exactly_once.readiness import check_ready
from fairlead_kafka.spark.exactly_once.settings import Guarantee
from fairlead_kafka.spark.exactly_once.writers import ExactlyOnceWriter
from fairlead_kafka.spark.options import parse_write_options
from fairlead_kafka.spark.source import FairleadSource
from tests.support.exactly_once_rig import TASKS, Query

FORGETFUL = Guarantee(log_topic="forgetful")
SCHEMA = StructType([StructField("value", StringType())])
HOUR_MS = 3_600_000


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with fairlead_kafka.Cluster(brokers=1) as cluster:
        with Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin:
            admin.create_topics(
                [fairlead_kafka.NewTopic(FORGETFUL.log_topic, 1), fairlead_kafka.NewTopic("orders", 1)]
            )
        yield cluster.bootstrap_servers


@pytest.fixture
def admin(servers: str) -> Iterator[Admin]:
    with Admin({"bootstrap.servers": servers}) as opened:
        yield opened


_numbers = itertools.count()


@pytest.fixture
def query(servers: str) -> Query:
    return Query(servers, f"ready-{next(_numbers)}")


def refusing(error: Exception) -> Callable[..., Any]:
    def refuse(*_: Any, **__: Any) -> Any:
        raise error

    return refuse


# Before a task writes


def test_the_log_is_made_before_a_task_writes(admin: Admin) -> None:
    check_ready(admin, {}, Guarantee(log_topic="made-early"))
    resource = ConfigResource.topic("made-early")
    assert admin.describe_configs([resource])[resource]["cleanup.policy"].value == "compact"
    check_ready(admin, {}, Guarantee(log_topic="made-early"))


def test_a_log_that_forgets_is_refused_before_a_task_writes(admin: Admin) -> None:
    with pytest.raises(ConfigError, match=r"^commitLogTopic: the topic forgetful has cleanup\.policy=delete"):
        check_ready(admin, {}, FORGETFUL)


def test_a_transaction_that_brokers_do_not_allow_is_told_once_with_both_times(admin: Admin) -> None:
    with pytest.raises(ConfigError) as refused:
        check_ready(admin, {"transaction.timeout.ms": str(HOUR_MS)}, Guarantee())
    said = str(refused.value)
    assert (
        "for 3600000 ms, and the brokers allow 900000 at most (their setting transaction.max.timeout.ms)"
        in said
    )
    assert said.count("3600000") == 1


def test_brokers_that_do_not_tell_their_settings_are_believed(
    admin: Admin, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = admin.describe_configs
    refusal = ItemsFailed("describe_configs", {"1": BrokerError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)})

    def describe(resources: list[ConfigResource]) -> Any:
        return (
            ask(resources)
            if resources == [ConfigResource.topic("__fairlead_commits")]
            else refusing(refusal)()
        )

    monkeypatch.setattr(admin, "describe_configs", describe)
    check_ready(admin, {"transaction.timeout.ms": str(HOUR_MS)}, Guarantee())


def test_a_policy_that_may_not_be_seen_is_told_with_the_right_that_is_missing(
    admin: Admin, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusal = ItemsFailed("describe_configs", {"t": BrokerError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)})
    monkeypatch.setattr(admin, "describe_configs", refusing(refusal))
    with pytest.raises(BrokerError, match="allow Describe and DescribeConfigs on it"):
        check_ready(admin, {}, Guarantee())


@pytest.mark.parametrize(("app_id", "refused"), [("daily", True), (None, False)])
def test_rights_to_transactions_are_asked_of_a_name_that_is_known(
    admin: Admin, monkeypatch: pytest.MonkeyPatch, app_id: str | None, refused: bool
) -> None:
    refusal = ItemsFailed(
        "describe_transactions", {"x": BrokerError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)}
    )
    monkeypatch.setattr(admin, "describe_transactions", refusing(refusal))
    if refused:
        with pytest.raises(
            BrokerError, match="need Write and Describe on transactional ids that begin with fairlead-daily-;"
        ):
            check_ready(admin, {}, Guarantee(app_id=app_id))
    else:
        check_ready(admin, {}, Guarantee(app_id=app_id))


def test_brokers_that_cannot_tell_of_transactions_are_refused(
    admin: Admin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admin, "describe_transactions", refusing(UnsupportedVersion("DescribeTransactions")))
    with pytest.raises(ConfigError, match=r"since 3\.0.*deliveryGuarantee=at-least-once"):
        check_ready(admin, {}, Guarantee())


def source(servers: str, **options: str) -> FairleadSource:
    return FairleadSource({"kafka.bootstrap.servers": servers, "topic": "orders", **options})


ONCE = {"deliveryguarantee": "exactly-once"}


def test_a_batch_write_is_refused_when_its_writer_is_made(servers: str) -> None:
    with pytest.raises(ConfigError, match=r"cleanup\.policy=delete"):
        source(servers, **ONCE, commitlogtopic="forgetful").writer(SCHEMA, False)


def test_a_stream_is_refused_where_it_is_planned_and_never_where_it_is_aborted(
    servers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = source(servers, **ONCE, commitlogtopic="forgetful")
    refused.streamWriter(SCHEMA, False)  # as in the process that is to commit or to abort
    monkeypatch.setitem(planners.sys.modules, planners.PLANS_WRITE, planners)
    with pytest.raises(ConfigError, match=r"cleanup\.policy=delete"):
        refused.streamWriter(SCHEMA, False)


def test_the_module_in_which_spark_plans_a_write_is_there() -> None:
    assert find_spec(planners.PLANS_WRITE) is not None
    assert find_spec(planners.PUSHES_FILTERS) is not None


@pytest.mark.parametrize("guarantee", [{}, ONCE])
@pytest.mark.parametrize(
    ("topic", "said"),
    [
        ("ordres", ["there is no topic ordres yet; did you mean orders?"]),
        ("xyzzy", ["there is no topic xyzzy yet;"]),
        ("orders", []),
    ],
)
def test_a_topic_that_is_not_there_is_a_warning(
    servers: str, caplog: pytest.LogCaptureFixture, guarantee: dict[str, str], topic: str, said: list[str]
) -> None:
    with caplog.at_level(logging.WARNING, "fairlead_kafka.spark"):
        source(servers, **guarantee, topic=topic).writer(SCHEMA, False)
    assert [text in caplog.text for text in said or ["there is no topic"]] == [bool(said)]


def test_a_write_that_promises_less_needs_no_way_from_the_driver_to_the_brokers() -> None:
    source("127.0.0.1:1").writer(SCHEMA, False)


# When it cannot be committed


def test_a_commit_that_the_log_refuses_leaves_nothing_open(query: Query) -> None:
    parts = query.tasks(0)
    with pytest.raises(ConfigError, match=r"cleanup\.policy=delete"):
        Committer(query.client, FORGETFUL, query.name).commit(0, parts)
    assert query.open_transactions() == []
    query.commit(1)
    assert query.visible() == query.all_rows(1)


def test_a_decision_that_is_refused_was_never_made_and_leaves_nothing_open(
    query: Query, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = query.tasks(0)
    refusal = BrokerError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    with monkeypatch.context() as patched:
        patched.setattr(CommitLog, "write", refusing(refusal))
        with pytest.raises(BrokerError) as raised:
            query.driver().commit(0, parts)
    assert raised.value is refusal
    assert query.open_transactions() == []


@pytest.fixture
def hours(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock of a driver that goes on with a decision is an hour ahead each time."""
    now_s = itertools.count(step=3600)
    clock = SimpleNamespace(monotonic=lambda: next(now_s), sleep=lambda _s: None)
    monkeypatch.setattr(patience, "time", clock)


def impatient(call: Callable[..., Any], times: int) -> Callable[..., Any]:
    """The call, which waits for no answer the first times."""
    calls = itertools.count()

    def answer(*given: Any, **named: Any) -> Any:
        return call(*given, **named, **({"timeout_s": 0} if next(calls) < times else {}))

    return answer


@pytest.mark.usefixtures("hours")
def test_a_decision_that_may_count_is_not_undone(query: Query, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = query.tasks(0)
    monkeypatch.setattr(fairlead_kafka.Producer, "commit_transaction", refusing(TimedOut("no answer")))
    with pytest.raises(CommitUnfinished, match="whether it is decided to commit it is not known"):
        query.driver().commit(0, parts)
    assert len(query.open_transactions()) == TASKS


@pytest.mark.parametrize("remembers", [True, False])
def test_a_driver_goes_on_with_what_is_decided_until_it_is_done(
    query: Query, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, remembers: bool
) -> None:
    monkeypatch.setattr(patience, "PAUSE_S", 0.0)
    parts = query.tasks(0)
    for owner, name in ((fairlead_kafka.Producer, "commit_transaction"), (Admin, "end_transactions")):
        monkeypatch.setattr(owner, name, impatient(getattr(owner, name), times=2))
    assert query.driver(remembers=remembers).commit(0, parts)
    assert "the decision about batch 0" in caplog.text
    assert "committing batch 0" in caplog.text
    assert query.open_transactions() == []
    assert query.visible() == query.all_rows(0)


@pytest.mark.usefixtures("hours")
@pytest.mark.parametrize(
    ("app_id", "remembers", "said"),
    [
        (None, True, "Start the query again: that finishes it"),
        ("daily", True, "Write the same txnAppId and txnVersion again: that finishes it"),
        (None, False, r"when kafka\.transaction\.timeout\.ms \(900000 ms\) is over, is never"),
    ],
)
def test_a_decision_that_cannot_be_carried_out_is_told_and_finished_by_the_next_driver(
    query: Query, monkeypatch: pytest.MonkeyPatch, app_id: str | None, remembers: bool, said: str
) -> None:
    parts, guarantee = query.tasks(0), Guarantee(app_id=app_id)
    end, ended = Admin.end_transactions, []

    def end_one(*given: Any, **named: Any) -> Any:
        if ended:
            raise TimedOut("no answer")
        ended.append(1)
        return end(*given, **named)

    driver = Committer(query.client, guarantee, query.name, at_once=1, remembers=remembers)
    with monkeypatch.context() as patched:
        patched.setattr(Admin, "end_transactions", end_one)
        with pytest.raises(CommitUnfinished, match=f"not all of its 3 transactions are .*{said}"):
            driver.commit(0, parts)
    driver.abort(parts)  # which Spark calls then
    assert len(query.open_transactions()) == TASKS - 1
    assert query.commit(0) is False
    assert query.visible() == query.all_rows(0)


def test_a_write_that_nobody_comes_back_to_is_committed_though_the_log_cannot_forget_it(
    query: Query, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    parts, write = query.tasks(0), CommitLog.write

    def write_decisions(log: CommitLog, decision: Decision | None) -> None:
        if decision is None:
            raise TimedOut("no answer")
        write(log, decision)

    monkeypatch.setattr(CommitLog, "write", write_decisions)
    assert query.driver(remembers=False).commit(0, parts)
    assert "is committed, and the log could not forget it: no answer" in caplog.text
    assert query.visible() == query.all_rows(0)


def test_transactions_that_can_neither_be_committed_nor_aborted_are_told_of(
    query: Query, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = query.tasks(0)
    with monkeypatch.context() as patched:
        patched.setattr(Admin, "end_transactions", refusing(TimedOut("no answer")))
        with pytest.raises(NotCommitted) as raised:
            Committer(query.client, FORGETFUL, query.name).commit(0, parts)
        with pytest.raises(NotCommitted, match="3 transactions of it stay open"):
            query.driver().abort(parts)
    said = str(raised.value)
    assert said.startswith(
        f"batch 0 of {query.name} is not committed: commitLogTopic: the topic forgetful has "
        "cleanup.policy=delete"
    )
    assert "3 transactions of it stay open until kafka.transaction.timeout.ms (900000 ms) is over" in said
    assert "readers of committed data see nothing" in said
    assert "Admin.list_transactions(['Ongoing'])" in said
    query.driver().abort(parts)
    assert query.open_transactions() == []


@pytest.mark.parametrize("log_topic", ["forgetful", "not-there"])
def test_a_batch_is_aborted_whatever_is_wrong_with_the_log(query: Query, log_topic: str) -> None:
    parts = query.tasks(0)
    Committer(query.client, Guarantee(log_topic=log_topic), query.name).abort(parts)
    assert query.open_transactions() == []


def test_a_log_that_cannot_be_read_keeps_a_batch_from_being_aborted_and_that_is_told(
    query: Query, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = query.tasks(0)
    monkeypatch.setattr(CommitLog, "take_over", refusing(BrokerError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)))
    with pytest.raises(
        NotCommitted, match=r"cannot be read, so nothing may be aborted: 3 transactions of it stay open"
    ):
        query.driver().abort(parts)
    assert len(query.open_transactions()) == TASKS


def test_a_driver_that_was_replaced_does_not_shut_its_successor_out_by_aborting(
    query: Query, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = query.tasks(0)
    with pytest.raises(ConfigError):
        Committer(query.client, FORGETFUL, query.name).commit(0, parts)  # which aborts them
    monkeypatch.setattr(CommitLog, "take_over", refusing(AssertionError("it took over")))
    query.driver().abort(parts)


def test_of_a_write_that_failed_also_what_no_task_has_handed_over_is_aborted(query: Query) -> None:
    parts = query.tasks(0)
    query.driver().abort(parts[:1])
    assert len(query.open_transactions()) == TASKS - 1
    query.driver().abort([], everything=True)
    assert query.open_transactions() == []


def test_an_abort_that_fails_is_logged_with_what_it_means(
    query: Query, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {
        "kafka.bootstrap.servers": query.client["bootstrap.servers"],
        **ONCE,
        "topic": query.name,
        "txnappid": "daily",
        "txnversion": "0",
    }
    parsed = parse_write_options(options)
    assert parsed.exactly_once is not None
    writer = ExactlyOnceWriter(parsed, parsed.exactly_once)
    writer.write(iter([pa.record_batch({"value": ["a"]})]))
    monkeypatch.setattr(Admin, "end_transactions", refusing(TimedOut("no answer")))
    writer.abort([None])
    assert f"batch 0 of daily-topic:{query.name} failed, and could not be aborted now" in caplog.text
    assert "readers of committed data see nothing" in caplog.text
