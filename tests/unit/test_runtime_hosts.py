"""What both hosts do alike: one suite, run on real sockets and files, and in virtual time."""

from __future__ import annotations

import gc
import logging
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from fairlead_kafka.base.errors import UsageError
from fairlead_kafka.core.effects import (
    AwaitSent,
    Call,
    Close,
    Connect,
    Effect,
    FileAppend,
    FileDelete,
    FileList,
    FileRead,
    FileReplace,
    FileSync,
    FileTruncate,
    Hold,
    HoldListener,
    Listen,
    Resolve,
    StopListening,
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
from fairlead_kafka.runtime import Completion, SelectorHost, VirtualHost
from tests.support.hosts import Puppet, Stage, echo, lost
from tests.support.waiting import PATIENCE_S

BIG_BYTES = 8 * 1024 * 1024


@pytest.fixture(params=["selector", "virtual", "virtual, 3 bytes at a time, 5 ms"])
def stage(request: pytest.FixtureRequest) -> Iterator[Stage]:
    host: SelectorHost | VirtualHost
    if request.param == "selector":
        host = SelectorHost("test")
    elif request.param == "virtual":
        host = VirtualHost(raise_errors=False)
    else:
        host = VirtualHost(raise_errors=False, latency_ms=5, chunk_bytes=3)
    host.start()
    yield Stage(host)
    host.close()
    if isinstance(host, SelectorHost):
        # A socket left open would warn here, and warnings are errors. It is young: a collection of
        # all that a test process holds takes a third of a second.
        gc.collect(1)


@pytest.fixture
def folder(stage: Stage, tmp_path: Path) -> str:
    return str(tmp_path) if isinstance(stage.host, SelectorHost) else "/disk"


def test_bytes_come_back_from_an_echo_in_order(stage: Stage) -> None:
    _server, _server_handle, port = stage.listen(echo)
    client, handle = stage.puppet()
    stage.connect(handle, client, port)
    stage.tell(handle, Write(1, [b"one, ", memoryview(b"two, ")]), Write(1, [bytearray(b"three")]))
    stage.until(lambda: client.bytes_on(1) == b"one, two, three")


def test_effects_of_one_step_happen_in_order(stage: Stage) -> None:
    server, _server_handle, port = stage.listen()
    client, handle = stage.puppet()
    first, second = Completion(), Completion()
    order: list[str] = []
    first.add_done_callback(lambda _done: order.append("first"))
    second.add_done_callback(lambda _done: order.append("second"))
    stage.tell(
        handle,
        Resolve(first, 1),
        Connect(1, "127.0.0.1", port),
        Call(order.append, ("call",)),
        Resolve(second, 2),
    )
    stage.until(lambda: client.of(Connected) and server.of(Accepted))
    assert order == ["first", "call", "second"]
    assert (first.result(0), second.result(0)) == (1, 2)


def test_numbers_of_accepted_connections_count_downward_for_each_machine(stage: Stage) -> None:
    server, _handle, port = stage.listen()
    clients = [stage.puppet() for _ in range(3)]
    for client, handle in clients:
        stage.connect(handle, client, port)
    stage.until(lambda: len(server.of(Accepted)) == 3)
    assert sorted(event.connection for event in server.of(Accepted)) == [-3, -2, -1]
    assert {event.listener for event in server.of(Accepted)} == {1}


def test_machines_number_their_connections_independently(stage: Stage) -> None:
    _server, _handle, port = stage.listen(echo)
    one, one_handle = stage.puppet()
    two, two_handle = stage.puppet()
    stage.connect(one_handle, one, port, connection=7)
    stage.connect(two_handle, two, port, connection=7)
    stage.tell(one_handle, Write(7, [b"one"]))
    stage.tell(two_handle, Write(7, [b"two"]))
    stage.until(lambda: one.bytes_on(7) == b"one" and two.bytes_on(7) == b"two")


def test_a_big_write_of_many_buffers_arrives_whole(stage: Stage) -> None:
    client, handle, server, _server_handle = stage.pair()
    size_bytes = BIG_BYTES if isinstance(stage.host, SelectorHost) else 30_000
    data = bytes(range(256)) * (size_bytes // 256)
    pieces = 3000  # more than one sendmsg takes
    step = -(-len(data) // pieces)
    stage.tell(
        handle, Write(1, [memoryview(data)[start : start + step] for start in range(0, len(data), step)])
    )
    stage.until(lambda: sum(len(event.data) for event in server.of(Received)) == len(data))
    assert server.bytes_on(-1) == data
    assert not client.of(Disconnected)


def test_memoryviews_of_other_items_are_sent_as_bytes(stage: Stage) -> None:
    _client, handle, server, _server_handle = stage.pair()
    stage.tell(handle, Write(1, [memoryview(b"\x01\x00\x02\x00").cast("H"), b"", b"end"]))
    stage.until(lambda: server.bytes_on(-1) == b"\x01\x00\x02\x00end")


def test_a_drained_close_delivers_everything_before_the_end(stage: Stage) -> None:
    client, handle, server, _server_handle = stage.pair()
    data = b"x" * (BIG_BYTES if isinstance(stage.host, SelectorHost) else 1000)
    stage.tell(handle, Write(1, [data]), Close(1, drain=True))
    stage.until(lambda: lost(server, -1))
    assert server.bytes_on(-1) == data
    assert server.events[-1] == Disconnected(-1, "closed by the peer")
    assert not client.of(Disconnected), "a machine hears nothing of connections it closed itself"


def test_sent_comes_once_so_much_has_left(stage: Stage) -> None:
    client, handle, server, _server_handle = stage.pair()
    stage.tell(handle, Write(1, [b"one"]), AwaitSent(1, 2))
    stage.until(lambda: client.of(Sent))
    stage.tell(handle, AwaitSent(1, 4), AwaitSent(99, 1))
    stage.until(lambda: server.bytes_on(-1) == b"one")
    assert client.of(Sent) == [Sent(1, 3)]
    stage.tell(handle, Write(1, [b"two"]))
    stage.until(lambda: client.of(Sent) == [Sent(1, 3), Sent(1, 6)])


def test_nobody_is_accepted_at_a_listener_that_is_held(stage: Stage) -> None:
    server, server_handle, port = stage.listen()
    client, handle = stage.puppet()
    stage.tell(server_handle, HoldListener(1, True), HoldListener(99, True))
    stage.until(lambda: server.stepped_ns)
    stage.tell(handle, Connect(1, "127.0.0.1", port))
    stage.pair()  # takes longer than accepting would
    assert not server.of(Accepted)
    stage.tell(server_handle, HoldListener(1, False))
    stage.until(lambda: server.of(Accepted) and client.of(Connected))


def test_nothing_is_read_from_a_connection_that_is_held_until_it_is_let_go(stage: Stage) -> None:
    client, handle, server, server_handle = stage.pair()
    stage.tell(server_handle, Hold(-1, True), Write(-1, [b"held"]))
    stage.until(lambda: client.bytes_on(1) == b"held")
    stage.tell(handle, Write(1, [b"one"]))
    _other, _, _third, _ = stage.pair()  # takes longer than the bytes would
    assert not server.bytes_on(-1)
    stage.tell(handle, Write(1, [b"two"]))
    stage.tell(server_handle, Hold(-1, False))
    stage.until(lambda: server.bytes_on(-1) == b"onetwo")


def test_what_a_peer_sent_before_it_closed_is_received_first(stage: Stage) -> None:
    _server, _handle, port = stage.listen(
        lambda event: (
            [Write(event.connection, [b"goodbye"]), Close(event.connection, drain=True)]
            if isinstance(event, Accepted)
            else []
        )
    )
    client, handle = stage.puppet()
    stage.connect(handle, client, port)
    stage.until(lambda: lost(client, 1))
    assert client.bytes_on(1) == b"goodbye"


def test_nothing_is_received_on_a_connection_once_it_is_closed(stage: Stage) -> None:
    client, handle, _server, server_handle = stage.pair()
    stage.tell(handle, Close(1))
    stage.tell(server_handle, Write(-1, [b"too late"]))
    _other, other_handle, _third, _third_handle = stage.pair()
    assert client.of(Received) == client.of(Disconnected) == []
    stage.tell(handle, Write(1, [b"nobody"]), Close(1))  # neither is an error
    stage.tell(other_handle, Close(1))


def test_a_refused_connection_says_so(stage: Stage) -> None:
    server, server_handle, port = stage.listen()
    stage.tell(server_handle, StopListening(1))
    client, handle = stage.puppet()
    stage.tell(handle, Connect(1, "127.0.0.1", port))
    stage.until(lambda: lost(client, 1))
    assert client.events == [Disconnected(1, "connection refused")]
    assert not server.of(Accepted)


def test_a_connection_that_is_closed_before_it_stands_is_heard_of_no_more(stage: Stage) -> None:
    _server, _handle, port = stage.listen(echo)
    client, handle = stage.puppet()
    stage.tell(handle, Connect(1, "127.0.0.1", port), Close(1))
    stage.connect(handle, client, port, connection=2)
    stage.tell(handle, Write(2, [b"here"]))
    stage.until(lambda: client.bytes_on(2) == b"here")
    assert all(event.connection == 2 for event in client.events if not isinstance(event, Listening))


def test_accepted_connections_live_on_when_listening_stops(stage: Stage) -> None:
    client, handle, server, server_handle = stage.pair()
    stage.tell(server_handle, StopListening(1))
    stage.tell(handle, Write(1, [b"still here"]))
    stage.until(lambda: server.bytes_on(-1) == b"still here")
    assert not client.of(Disconnected)


def test_a_port_in_use_is_reported(stage: Stage) -> None:
    _server, _handle, port = stage.listen()
    other, handle = stage.puppet()
    stage.tell(handle, Listen(5, "127.0.0.1", port))
    stage.until(lambda: other.of(Listening))
    assert other.of(Listening) == [Listening(5, "127.0.0.1", port, "address already in use")]


def test_localhost_is_this_machine(stage: Stage) -> None:
    server, handle = stage.puppet(echo)
    stage.tell(handle, Listen(1, "localhost", 0))
    stage.until(lambda: server.of(Listening))
    client, client_handle = stage.puppet()
    stage.tell(client_handle, Connect(1, "localhost", server.of(Listening)[0].port), Write(1, [b"early"]))
    stage.until(lambda: client.bytes_on(1) == b"early")


def test_a_machine_is_stepped_at_its_deadline_and_not_before(stage: Stage) -> None:
    puppet, handle = stage.puppet()
    asked: list[int] = []

    def ask(machine: Puppet, now_ns: int) -> Sequence[Effect]:
        asked.append(now_ns + 20_000_000)
        machine.deadline = asked[0]
        return []

    stage.host.submit(handle, ask)
    stage.until(lambda: asked and puppet.stepped_ns[-1] >= asked[0])
    between = [now_ns for now_ns in puppet.stepped_ns if asked[0] - 20_000_000 < now_ns < asked[0]]
    assert between == []
    puppet.deadline = None


def test_a_woken_machine_is_stepped(stage: Stage) -> None:
    puppet, handle = stage.puppet()
    stage.until(lambda: puppet.stepped_ns)
    steps = len(puppet.stepped_ns)
    stage.host.wake(handle)
    stage.until(lambda: len(puppet.stepped_ns) > steps)


class Failing(Puppet):
    """Raises when told to, and has operations to fail."""

    def __init__(self) -> None:
        super().__init__(self._fail)
        self.held = Completion()

    def _fail(self, event: Event) -> Sequence[Effect]:
        if isinstance(event, Received):
            raise RuntimeError("planted")
        return []

    def crashed(self, error: Exception) -> Sequence[Effect]:
        return [Resolve(self.held, error=UsageError(f"crashed: {error}"))]


class Operation:
    """What a face submits."""

    def __init__(self) -> None:
        self.completion = Completion()


def test_a_machine_that_raises_is_ended_alone(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    _echo, _echo_handle, echo_port = stage.listen(echo)
    failing = Failing()
    failing.on_step = stage.notify
    failing_handle = stage.host.add(failing)
    stage.tell(failing_handle, Listen(1, "127.0.0.1", 0))
    stage.until(lambda: failing.of(Listening))
    client, handle = stage.puppet()
    stage.connect(handle, client, failing.of(Listening)[0].port)
    stage.connect(handle, client, echo_port, connection=2)
    with caplog.at_level(logging.ERROR, "fairlead_kafka.runtime"):
        stage.tell(handle, Write(1, [b"poison"]))
        stage.until(lambda: lost(client, 1))
    assert any(record.exc_info and "planted" in str(record.exc_info[1]) for record in caplog.records)
    assert str(failing_handle.error) == "planted"
    with pytest.raises(UsageError, match="crashed: planted"):
        failing.held.result(PATIENCE_S)
    late = Operation()
    stage.host.submit(failing_handle, late)
    stage.tell(handle, Write(2, [b"alive"]))
    stage.until(lambda: client.bytes_on(2) == b"alive")
    with pytest.raises(UsageError, match="planted"):
        late.completion.result(PATIENCE_S)


@pytest.fixture
def failing_links(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both hosts raise when a machine's connections are to be closed, and the log raises as
    well."""

    def fail(*_arguments: object) -> None:
        raise RuntimeError("a defect in closing")

    monkeypatch.setattr(SelectorHost, "_end", fail)
    monkeypatch.setattr(VirtualHost, "_end", fail)
    monkeypatch.setattr(logging.getLogger("fairlead_kafka.runtime"), "handle", fail)


@pytest.mark.usefixtures("failing_links")
def test_a_machine_that_raises_answers_its_callers_though_nothing_can_be_closed_or_logged(
    stage: Stage,
) -> None:
    failing = Failing()
    failing.held.add_done_callback(lambda _done: stage.notify())
    handle = stage.host.add(failing)
    stage.host.submit(handle, 7)  # which is no sequence of effects
    stage.until(failing.held.done)
    assert handle.ended
    with pytest.raises(UsageError, match="crashed: "):
        failing.held.result(PATIENCE_S)


@pytest.mark.usefixtures("failing_links")
def test_closing_a_host_answers_all_callers_though_nothing_can_be_closed_or_logged(stage: Stage) -> None:
    machines = [Failing(), Failing()]
    for machine in machines:
        stage.host.add(machine)
    stage.host.close()
    for machine in machines:
        with pytest.raises(UsageError, match="closed"):
            machine.held.result(PATIENCE_S)


def test_a_machine_that_raises_again_when_it_is_told_leaves_the_others_alone(stage: Stage) -> None:
    class Twice(Failing):
        def crashed(self, error: Exception) -> Sequence[Effect]:
            raise RuntimeError("planted again")

    machines = [Twice(), Failing()]
    for machine in machines:
        stage.host.add(machine)
    stage.host.close()
    with pytest.raises(UsageError, match="closed"):
        machines[1].held.result(PATIENCE_S)


def test_a_removed_machine_is_left_by_its_connections(stage: Stage) -> None:
    client, _handle, _server, server_handle = stage.pair()
    stage.host.remove(server_handle)
    stage.until(lambda: lost(client, 1))
    late = Operation()
    stage.host.submit(server_handle, late)
    with pytest.raises(UsageError, match="closed"):
        late.completion.result(PATIENCE_S)


def test_a_callback_that_raises_is_logged_and_forgotten(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    _puppet, handle = stage.puppet()
    after = Completion()
    after.add_done_callback(lambda _done: stage.notify())

    def fail() -> None:
        raise ValueError("the user's own")

    stage.tell(handle, Call(fail, ()), Resolve(after))
    stage.until(after.done)
    assert any("the user's own" in str(record.exc_info and record.exc_info[1]) for record in caplog.records)


def test_closing_a_host_fails_what_is_held_and_closes_connections(stage: Stage) -> None:
    failing = Failing()
    stage.host.add(failing)
    stage.pair()
    stage.host.close()
    stage.host.close()
    with pytest.raises(UsageError, match="closed"):
        failing.held.result(PATIENCE_S)
    with pytest.raises(UsageError, match="closed"):
        stage.host.add(Puppet())


def test_file_effects_answer_as_their_docstrings_say(stage: Stage, folder: str) -> None:
    puppet, handle = stage.puppet()
    path = f"{folder}/logs/a.log"

    def value(effect: Any) -> Any:
        done = stage.file_done(puppet, handle, effect)
        assert done.error is None
        return done.value

    assert value(FileList(1, f"{folder}/logs")) == []
    assert value(FileAppend(2, path, [b"abc", memoryview(b"defg")])) == 0
    assert value(FileAppend(3, path, [b"hi"])) == 7
    assert value(FileRead(4, path, 2, 3)) == b"cde"
    assert value(FileRead(5, path, 7, 100)) == b"hi"
    assert value(FileRead(6, path, 0, -1)) == b"abcdefghi"
    assert value(FileRead(7, path, 50, 10)) == b""
    assert value(FileSync(8, path)) is None
    assert value(FileTruncate(9, path, 4)) is None
    assert value(FileAppend(10, path, [b"!"])) == 4
    assert value(FileReplace(11, f"{folder}/logs/b.snapshot", [b"one", b"two"])) is None
    assert value(FileReplace(12, f"{folder}/logs/b.snapshot", [b"three"])) is None
    assert value(FileList(13, f"{folder}/logs")) == [("a.log", 5), ("b.snapshot", 5)]
    assert value(FileRead(14, f"{folder}/logs/b.snapshot", 0, -1)) == b"three"
    assert value(FileDelete(15, path)) is None
    assert value(FileDelete(16, path)) is None
    assert value(FileAppend(17, path, [b"new"])) == 0
    assert value(FileDelete(18, f"{folder}/logs")) is None
    assert value(FileList(19, f"{folder}/logs")) == []


@pytest.mark.parametrize(
    "effect",
    [FileRead(1, "", 0, 1), FileSync(1, ""), FileTruncate(1, "", 0)],
    ids=lambda effect: type(effect).__name__,
)
def test_a_missing_file_is_an_error_of_its_effect(stage: Stage, folder: str, effect: Any) -> None:
    puppet, handle = stage.puppet()
    effect = effect._replace(path=f"{folder}/nothing")
    done = stage.file_done(puppet, handle, effect)
    assert isinstance(done.error, FileNotFoundError)
    assert done.value is None


def test_effects_on_one_file_are_carried_out_in_order(stage: Stage, folder: str) -> None:
    puppet, handle = stage.puppet()
    path = f"{folder}/checkpoint"
    effects: list[Effect] = [
        FileReplace(1, path, [b"old"]),
        FileRead(2, path, 0, -1),
        FileReplace(3, path, [b"newer"]),
    ]
    effects += [
        FileRead(4, path, 0, -1),
        FileList(5, folder),
        FileAppend(6, path, [b"+"]),
        FileRead(7, path, 0, -1),
    ]
    stage.tell(handle, *effects)
    stage.until(lambda: len(puppet.of(FileDone)) == 7)
    answers = {done.token: done.value for done in puppet.of(FileDone)}
    assert (answers[2], answers[4], answers[5], answers[7]) == (
        b"old",
        b"newer",
        [("checkpoint", 5)],
        b"newer+",
    )
    if isinstance(stage.host, SelectorHost):
        assert [done.token for done in puppet.of(FileDone)] == [1, 2, 3, 4, 5, 6, 7]


def test_no_thread_is_left_behind(stage: Stage) -> None:
    stage.pair()
    stage.host.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "test"]
