"""What the process does around our threads: Ctrl-C, fork, an exit without close, and opening and
closing again and again."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

import fairlead_kafka
from tests.support.command_line import without_slow_starts
from tests.support.waiting import until

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs POSIX signals and fork")
_HEAD = """
import asyncio, os, signal, sys
import fairlead_kafka
import pyarrow as pa
NOBODY = {"bootstrap.servers": "127.0.0.1:1", "reconnect.backoff.ms": 1000}
TABLE = pa.table({"value": [b"x" * 100] * 100})
PARTITION = fairlead_kafka.TopicPartition("t", 0)
def ready():
    print("ready", flush=True)
"""
_LEAVING = """
import fairlead_kafka.client.producer_core as core
core.EXIT_S = 0.2  # nobody takes the records, however long they get
"""
_BLOCKED = {
    "send": "p = fairlead_kafka.Producer({**NOBODY, 'buffer.memory': 1000})\np.send('t', b'x' * "
    "800)\nready()\np.send('t', b'x' * 800)",
    # The first table loads what tables need; Ctrl-C in the middle of that leaves Python's own file
    # open, which it says.
    "send_table": (
        "p = fairlead_kafka.Producer({**NOBODY, 'buffer.memory': 1000})\np.send_table('t', "
        "TABLE[:1])\nready()\np.send_table('t', TABLE)"
    ),
    "flush": "p = fairlead_kafka.Producer(NOBODY)\np.send('t', b'x')\nready()\np.flush()",
    "result": "p = fairlead_kafka.Producer(NOBODY)\na = p.send('t', b'x')\nready()\na.result()",
    "close": "p = fairlead_kafka.Producer(NOBODY)\np.send('t', b'x')\nready()\np.close()",
    "flush in a with": "with fairlead_kafka.Producer(NOBODY) as p:\n    p.send('t', b'x')\n    ready()\n    "
    "p.flush()",
    "poll": "k = fairlead_kafka.Consumer(NOBODY)\nk.assign([PARTITION])\nready()\nk.poll(100)",
    "poll in a with": "with fairlead_kafka.Consumer(NOBODY) as k:\n    k.assign([PARTITION])\n    ready()\n  "
    "  k.poll_table(100)",
    "iteration": "k = fairlead_kafka.Consumer(NOBODY)\nk.assign([PARTITION])\nready()\nfor r in k: pass",
    "admin": "a = fairlead_kafka.Admin(NOBODY)\nready()\na.list_topics()",
    "async": (
        "async def main():\n    async with fairlead_kafka.AsyncProducer(NOBODY) as p:\n        a = await "
        "p.send('t', b'x')\n"
        "        ready()\n        await a\nasyncio.run(main())"
    ),
}
_LEAVE_S = 50.0
"""Below the time-outs that the waits have (60 s and more), far above what leaving takes."""
_WHOLE_S = 300.0
"""Far above what a process takes from its start to its end."""


def child(code: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-X", "dev", "-W", "error", "-c", _HEAD + code]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("what", _BLOCKED)
def test_ctrl_c_ends_a_wait_and_the_process(what: str) -> None:
    with child(
        _LEAVING + _BLOCKED[what]
    ) as process:  # which closes its pipes, whatever happens: else another test finds them
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=_LEAVE_S)
        finally:
            process.kill()
    assert process.returncode != 0
    assert "KeyboardInterrupt" in said
    assert "Warning" not in said


_UNCLOSED = {
    "nothing": "",
    "a producer with a record": "p = fairlead_kafka.Producer(SERVERS)\np.send('t', b'x')",
    "a producer that is garbage": "p = fairlead_kafka.Producer(SERVERS)\np.send('t', b'x')\ndel p\nimport "
    "gc\ngc.collect()",
    "a consumer": "k = fairlead_kafka.Consumer(SERVERS)\nk.assign([PARTITION])\nk.poll(0.01)",
    "an admin": "a = fairlead_kafka.Admin(SERVERS)\na.list_topics()",
    "clients of a cluster that is gone": "p = fairlead_kafka.Producer(SERVERS)\nk = "
    "fairlead_kafka.Consumer(SERVERS)\nc.close()",
    "everything, all of it garbage": (
        "p = fairlead_kafka.Producer(SERVERS)\nk = fairlead_kafka.Consumer(SERVERS)\ndel p, k, c\nimport "
        "gc\ngc.collect()"
    ),
}


_SAID = {
    "a producer with a record": r"a producer was not closed; 1 record gets 5 s .*\n",
    "a producer that is garbage": r"(a producer was not closed; 1 record gets 5 s .*\n)?",
    "a consumer": r"(topic 't' (does not exist|was created just now).*\n)*",
    "clients of a cluster that is gone": r"(no connection to (broker \d+ at )?127.0.0.1:\d+ .*\n)*",
}
"""What a process may say: nothing about what it did not close, but for a producer's records, which
are delivered."""


@pytest.mark.parametrize("what", _UNCLOSED)
def test_a_process_that_closes_nothing_ends_quietly_and_leaves_nothing(what: str) -> None:
    head = (
        "c = fairlead_kafka.Cluster(brokers=2)\nprint(c._folder)\nSERVERS = {'bootstrap.servers': "
        "c.bootstrap_servers}\n"
    )
    process = child(head + _UNCLOSED[what])
    try:
        told, said = process.communicate(timeout=_WHOLE_S)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0
    said = without_slow_starts(said)
    assert re.fullmatch(f"({_SAID.get(what, '')})?", said), said
    assert not Path(told.strip()).exists()


_FORK = """
def outcome(call):
    try:
        call()
        return "done"
    except fairlead_kafka.UsageError as error:
        return "another process" if "another process" in str(error) else str(error)
with fairlead_kafka.Cluster(brokers=1) as c:
    servers = {"bootstrap.servers": c.bootstrap_servers, "auto.offset.reset": "earliest"}
    producer_servers = {"bootstrap.servers": c.bootstrap_servers}
    with fairlead_kafka.Producer(producer_servers) as p, fairlead_kafka.Consumer(servers) as k, fairlead_kafka.Admin(producer_servers) as a:
        p.send("t", b"0").result(30)
        k.assign([fairlead_kafka.TopicPartition("t", 0)])
        p.send("t", b"1")
        if not (pid := os.fork()):
            signal.alarm(100)
            calls = [lambda: p.send("t", b"x"), p.flush, lambda: k.poll(1), a.list_topics, p.close, k.close, a.close, c.close]
            print([outcome(call) for call in calls], flush=True)
            with fairlead_kafka.Producer(producer_servers) as own:
                print(own.send("t", b"2").result(30).offset > 0, flush=True)
            sys.exit(0)
        print(os.waitpid(pid, 0)[1])
        p.send("t", b"3").result(30)
        found = []
        while len(found) < 4:
            found += k.poll(30)
        print(sorted(record.value for record in found))
"""  # noqa: E501


def test_a_forked_child_is_told_to_make_its_own_and_its_parent_goes_on() -> None:
    process = child(_FORK)
    try:
        told, said = process.communicate(timeout=_WHOLE_S)
    finally:
        process.kill()
        process.wait()
    assert without_slow_starts(said) == ""
    refused, closed = ["another process"] * 4, ["done"] * 4
    assert told.splitlines() == [str(refused + closed), "True", "0", "[b'0', b'1', b'2', b'3']"]


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="counts descriptors in /proc")
def test_opening_and_closing_again_and_again_leaks_neither_threads_nor_sockets_nor_folders() -> None:
    def cycle() -> None:
        with fairlead_kafka.Cluster(brokers=2) as cluster:
            servers = {"bootstrap.servers": cluster.bootstrap_servers}
            with (
                fairlead_kafka.Producer(servers) as producer,
                fairlead_kafka.Consumer(servers) as consumer,
                fairlead_kafka.Admin(servers) as admin,
            ):
                producer.send("t", b"x").result(30)
                consumer.assign([fairlead_kafka.TopicPartition("t", 0)])
                consumer.seek_to_beginning()
                assert len(consumer.poll(30)) == 1
                assert admin.list_topics()
            folders.append(cluster._folder)

    folders: list[Path] = []
    cycle()
    threads, open_files = threading.active_count(), descriptors()
    for _ in range(15):
        cycle()
    # Fewer may be left than there were: what an earlier test forgot is collected.
    until(lambda: threading.active_count() <= threads)
    assert descriptors() <= open_files
    assert not any(folder.exists() for folder in folders)
    assert all(folder.parent == Path(tempfile.gettempdir()) for folder in folders)
