"""Producers that nobody closes, that are forked away, that wait for themselves: on real threads and
sockets."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

import fairlead_kafka
from tests.support.command_line import without_slow_starts
from tests.support.waiting import PATIENCE_S

UNCLOSED = """
import sys
import fairlead_kafka
import fairlead_kafka.client.producer_core as core
core.EXIT_S = float(sys.argv[2])
producer = fairlead_kafka.Producer({"bootstrap.servers": sys.argv[1], "linger.ms": 60000, "delivery.timeout.ms": 120000})
for number in range(5):
    producer.send("left", b"%d" % number, partition=0)
"""  # noqa: E501


@pytest.fixture(scope="module")
def cluster() -> Iterator[fairlead_kafka.Cluster]:
    with fairlead_kafka.Cluster(brokers=1) as made:
        with fairlead_kafka.Admin({"bootstrap.servers": made.bootstrap_servers}) as admin:
            admin.create_topics(
                [fairlead_kafka.NewTopic("left", partitions=1), fairlead_kafka.NewTopic("t", partitions=1)]
            )
        yield made


def values(servers: str, topic: str) -> list[bytes | None]:
    partition = fairlead_kafka.TopicPartition(topic, 0)
    with fairlead_kafka.Consumer({"bootstrap.servers": servers}) as consumer:
        end = consumer.end_offsets([partition])[partition]
        tables = list(consumer.read_range(partition, 0, end))
    return [value for table in tables for value in table["value"].to_pylist()]


def run_unclosed(servers: str, exit_s: float) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", UNCLOSED, servers, str(exit_s)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_a_program_that_ends_without_closing_delivers_and_is_told(cluster: fairlead_kafka.Cluster) -> None:
    ran = run_unclosed(cluster.bootstrap_servers, 20)
    assert ran.returncode == 0
    assert values(cluster.bootstrap_servers, "left") == [b"0", b"1", b"2", b"3", b"4"]
    assert (
        without_slow_starts(ran.stderr).strip()
        == "a producer was not closed; 5 records get 20 s at exit to be delivered: close it, or use `with`"
    )


def test_a_program_that_ends_without_brokers_ends_all_the_same_and_says_what_was_lost() -> None:
    ran = run_unclosed("127.0.0.1:1", 0.2)
    assert ran.returncode == 0
    assert "5 records get 0.2 s at exit" in ran.stderr
    assert "undelivered records: 5 of topic 'left'" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_a_producer_that_is_dropped_delivers_and_its_thread_ends(cluster: fairlead_kafka.Cluster) -> None:
    before = set(threading.enumerate())
    ack = fairlead_kafka.Producer({"bootstrap.servers": cluster.bootstrap_servers, "linger.ms": 60_000}).send(
        "t", b"dropped"
    )
    gc.collect()
    assert ack.result(timeout_s=PATIENCE_S).offset >= 0
    for thread in set(threading.enumerate()) - before:
        if (
            thread.ident is not None
        ):  # one that is just being started, to end the others, cannot be joined yet
            thread.join(PATIENCE_S)
            assert not thread.is_alive(), thread


def test_waiting_in_a_callback_for_the_same_producer_is_an_error_and_no_deadlock(
    cluster: fairlead_kafka.Cluster,
) -> None:
    raised: list[BaseException] = []
    with fairlead_kafka.Producer({"bootstrap.servers": cluster.bootstrap_servers}) as producer:

        def delivered(_: object, __: object) -> None:
            try:
                producer.send("t", b"second").result()
            except BaseException as error:
                raised.append(error)

        producer.send("t", b"first", on_delivery=delivered)
        producer.flush()
    assert [type(error) for error in raised] == [fairlead_kafka.UsageError]
    assert "would wait for itself" in str(raised[0])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_handles_made_before_a_fork_say_so_in_the_child(cluster: fairlead_kafka.Cluster) -> None:
    with fairlead_kafka.Producer({"bootstrap.servers": cluster.bootstrap_servers}) as producer:
        pending = producer.send("t", b"v")
        done = producer.send("t", b"v")
        done.result()
        child = os.fork()
        if child == 0:
            code = 0
            for wait in (pending.result, done.result, producer.flush):
                try:
                    wait()
                    code = 1
                except fairlead_kafka.UsageError as error:
                    code = code or (0 if "another process" in str(error) else 2)
            os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert pending.result(timeout_s=PATIENCE_S).offset >= 0
