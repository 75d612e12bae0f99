"""A process out of descriptors: its disk goes on, its listener refuses, and afterwards all is as
before."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_PROGRAM = """
import errno, os, resource, socket, sys
import fairlead_kafka
from fairlead_kafka.runtime import descriptors

def descriptors_left():
    taken = []
    try:
        while True:
            taken.append(os.dup(0))
    except OSError as error:
        assert error.errno == errno.EMFILE
    for each in taken:
        os.close(each)
    return len(taken)

def connections(address, most):
    opened = []
    try:
        while len(opened) < most:
            opened.append(socket.create_connection(address, timeout=5))
    except OSError:
        pass
    return opened

with fairlead_kafka.Cluster(brokers=1, data_dir=sys.argv[1]) as cluster:
    settings = {"bootstrap.servers": cluster.bootstrap_servers}
    with fairlead_kafka.Admin(settings) as admin:
        admin.create_topics([fairlead_kafka.NewTopic("t", 1, configs={"flush.messages": "1"})])
    with fairlead_kafka.Producer({**settings, "delivery.timeout.ms": 20000, "request.timeout.ms": 10000, "linger.ms": 0}) as producer:
        producer.send("t", b"before").result()
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        host, port = cluster.bootstrap_servers.split(":")
        idle = connections((host, int(port)), 1000)
        assert len(idle) > 50
        fill = []
        while descriptors_left():  # the very last ones, one of which the broker may hold for a moment
            try:
                fill.append(os.dup(0))
            except OSError:
                pass
        producer.send("t", b"with them").result()
        for each in idle:
            each.close()
        for each in fill:
            os.close(each)
        producer.send("t", b"after").result()
    with fairlead_kafka.Consumer({**settings, "group.id": "g", "auto.offset.reset": "earliest"}) as consumer:
        consumer.subscribe(["t"])
        read = []
        while len(read) < 3:
            read += [record.value for record in consumer.poll(1.0)]
        assert read == [b"before", b"with them", b"after"], read
print("all is well")
"""  # noqa: E501


def run(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=300, check=False, cwd=Path(__file__).parents[2]
    )


def test_connections_by_the_hundred_do_not_make_a_disk_look_failed(tmp_path: Path) -> None:
    done = run(_PROGRAM, str(tmp_path))
    assert done.stdout == "all is well\n", done.stderr
    assert "disk" not in done.stderr, done.stderr


_RETRIED = """
import os, resource, sys, threading
from fairlead_kafka.base import limits
from fairlead_kafka.core.effects import FileAppend, FileReplace, FileSync, FileList, FileRead
from fairlead_kafka.core.events import FileDone
from fairlead_kafka.runtime import SelectorHost
from tests.support.hosts import Stage

host = SelectorHost("test")
host.start()
stage = Stage(host)
puppet, handle = stage.puppet()
stage.file_done(puppet, handle, FileAppend(1, sys.argv[1] + "/first", [b"one"]))
resource.setrlimit(resource.RLIMIT_NOFILE, (128, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
taken = []
while True:
    try:
        taken.append(os.dup(0))
    except OSError:
        break
def take_the_reserve():  # files of our own, until nothing is left at all
    host._disk._reserve.close()
    while True:
        try:
            taken.append(os.dup(0))
        except OSError:
            return
host.submit(handle, lambda machine, now_ns: take_the_reserve())
path = sys.argv[1] + "/folder/second"
stage.tell(handle, FileAppend(2, path, [b"two, "]), FileAppend(3, path, [b"three"]), FileSync(4, path), FileRead(5, path, 0, -1))
stage.tell(handle, FileReplace(6, sys.argv[1] + "/third", [b"whole"]), FileAppend(7, sys.argv[1] + "/first", [b", open as it is"]))
stage.until(lambda: any(done.token == 7 for done in puppet.of(FileDone)))
assert not {2, 3, 4, 5, 6} & {done.token for done in puppet.of(FileDone)}, puppet.of(FileDone)
for each in taken:
    os.close(each)
stage.until(lambda: {2, 3, 4, 5, 6} <= {done.token for done in puppet.of(FileDone)})
assert not [done for done in puppet.of(FileDone) if done.error], puppet.of(FileDone)
assert [done.value for done in puppet.of(FileDone) if done.token == 5] == [b"two, three"]
assert [done.token for done in puppet.of(FileDone) if done.token in (2, 3, 5)] == [2, 3, 5]
host.close()
print("all is well")
"""  # noqa: E501


def test_what_cannot_be_opened_now_is_done_later_in_order(tmp_path: Path) -> None:
    done = run(_RETRIED, str(tmp_path))
    assert done.stdout == "all is well\n", done.stderr
