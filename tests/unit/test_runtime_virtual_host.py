"""What only the virtual host has: a clock of its own, and links that can be slowed and cut."""

from __future__ import annotations

import pytest

from fairlead_kafka.base.errors import TimedOut, UsageError
from fairlead_kafka.core.effects import Connect, FileAppend, FileSync, Write
from fairlead_kafka.core.events import Connected, Disconnected, FileDone, Received
from fairlead_kafka.runtime import VirtualHost
from tests.support.hosts import Puppet, Stage, echo, lost


def test_time_goes_on_only_when_told() -> None:
    host = VirtualHost(wall_ms=1_000_000)
    started_ns = host.now_ns()
    assert host.now_ms() == 1_000_000
    host.advance(1.5)
    assert host.now_ns() == started_ns + 1_500_000
    assert host.now_ms() == 1_000_001


def test_a_link_takes_its_time() -> None:
    host = VirtualHost(latency_ms=10)
    stage = Stage(host)
    client, handle, server, server_handle = stage.pair()
    started_ns = host.now_ns()
    stage.tell(handle, Write(1, [b"x"]))
    stage.until(lambda: server.of(Received))
    assert host.now_ns() - started_ns == 10_000_000
    host.link(handle, server_handle).latency_ms = 2
    stage.tell(server_handle, Write(-1, [b"y"]))
    stage.until(lambda: client.of(Received))
    assert host.now_ns() - started_ns == 12_000_000


def test_bytes_stay_in_order_when_a_link_becomes_faster() -> None:
    host = VirtualHost(latency_ms=10)
    stage = Stage(host)
    _client, handle, server, server_handle = stage.pair()
    stage.tell(handle, Write(1, [b"slow "]))
    host.advance(1)
    host.link(handle, server_handle).latency_ms = 0
    stage.tell(handle, Write(1, [b"fast"]))
    stage.until(lambda: len(server.bytes_on(-1)) == 9)
    assert server.bytes_on(-1) == b"slow fast"


def test_a_cut_link_holds_everything_back_until_it_heals() -> None:
    host = VirtualHost(latency_ms=1)
    stage = Stage(host)
    client, handle, server, server_handle = stage.pair()
    link = host.link(handle, server_handle)
    link.cut()
    stage.tell(handle, Write(1, [b"one"]), Write(1, [b"two"]), Connect(2, "127.0.0.1", 49_152))
    host.advance(10_000)
    assert not server.of(Received)
    assert Connected(2) not in client.events
    link.heal()
    stage.until(lambda: server.bytes_on(-1) == b"onetwo")
    stage.until(lambda: Connected(2) in client.events)


def test_a_reset_link_breaks_its_connections_on_both_sides() -> None:
    host = VirtualHost(latency_ms=1)
    stage = Stage(host)
    client, handle, server, server_handle = stage.pair()
    stage.tell(handle, Write(1, [b"lost"]))
    host.advance(0)
    host.link(handle, server_handle).reset()
    stage.until(lambda: lost(client, 1) and lost(server, -1))
    assert client.of(Disconnected) == [Disconnected(1, "connection reset by peer")]
    host.advance(10)
    assert not server.of(Received)


def test_links_are_between_two_machines() -> None:
    host = VirtualHost()
    stage = Stage(host)
    _server, server_handle, port = stage.listen(echo)
    near, near_handle = stage.puppet()
    far, far_handle = stage.puppet()
    host.link(server_handle, far_handle).latency_ms = 50
    started_ns = host.now_ns()
    stage.connect(near_handle, near, port)
    assert host.now_ns() == started_ns
    stage.connect(far_handle, far, port)
    assert host.now_ns() == started_ns + 100_000_000


def test_syncs_take_the_time_they_are_set_to() -> None:
    host = VirtualHost()
    host.disk.sync_ms = 4
    stage = Stage(host)
    puppet, handle = stage.puppet()
    started_ns = host.now_ns()
    stage.tell(handle, FileAppend(1, "a", [b"x"]), FileSync(2, "a"), FileAppend(3, "a", [b"y"]))
    stage.until(lambda: len(puppet.of(FileDone)) == 3)
    assert [done.token for done in puppet.of(FileDone)] == [1, 3, 2]
    assert host.now_ns() - started_ns == 4_000_000
    assert host.files == {"a": bytearray(b"xy")}


def test_waiting_for_what_never_comes_ends() -> None:
    host = VirtualHost()
    started_ns = host.now_ns()
    with pytest.raises(TimedOut, match="nothing was left to happen"):
        host.run_until(lambda: False, timeout_ms=500)
    assert host.now_ns() == started_ns + 500_000_000


def test_a_deadline_that_stays_in_the_past_is_found_out() -> None:
    host = VirtualHost()
    puppet = Puppet()
    puppet.deadline = 0
    host.add(puppet)
    with pytest.raises(UsageError, match="deadline stays in the past"):
        host.advance(1)


def test_what_a_machine_raises_comes_out_of_the_host() -> None:
    host = VirtualHost()
    handle = host.add(Puppet())
    host.submit(handle, lambda machine, now_ns: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        host.advance(0)
    assert isinstance(handle.error, ZeroDivisionError)


def test_the_same_story_is_told_every_time() -> None:
    def story() -> list[str]:
        host = VirtualHost(latency_ms=3, chunk_bytes=2)
        stage = Stage(host)
        server, _handle, port = stage.listen(echo)
        clients = [stage.puppet() for _ in range(3)]
        for client, handle in clients:
            stage.connect(handle, client, port)
            stage.tell(handle, Write(1, [b"hello"]))
        stage.until(lambda: all(client.bytes_on(1) == b"hello" for client, _handle in clients))
        return [
            repr(event)
            for machine in (server, *(client for client, _handle in clients))
            for event in machine.events
        ]

    assert story() == story()


def test_a_step_that_takes_time_delays_what_it_does_and_what_comes_meanwhile() -> None:
    host = VirtualHost(latency_ms=1)
    stage = Stage(host)
    client, handle, server, server_handle = stage.pair()
    server_handle.work_ns = lambda: 5_000_000 if server.of(Received) else 0
    server._react = echo
    started_ns = host.now_ns()
    stage.tell(handle, Write(1, [b"first"]))
    host.advance(2)
    stage.tell(handle, Write(1, [b"second"]))
    stage.until(lambda: client.of(Received))
    assert host.now_ns() - started_ns == 7_000_000, "a way, five milliseconds of work, a way"
    stage.until(lambda: len(client.of(Received)) == 2)
    assert host.now_ns() - started_ns == 12_000_000, "the second waited for the end of the first"
    assert client.bytes_on(1) == b"firstsecond"


def test_a_connection_to_a_listener_that_began_meanwhile_breaks_on_both_sides_too() -> None:
    host = VirtualHost(latency_ms=10)
    stage = Stage(host)
    client, handle = stage.puppet()
    stage.tell(handle, Connect(1, "127.0.0.1", 49_152))  # where nobody listens yet
    host.advance(1)
    server, server_handle, port = stage.listen(echo)
    assert port == 49_152
    stage.until(lambda: Connected(1) in client.events)
    host.link(handle, server_handle).reset()
    stage.until(lambda: lost(client, 1) and lost(server, -1))
