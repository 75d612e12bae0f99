"""What only the selector host has: a thread, real sockets, a process that can fork and end."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from fairlead_kafka.base.errors import UsageError
from fairlead_kafka.core.effects import (
    AwaitSent,
    Close,
    Connect,
    Effect,
    FileAppend,
    FileList,
    FileRead,
    FileReplace,
    FileSync,
    Listen,
    Write,
)
from fairlead_kafka.core.events import (
    Accepted,
    Connected,
    Disconnected,
    Event,
    FileDone,
    Listening,
    Received,
    Sent,
)
from fairlead_kafka.runtime import Completion, SelectorHost, disk, resolver, sockets
from fairlead_kafka.runtime import host as host_module
from tests.support.hosts import Puppet, Stage, echo, lost
from tests.support.waiting import PATIENCE_S, until


@pytest.fixture
def stage() -> Iterator[Stage]:
    host = SelectorHost("test")
    host.start()
    yield Stage(host)
    host.close()


def run(code: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-X", "dev", "-W", "error", "-c", code]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=300, check=False, cwd=Path(__file__).parents[2]
    )


def test_operations_submitted_before_the_start_wait_for_it() -> None:
    host = SelectorHost("test")
    stage = Stage(host)
    puppet, handle = stage.puppet()
    done = threading.Event()
    host.submit(handle, lambda machine, now_ns: done.set())
    assert not puppet.stepped_ns
    host.start()
    assert done.wait(PATIENCE_S)
    with pytest.raises(UsageError, match="started before"):
        host.start()
    host.close()
    with pytest.raises(UsageError, match="closed"):
        host.submit(handle, None)


def test_a_host_that_never_ran_can_be_closed() -> None:
    host = SelectorHost("test")
    host.add(Puppet())
    host.close()


def test_submissions_of_many_threads_all_arrive_in_each_threads_order(stage: Stage) -> None:
    puppet, handle = stage.puppet()
    seen: list[tuple[int, int]] = []

    def submit(thread: int) -> None:
        for number in range(2000):
            stage.host.submit(handle, lambda machine, now_ns, entry=(thread, number): seen.append(entry))

    threads = [threading.Thread(target=submit, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stage.until(lambda: len(seen) == 8000)
    for thread_number in range(4):
        assert [number for thread, number in seen if thread == thread_number] == list(range(2000))
    assert len(puppet.stepped_ns) <= 8001


def test_a_turn_reads_no_more_than_its_share_and_nobody_is_left_out(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_module, "ITERATION_READ_MAX_BYTES", 1)  # so one connection is read in each turn
    server, _handle, port = stage.listen()
    clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(5)]
    size_bytes = 3_000_000
    writers = [threading.Thread(target=each.sendall, args=(b"x" * size_bytes,)) for each in clients]
    for writer in writers:
        writer.start()
    stage.until(lambda: sum(len(event.data) for event in server.of(Received)) == 5 * size_bytes)
    for writer in writers:
        writer.join()
    assert len(server.stepped_ns) >= len(server.of(Received)), "one was read in each turn"
    for each in clients:
        each.close()


def test_sent_comes_once_the_peer_has_taken_what_the_sockets_do_not_hold(stage: Stage) -> None:
    server, handle, port = stage.listen()
    with socket.create_connection(("127.0.0.1", port)) as client:
        stage.until(lambda: server.of(Accepted))
        stage.tell(handle, Write(-1, [b"x" * 10_000_000]), AwaitSent(-1, 10_000_000))
        other, other_handle = stage.puppet()
        stage.connect(other_handle, other, port)
        stage.tell(other_handle, Write(1, [b"meanwhile"]))
        stage.until(lambda: server.bytes_on(-2) == b"meanwhile")
        assert not server.of(Sent)
        left = 10_000_000
        while left:
            left -= len(client.recv(min(left, 1 << 20)))
        stage.until(lambda: server.of(Sent) == [Sent(-1, 10_000_000)])


def test_a_connection_that_is_closed_does_not_wait_for_its_reader_for_ever(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sockets, "DRAIN_NS", 50_000_000)
    server, handle, port = stage.listen()
    with socket.create_connection(("127.0.0.1", port), timeout=20) as client:
        stage.until(lambda: server.of(Accepted))
        link = handle.links[-1]
        stage.tell(handle, Write(-1, [b"x" * 50_000_000]), Close(-1, drain=True))
        until(lambda: link._socket is None)
        received = 0
        with contextlib.suppress(ConnectionError):
            while data := client.recv(1 << 20):
                received += len(data)
        assert received < 50_000_000


def test_a_reset_connection_is_reported(stage: Stage) -> None:
    server, _handle, port = stage.listen()
    client = socket.create_connection(("127.0.0.1", port))
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    client.close()
    stage.until(lambda: lost(server, -1))
    assert server.of(Disconnected) == [Disconnected(-1, "connection reset by peer")]


def test_a_peer_that_closes_its_half_gets_no_answer_but_is_heard(stage: Stage) -> None:
    server, _handle, port = stage.listen()
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(b"last words")
        client.shutdown(socket.SHUT_WR)
        stage.until(lambda: lost(server, -1))
        assert server.bytes_on(-1) == b"last words"
        assert client.recv(1) == b""


def test_bytes_that_nobody_reads_do_not_destroy_a_drained_answer(stage: Stage) -> None:
    def answer(event: Event) -> Sequence[Effect]:
        if isinstance(event, Received):
            return [Write(event.connection, [b"no"]), Close(event.connection, drain=True)]
        return []

    _server, _handle, port = stage.listen(answer)
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(b"a" * 100_000)
        client.shutdown(socket.SHUT_WR)
        assert b"".join(iter(lambda: client.recv(100), b"")) == b"no"


@pytest.mark.parametrize("drain", [False, True])
def test_what_was_written_before_a_close_in_the_same_step_is_sent(stage: Stage, drain: bool) -> None:
    _client, handle, server, _server_handle = stage.pair()
    stage.tell(handle, Write(1, [b"and goodbye"]), Close(1, drain))
    stage.until(lambda: lost(server, -1))
    assert server.bytes_on(-1) == b"and goodbye"


def test_a_closing_host_sends_what_is_being_drained(stage: Stage) -> None:
    other = SelectorHost("other")
    other.start()
    elsewhere = Stage(other)
    server, _server_handle, port = elsewhere.listen()
    client, handle = stage.puppet()
    stage.connect(handle, client, port)
    stage.tell(handle, Write(1, [b"x" * 20_000_000]), Close(1, drain=True))
    stage.host.close(PATIENCE_S)
    elsewhere.until(lambda: lost(server, -1))
    assert len(server.bytes_on(-1)) == 20_000_000
    other.close()


def test_names_are_looked_up_without_stopping_the_loop(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    _server, _handle, port = stage.listen(echo)
    released = threading.Event()
    real = resolver.look_up

    def slow(host: str, port: int, flags: int = 0) -> list[resolver.Address]:
        if host != "slow.example":
            return real(host, port, flags)
        if flags:
            raise OSError("not a number")
        assert released.wait(PATIENCE_S)
        return real("127.0.0.1", port)

    monkeypatch.setattr(resolver, "look_up", slow)
    client, handle = stage.puppet()
    stage.tell(
        handle,
        Connect(1, "slow.example", port),
        Connect(2, "slow.example", port),
        Connect(3, "slow.example", port),
        Close(3),
    )
    stage.connect(handle, client, port, connection=4)
    assert Connected(1) not in client.events
    released.set()
    stage.until(lambda: Connected(1) in client.events and Connected(2) in client.events)
    assert not client.of(Disconnected)


def test_a_name_that_does_not_exist_is_a_failed_connection(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing(host: str, port: int, flags: int = 0) -> list[resolver.Address]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(resolver, "look_up", nothing)
    client, handle = stage.puppet()
    stage.tell(handle, Connect(1, "no.such.name", 9092))
    stage.until(lambda: lost(client, 1))
    assert client.of(Disconnected) == [Disconnected(1, "name not resolved: name or service not known")]


@pytest.mark.parametrize(
    ("host", "port"), [("127.0.0.1", 70_000), ("127.0.0.1", -1), ("a..b", 1), ("a\0b", 1), ("x" * 300, 1)]
)
def test_an_address_that_is_none_is_a_failed_connection(stage: Stage, host: str, port: int) -> None:
    client, handle = stage.puppet()
    stage.tell(handle, Connect(1, host, port), Listen(1, host, port))
    stage.until(lambda: lost(client, 1) and client.of(Listening))
    assert client.of(Listening)[0].error


def test_an_effect_that_is_none_ends_its_machine_alone(stage: Stage) -> None:
    bad, bad_handle = stage.puppet()
    stage.host.submit(bad_handle, ["not an effect"])
    stage.pair()
    assert isinstance(bad_handle.error, TypeError)
    assert bad.events == []


def test_all_addresses_of_a_name_are_tried(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    _server, _handle, port = stage.listen(echo)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # bound and not listening: refuses
        addresses = [(socket.AF_INET, unused.getsockname()), (socket.AF_INET, ("127.0.0.1", port))]
        monkeypatch.setattr(resolver, "look_up", lambda host, port, flags=0: list(addresses))
        client, handle = stage.puppet()
        stage.tell(handle, Connect(1, "two.addresses", 1))
        stage.until(lambda: Connected(1) in client.events)


def test_running_out_of_descriptors_pauses_accepting_only(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, _handle, port = stage.listen()
    refusals = [OSError(24, "too many open files")]
    real = socket.socket.accept

    def accept(self: socket.socket) -> tuple[socket.socket, object]:
        if refusals:
            raise refusals.pop()
        return real(self)

    monkeypatch.setattr(socket.socket, "accept", accept)
    with socket.create_connection(("127.0.0.1", port)):
        stage.until(lambda: server.of(Accepted))
    assert not refusals


def test_a_forked_child_is_told_to_make_its_own_host(stage: Stage) -> None:
    _puppet, handle = stage.puppet()
    real = os.getpid()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "getpid", lambda: real + 1)
        for use in (
            lambda: stage.host.submit(handle, None),
            lambda: stage.host.add(Puppet()),
            lambda: stage.host.remove(handle),
        ):
            with pytest.raises(UsageError, match="forked"):
                use()


def test_a_child_that_closes_its_parents_host_does_not_wait_for_it() -> None:
    code = (
        "import os, warnings\n"
        "from fairlead_kafka.runtime import SelectorHost\n"
        "host = SelectorHost(); host.start()\n"
        "warnings.simplefilter('ignore')\n"
        "child = os.fork()\n"
        "if child == 0:\n    host.close()\n    os._exit(7)\n"
        "assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7\n"
        "host.close()\n"
    )
    done = run(code)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_process_that_closes_nothing_ends_quietly() -> None:
    code = (
        "from fairlead_kafka.core.effects import Listen\n"
        "from fairlead_kafka.runtime import SelectorHost, Completion\n"
        "from tests.support.hosts import Stage, echo\n"
        "host = SelectorHost(); host.start(); stage = Stage(host)\n"
        "stage.pair()\n"
        "print('end')\n"
    )
    done = run(code)
    assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")


def test_a_callback_may_close_the_host(stage: Stage) -> None:
    _puppet, handle = stage.puppet()
    done = Completion()
    done.add_done_callback(lambda _done: stage.host.close())
    stage.host.submit(handle, lambda machine, now_ns: done.set_result(1))
    assert done.result(PATIENCE_S) == 1
    stage.host.close()
    with pytest.raises(UsageError):
        stage.host.add(Puppet())


def test_a_listener_may_be_on_any_address(stage: Stage) -> None:
    server, handle = stage.puppet()
    stage.tell(handle, Listen(1, "0.0.0.0", 0), Listen(2, "no-such-host.invalid", 1))
    stage.until(lambda: len(server.of(Listening)) == 2)
    answers = {answer.listener: answer for answer in server.of(Listening)}
    assert answers[1].error is None
    assert "name not resolved" in (answers[2].error or "")
    client, client_handle = stage.puppet()
    stage.connect(client_handle, client, answers[1].port)


def test_more_files_than_are_kept_open_can_be_used(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk, "OPEN_FILES_MAX", 3)
    puppet, handle = stage.puppet()
    paths = [str(tmp_path / f"file{number}") for number in range(10)]
    effects: list[Effect] = [FileAppend(number, path, [b"a"]) for number, path in enumerate(paths)]
    effects += [FileAppend(10 + number, path, [b"b"]) for number, path in enumerate(paths)]
    effects += [FileSync(20 + number, path) for number, path in enumerate(paths)]
    effects += [FileRead(30 + number, path, 0, -1) for number, path in enumerate(paths)]
    stage.tell(handle, *effects)
    stage.until(lambda: len(puppet.of(FileDone)) == 40)
    answers = {done.token: done.value for done in puppet.of(FileDone)}
    assert all(done.error is None for done in puppet.of(FileDone))
    assert [answers[10 + number] for number in range(10)] == [1] * 10
    assert [answers[30 + number] for number in range(10)] == [b"ab"] * 10


def test_a_full_disk_leaves_no_half_append(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    puppet, handle = stage.puppet()
    path = str(tmp_path / "log")
    assert stage.file_done(puppet, handle, FileAppend(1, path, [b"whole"])).error is None
    real = os.writev
    budget = [3]

    def writev(descriptor: int, buffers: Sequence[memoryview]) -> int:
        if not budget[0]:
            raise OSError(28, "no space left on device")
        written = real(descriptor, [buffers[0][: budget[0]]])
        budget[0] -= written
        return written

    with monkeypatch.context() as patch:
        patch.setattr(os, "writev", writev)
        done = stage.file_done(puppet, handle, FileAppend(2, path, [b"half", b"done"]))
    assert isinstance(done.error, OSError)
    assert Path(path).read_bytes() == b"whole"
    assert stage.file_done(puppet, handle, FileAppend(3, path, [b"!"])).value == 5


def test_what_a_crash_left_of_a_replacement_is_not_listed(stage: Stage, tmp_path: Path) -> None:
    (tmp_path / f"state{disk.REPLACEMENT_SUFFIX}").write_bytes(b"torn")
    puppet, handle = stage.puppet()
    stage.file_done(puppet, handle, FileReplace(1, str(tmp_path / "state"), [b"new"]))
    assert stage.file_done(puppet, handle, FileList(2, str(tmp_path))).value == [("state", 3)]


def test_deadlines_that_moved_and_those_of_ended_machines_do_not_pile_up(stage: Stage) -> None:
    """Deadlines nearer with each step, of machines of which most end."""
    for number in range(300):
        _puppet, handle = stage.puppet()
        for nearer_ns in range(3):
            stepped = threading.Event()

            def move(
                machine: Puppet, now_ns: int, nearer_ns: int = nearer_ns, stepped: Any = stepped
            ) -> None:
                machine.deadline = now_ns + 10**15 - nearer_ns * 10**12
                stepped.set()

            stage.host.submit(handle, move)
            assert stepped.wait(PATIENCE_S)
        if number % 10:
            stage.host.remove(handle)
    assert len(stage.host._due) <= 2 * host_module.SWEEP_MIN  # type: ignore[union-attr]


def test_a_deadline_in_years_is_slept_for_in_pieces(stage: Stage) -> None:
    """`epoll` takes no more than 24 days."""
    _far, handle = stage.puppet()
    for _ in range(2):
        stepped = threading.Event()

        def move(machine: Puppet, now_ns: int, stepped: threading.Event = stepped) -> None:
            machine.deadline = now_ns + 10**18
            stepped.set()

        stage.host.submit(handle, move)
        assert stepped.wait(PATIENCE_S)
        time.sleep(0.1)  # it goes to sleep
    assert not handle.ended
