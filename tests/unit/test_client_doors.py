"""What every client does at its door: closed ones say so in one sentence, dropped ones end,
time-outs are not negative."""

from __future__ import annotations

import asyncio
import gc
import inspect
import logging
import os
import threading
import time
from collections.abc import Callable
from math import inf
from typing import Any

import pytest

import fairlead_kafka
from fairlead_kafka import InvalidRecord, NewTopic, TopicPartition, UsageError
from fairlead_kafka.base import checked
from fairlead_kafka.core.group_offsets import OffsetAndMetadata
from tests.support.waiting import PATIENCE_S

NOBODY = {"bootstrap.servers": "127.0.0.1:1"}
T0 = TopicPartition("t", 0)
MAKERS: dict[str, Callable[[], Any]] = {
    "producer": lambda: fairlead_kafka.Producer(NOBODY),
    "async producer": lambda: fairlead_kafka.AsyncProducer(NOBODY),
    "consumer": lambda: fairlead_kafka.Consumer(NOBODY),
    "consumer of a group": lambda: fairlead_kafka.Consumer({**NOBODY, "group.id": "g"}),
    "async consumer": lambda: fairlead_kafka.AsyncConsumer({**NOBODY, "group.id": "g"}),
    "admin client": lambda: fairlead_kafka.Admin(NOBODY),
    "async admin client": lambda: fairlead_kafka.AsyncAdmin(NOBODY),
}
ARGUMENTS: dict[str, Any] = {
    "partitions": [T0],
    "topics": ["t"], "names": ["t"], "topic": "t", "partition": T0, "offset": 1, "start": 0, "end": 1,
    "times_ms": {T0: 1},
    "targets": {T0: 1}, "before": {T0: 1}, "changes": {}, "resources": [], "group_ids": ["g"],
    "group_id": "g", "offsets": {T0: 1},
    "transactional_ids": ["x"], "transactions": [], "commit": True, "group": "g", "value": b"",
    "bindings": [], "filters": [], "alterations": [],
}  # fmt: skip
STILL_TOLD = {"close", "metrics", "assignment", "paused", "transaction", "send_table"}
"""These say what they know, or do nothing, or wait for what comes next."""


def run(made: Any) -> Any:
    if inspect.isgenerator(made):
        return next(made)
    if inspect.isasyncgen(made):
        return asyncio.run(anext(made))  # type: ignore[arg-type]
    return asyncio.run(made) if inspect.iscoroutine(made) else made


def calls() -> list[tuple[str, str]]:
    found = []
    for kind, make in MAKERS.items():
        api = {
            "producer": fairlead_kafka.Producer,
            "consumer": fairlead_kafka.Consumer,
            "client": fairlead_kafka.Admin,
        }
        methods = vars(api[kind.removesuffix(" of a group").split()[-1]])
        found += [
            (kind, name)
            for name, each in methods.items()
            if inspect.isfunction(each) and name[0] != "_" and name not in STILL_TOLD
        ]
        assert make
    return [*found, *((kind, "__aenter__" if kind.startswith("async") else "__enter__") for kind in MAKERS)]


@pytest.mark.parametrize(("kind", "name"), calls())
def test_a_closed_client_says_so_in_one_sentence(kind: str, name: str) -> None:
    client = MAKERS[kind]()
    run(client.close())
    method = getattr(client, name)
    needed = [
        each
        for each, about in inspect.signature(method).parameters.items()
        if about.default is inspect.Parameter.empty
    ]
    given = {each: [NewTopic("t")] if name == "create_topics" else ARGUMENTS[each] for each in needed}
    client_name = kind.removeprefix("async ").removesuffix(" of a group")
    with pytest.raises(UsageError) as told:
        run(method(**given))
    assert str(told.value) == f"this {client_name} is closed; make a new one"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_in_a_forked_process_every_client_says_whose_it_is() -> None:
    clients = {kind: make() for kind, make in MAKERS.items()}
    reader, writer = os.pipe()
    if not (child := os.fork()):
        try:
            os.write(writer, "\n".join(forked_calls(clients)).encode() or b"all")
        finally:
            os._exit(0)
    os.close(writer)
    with open(reader) as lines:
        assert lines.read() == "all"
    os.waitpid(child, 0)
    for client in clients.values():
        run(client.close())


def forked_calls(clients: dict[str, Any]) -> list[str]:
    """Calls that do not say that their client is another process's."""
    wrong = []
    for kind, name in calls():
        method = getattr(clients[kind], name)
        needed = [
            each
            for each, about in inspect.signature(method).parameters.items()
            if about.default is inspect.Parameter.empty
        ]
        given = {each: [NewTopic("t")] if name == "create_topics" else ARGUMENTS[each] for each in needed}
        client_name = kind.removeprefix("async ").removesuffix(" of a group")
        try:
            run(method(**given))
            wrong.append(f"{kind}.{name}: nothing")
        except UsageError as error:
            if f"this {client_name} belongs to another process" not in str(error):
                wrong.append(f"{kind}.{name}: {error}")
        except BaseException as error:
            wrong.append(f"{kind}.{name}: {error!r}")
    return wrong


def test_a_closed_cluster_says_so_too() -> None:
    with fairlead_kafka.Cluster(brokers=1) as cluster:
        broker = cluster.broker(0)
        for method in ("slow", "cut"):
            with pytest.raises(UsageError, match=rf"^{method}: \w+ must be "):
                getattr(broker, method)("5")
        with pytest.raises(fairlead_kafka.ConfigError, match="times must be 0 to 86400000 ms"):
            broker.slow(latency_ms=inf)
    for again in (
        broker.start,
        cluster.restore,
        cluster.__enter__,
        lambda: cluster.create_topic("t"),
        lambda: cluster.delete_topic("t"),
    ):
        with pytest.raises(UsageError, match=r"^this cluster is closed; make a new one$"):
            again()


@pytest.mark.parametrize("kind", MAKERS)
def test_the_thread_of_a_client_that_is_dropped_ends(kind: str) -> None:
    before = set(threading.enumerate())
    client = MAKERS[kind]()
    if kind == "consumer of a group":
        client.subscribe(["t"])
    own = set(threading.enumerate()) - before
    assert own
    del client
    gc.collect()
    deadline = time.monotonic() + PATIENCE_S
    while any(thread.is_alive() for thread in own) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not any(thread.is_alive() for thread in own)


def test_a_consumer_that_is_dropped_leaves_its_group_and_commits_nothing() -> None:
    with (
        fairlead_kafka.Cluster(brokers=1) as cluster,
        fairlead_kafka.Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin,
    ):
        cluster.create_topic("t")
        config = {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": "g",
            "auto.offset.reset": "earliest",
        }
        with fairlead_kafka.Producer({"bootstrap.servers": cluster.bootstrap_servers}) as producer:
            producer.send("t", b"x")
        consumer = fairlead_kafka.Consumer(config)
        consumer.subscribe(["t"])
        deadline = time.monotonic() + PATIENCE_S
        while not consumer.poll(0.1) and time.monotonic() < deadline:
            pass
        assert len(admin.describe_groups(["g"])["g"].members) == 1
        del consumer
        gc.collect()
        while admin.describe_groups(["g"])["g"].members and time.monotonic() < deadline:
            time.sleep(0.01)
        assert admin.describe_groups(["g"])["g"].members == ()
        assert admin.list_group_offsets(["g"]) == {"g": {}}


@pytest.mark.parametrize(
    "api", ["Producer", "AsyncProducer", "Consumer", "AsyncConsumer", "Admin", "AsyncAdmin"]
)
def test_no_time_out_is_negative(api: str) -> None:
    timed = [
        (name, method)
        for name, method in vars(getattr(fairlead_kafka, api)).items()
        if inspect.isfunction(method) and "timeout_s" in inspect.signature(method).parameters
    ]
    assert timed
    for name, method in timed:
        for wrong in (-1, -0.001, float("nan")):
            with pytest.raises(
                UsageError, match=rf"^{name}: timeout_s must be a number of 0 or more( or None)?, not "
            ):
                run(method(None, timeout_s=wrong))


def test_results_take_no_wrong_time_outs_and_a_time_out_may_have_no_end() -> None:
    with (
        fairlead_kafka.Cluster(brokers=1) as cluster,
        fairlead_kafka.Producer({"bootstrap.servers": cluster.bootstrap_servers}) as producer,
    ):
        ack = producer.send("t", b"x")
        for wrong in ("5", -1):
            with pytest.raises(UsageError, match="result: timeout_s must be a number"):
                ack.result(wrong)  # type: ignore[arg-type]
        assert ack.result(inf).offset == 0
        producer.flush(inf)
        assert len(producer.partitions_for("t", inf)) == 1
        producer.close(inf)


@pytest.mark.parametrize(
    ("given", "error", "says"),
    [
        (
            (("t", b"k", b"v"), {}),
            UsageError,
            r"send: only topic and value go without their names; write send\(topic, value, key=",
        ),
        ((("t",), {"on_delivery": 5}), InvalidRecord, "on_delivery must be callable .*, not 5"),
        (
            (("t",), {"headers": 5}),
            InvalidRecord,
            "headers must be pairs of a text and bytes or None, or a mapping, not 5",
        ),
        ((("t",), {"headers": {"\ud800": b""}}), InvalidRecord, "header's name '.*' is not valid text"),
        ((("t",), {"kye": b""}), TypeError, r"^Producer.send\(\) got an unexpected keyword argument 'kye'"),
    ],
)
def test_a_wrong_send_says_how_it_is_written(
    given: tuple[Any, dict[str, Any]], error: type[Exception], says: str
) -> None:
    producer = fairlead_kafka.Producer(NOBODY)
    with pytest.raises(error, match=says):
        producer.send(*given[0], **given[1])
    assert producer.close(0) == {}


def test_a_wrong_partition_is_told_at_the_door_and_the_consumer_goes_on() -> None:
    with fairlead_kafka.Consumer({**NOBODY, "group.id": "g"}) as consumer:
        for wrong, says in [
            (
                TopicPartition("t", "0"),
                r"partitions\[0\].partition must be a whole number, not '0'; write \[TopicPartition\(\"t\", "
                r"0\)\]",
            ),  # type: ignore[arg-type]
            (("t", -1), r"partitions\[0\].partition must be a whole number from 0 to 2147483647, not -1"),
            ((5, 0), r"partitions\[0\].topic must be a text, not 5"),
            (("t",), r"partitions\[0\] must be TopicPartition, not \('t',\)"),
            (
                ("x" * 40_000, 0),
                r"partitions\[0\].topic is 40000 bytes of UTF-8; Kafka carries at most 32767",
            ),
        ]:
            with pytest.raises(UsageError, match=rf"^assign: {says}"):
                consumer.assign([wrong])  # type: ignore[list-item]
        consumer.assign([("t", 0)])  # type: ignore[list-item]
        assert consumer.poll(0) == []
        for offsets, says in [
            ({("x", "0"): 5}, r"offsets: key \('x', '0'\).partition must be a whole number, not '0'"),
            (
                {T0: "5"},
                r"offsets\[.*\] must be a whole number from 0 to 9223372036854775807 or OffsetAndMetadata, "
                r"not '5'",
            ),
            ({T0: OffsetAndMetadata(5, 7)}, r"offsets\[.*\].metadata must be a text, not 7"),
            # type: ignore[arg-type]
            ({T0: OffsetAndMetadata(-5)}, r"offsets\[t-0\].offset must be a whole number from 0"),
        ]:
            with pytest.raises(UsageError, match=f"^commit: {says}"):
                consumer.commit(offsets)  # type: ignore[arg-type]


def test_an_argument_that_a_script_cannot_be_made_of_fails_its_call_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.CRITICAL)
    with fairlead_kafka.Admin({**NOBODY, "default.api.timeout.ms": 100, "request.timeout.ms": 100}) as admin:

        def broken(_metadata: Any) -> Any:
            raise ZeroDivisionError("a defect")

        for _ in range(2):
            with pytest.raises(ZeroDivisionError):
                fairlead_kafka.client.hosting.run_blocking(
                    admin._calls.performing.perform("", (), broken, 0.1)
                )


def test_texts_that_kafka_carries_and_paths_that_it_does_not_see() -> None:
    assert checked._accepts(str)("ü" * 16_000)
    assert not checked._accepts(str)("ü" * 17_000)
    assert not checked._accepts(str)("\ud800")
    kind = checked._resolved(inspect.unwrap(fairlead_kafka.Cluster.__init__), "data_dir")  # type: ignore[arg-type]
    assert checked._accepts(kind)("/tmp/\udcff")
