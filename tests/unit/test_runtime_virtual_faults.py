"""What goes wrong on the virtual network and disk: drawn from a seed, the same every time, and
never against TCP's rules."""

from __future__ import annotations

import errno
import random

import pytest

from fairlead_kafka.base.errors import UsageError
from fairlead_kafka.core.effects import (
    AwaitSent,
    Close,
    Connect,
    FileAppend,
    FileDelete,
    FileRead,
    FileReplace,
    FileSync,
    FileTruncate,
    Write,
)
from fairlead_kafka.core.events import Connected, Disconnected, FileDone, Received, Sent
from fairlead_kafka.runtime import Conditions, VirtualHost
from fairlead_kafka.runtime.virtual_disk import PAGE_BYTES
from fairlead_kafka.runtime.virtual_network import SOCKET_BUFFER_BYTES
from tests.support.hosts import Stage, echo, lost

ROUGH = Conditions(latency_ms=2, jitter_ms=5, loss=0.2)


def numbers(data: bytes) -> list[int]:
    return [int(each) for each in data.split(b",")[:-1]]


def story(seed: int, conditions: Conditions, connections: int = 1) -> list[str]:
    """Everything that a server hears of 30 writes, dealt out to some connections, with the
    times."""
    host = VirtualHost(rng=random.Random(seed))
    stage = Stage(host)
    _server, server_handle, port = stage.listen()
    client, handle = stage.puppet()
    for number in range(1, connections + 1):
        stage.connect(handle, client, port, connection=number)
    host.link(handle, server_handle).conditions = conditions
    heard: list[str] = []
    host.trace = lambda now_ns, _handle, event: (
        heard.append(f"{now_ns} {event}") if isinstance(event, Received | Disconnected) else None
    )
    for number in range(30):
        stage.tell(handle, Write(1 + number % connections, [b"%d," % number]))
        host.advance(1)
    host.advance(60_000)
    return heard


@pytest.mark.parametrize(
    "conditions", [ROUGH, Conditions(resets=0.1), Conditions(jitter_ms=50, bytes_per_ms=1)]
)
def test_a_seed_replays_exactly_and_another_does_not(conditions: Conditions) -> None:
    assert story(1, conditions) == story(1, conditions)
    assert story(1, conditions) != story(2, conditions)


def test_within_a_connection_nothing_is_lost_or_reordered() -> None:
    host = VirtualHost(rng=random.Random(5))
    stage = Stage(host)
    _client, handle, server, server_handle = stage.pair()
    host.link(handle, server_handle).conditions = ROUGH
    for number in range(100):
        stage.tell(handle, Write(1, [b"%d," % number]))
        host.advance(1)
    stage.tell(handle, Close(1, drain=True))
    stage.until(lambda: lost(server, -1))
    assert numbers(server.bytes_on(-1)) == list(range(100))


def test_between_connections_one_overtakes_another() -> None:
    host = VirtualHost(rng=random.Random(5))
    stage = Stage(host)
    server, server_handle, port = stage.listen()
    client, handle = stage.puppet()
    stage.connect(handle, client, port, connection=1)
    stage.connect(handle, client, port, connection=2)
    host.link(handle, server_handle).conditions = Conditions(jitter_ms=20)
    for number in range(40):
        stage.tell(handle, Write(1 + number % 2, [b"%d," % number]))
    host.advance(10_000)
    arrived = [numbers(event.data)[0] for event in server.of(Received)]
    assert sorted(arrived) == list(range(40))
    assert arrived != sorted(arrived)
    for odd in (0, 1):
        assert [each for each in arrived if each % 2 == odd] == list(range(odd, 40, 2))


def test_a_loss_costs_a_retransmission() -> None:
    host = VirtualHost(rng=random.Random(1))
    stage = Stage(host)
    _client, handle, server, server_handle = stage.pair()
    host.link(handle, server_handle).conditions = Conditions(loss=0.999999)
    started_ns = host.now_ns()
    stage.tell(handle, Write(1, [b"x"]))
    stage.until(lambda: server.of(Received))
    assert host.now_ns() - started_ns == (200 + 400 + 800 + 1600 + 3200) * 1_000_000


def test_a_write_may_break_its_connection_for_both_sides() -> None:
    host = VirtualHost(rng=random.Random(1))
    stage = Stage(host)
    client, handle, server, server_handle = stage.pair()
    host.link(handle, server_handle).conditions = Conditions(resets=1)
    stage.tell(handle, Write(1, [b"x"]))
    stage.until(lambda: lost(client, 1) and lost(server, -1))
    assert not server.of(Received)


def test_a_slow_link_takes_time_by_the_byte() -> None:
    host = VirtualHost()
    stage = Stage(host)
    _client, handle, server, server_handle = stage.pair()
    host.link(handle, server_handle).conditions = Conditions(latency_ms=1, bytes_per_ms=10)
    started_ns = host.now_ns()
    stage.tell(handle, Write(1, [b"x" * 50]), Write(1, [b"y" * 50]))
    stage.until(lambda: len(server.bytes_on(-1)) == 100)
    assert host.now_ns() - started_ns == 11_000_000


def test_a_link_may_be_cut_one_way() -> None:
    host = VirtualHost()
    stage = Stage(host)
    server, server_handle, port = stage.listen(echo)
    client, handle = stage.puppet()
    stage.connect(handle, client, port)
    link = host.link(handle, server_handle)
    link.cut(toward=handle)
    stage.tell(handle, Write(1, [b"heard"]), Connect(2, "127.0.0.1", port))
    host.advance(1000)
    assert server.bytes_on(-1) == b"heard"
    assert not client.of(Received)
    assert Connected(2) not in client.events
    link.heal()
    stage.until(lambda: client.bytes_on(1) == b"heard" and Connected(2) in client.events)


def test_chance_needs_rng() -> None:
    host = VirtualHost()
    stage = Stage(host)
    _client, handle, _server, server_handle = stage.pair()
    host.link(handle, server_handle).conditions = Conditions(jitter_ms=1)
    stage.tell(handle, Write(1, [b"x"]))
    with pytest.raises(UsageError, match=r"VirtualHost\(rng="):
        host.advance(1)


def test_too_many_steps_are_found_out() -> None:
    host = VirtualHost()
    host.steps_max = 5
    stage = Stage(host)
    puppet, handle = stage.puppet()
    for _ in range(5):
        host.wake(handle)
        host.advance(1)
    host.wake(handle)
    with pytest.raises(UsageError, match="more than 5 steps"):
        host.advance(1)
    assert len(puppet.stepped_ns) == 6


def test_a_power_cut_takes_what_was_not_synced() -> None:
    host = VirtualHost()
    host.disk.sync_ms = 5
    stage = Stage(host)
    _puppet, handle = stage.puppet()
    stage.tell(
        handle,
        FileAppend(1, "/a/log", [b"synced"]),
        FileSync(2, "/a/log"),
        FileReplace(3, "/a/whole", [b"whole"]),
    )
    stage.tell(handle, FileAppend(4, "/b/log", [b"elsewhere"]), FileAppend(5, "/a/new", [b"new"]))
    host.advance(5)
    stage.tell(handle, FileAppend(6, "/a/log", [b" and not"]), FileSync(7, "/a/log"))
    host.advance(4)
    host.disk.cut_power("/a")
    assert host.files == {
        "/a/log": bytearray(b"synced"),
        "/a/whole": bytearray(b"whole"),
        "/b/log": bytearray(b"elsewhere"),
    }


def test_a_power_cut_may_leave_a_part_of_what_was_being_written() -> None:
    host = VirtualHost()
    stage = Stage(host)
    _puppet, handle = stage.puppet()
    stage.tell(
        handle,
        FileAppend(1, "/a/log", [b"synced"]),
        FileSync(2, "/a/log"),
        FileAppend(3, "/a/log", [b"torn"]),
    )
    host.advance(0)
    host.disk.cut_power("/a", lambda size_bytes: size_bytes // 2)
    assert host.files["/a/log"] == b"syncedto"
    stage.tell(handle, FileTruncate(4, "/a/log", 3))
    host.advance(0)
    host.disk.cut_power("/a")
    assert host.files["/a/log"] == b"syn"


def test_a_power_cut_may_keep_later_pages_and_lose_earlier_ones() -> None:
    host = VirtualHost()
    stage = Stage(host)
    _puppet, handle = stage.puppet()
    stage.tell(
        handle,
        FileAppend(1, "/a/log", [b"s" * 10]),
        FileSync(2, "/a/log"),
        FileAppend(3, "/a/log", [b"u" * (2 * PAGE_BYTES)]),
    )
    host.advance(0)
    written = iter([True, False, True])
    host.disk.cut_power("/a", lambda size_bytes: size_bytes, lambda: next(written))
    first = b"s" * 10 + b"u" * (PAGE_BYTES - 10)
    assert host.files["/a/log"] == first + bytes(PAGE_BYTES) + b"u" * 10


def test_a_machine_with_too_many_connections_opens_no_file() -> None:
    host = VirtualHost()
    host.disk.descriptors_max = 0
    stage = Stage(host)
    puppet, handle = stage.puppet()
    stage.tell(handle, FileAppend(1, "/a/log", [b"lost"]))
    host.advance(0)
    (done,) = [event for event in puppet.events if isinstance(event, FileDone)]
    assert done.error is not None
    assert done.error.errno == errno.EMFILE
    assert (host.files, host.disk.without_descriptor) == ({}, 1)


def test_a_power_cut_leaves_a_replacement_whole_or_as_if_it_had_not_begun() -> None:
    host = VirtualHost()
    host.disk.sync_ms = 5
    stage = Stage(host)
    _puppet, handle = stage.puppet()
    stage.tell(handle, FileReplace(1, "/a/whole", [b"before"]))
    host.advance(5)
    stage.tell(handle, FileReplace(2, "/a/whole", [b"after, and longer"]))
    host.advance(4)
    host.remove(handle)
    host.disk.cut_power("/a")
    host.advance(5)
    assert host.files == {"/a/whole": bytearray(b"before")}


def test_a_power_cut_may_bring_back_a_deleted_file_until_its_folder_is_synced() -> None:
    host = VirtualHost()
    stage = Stage(host)
    _puppet, handle = stage.puppet()
    stage.tell(handle, FileAppend(1, "/a/log", [b"synced"]), FileSync(2, "/a/log"))
    host.advance(0)
    stage.tell(handle, FileDelete(3, "/a/log"))
    host.advance(0)
    host.disk.cut_power("/a", lambda size_bytes: size_bytes)
    assert host.files == {}
    stage.tell(handle, FileAppend(4, "/a/log", [b"again"]), FileSync(5, "/a/log"))
    host.advance(0)
    stage.tell(handle, FileDelete(6, "/a/log"))
    host.advance(0)
    host.disk.cut_power("/a")
    assert host.files == {"/a/log": bytearray(b"again")}
    stage.tell(handle, FileDelete(7, "/a/log"), FileReplace(8, "/a/other", [b"x"]))
    host.advance(0)
    host.disk.cut_power("/a")
    assert host.files == {"/a/other": bytearray(b"x")}


@pytest.mark.parametrize(
    ("code", "failing"),
    [
        (errno.ENOSPC, {"append", "replace"}),
        (errno.EROFS, {"append", "replace", "truncate", "delete"}),
        (errno.EIO, {"append", "replace", "truncate", "delete", "read", "sync"}),
    ],
)
def test_a_disk_fails_as_its_error_says_and_only_below_its_folder(code: int, failing: set[str]) -> None:
    host = VirtualHost()
    stage = Stage(host)
    puppet, handle = stage.puppet()
    stage.tell(handle, FileAppend(1, "/a/log", [b"whole"]), FileAppend(2, "/b/log", [b"whole"]))
    host.advance(0)
    host.disk.faults.fail("/a", code)
    effects = {
        "read": FileRead(11, "/a/log", 0, -1),
        "append": FileAppend(12, "/a/log", [b"torn"]),
        "truncate": FileTruncate(13, "/a/log", 5),
        "sync": FileSync(14, "/a/log"),
        "replace": FileReplace(15, "/a/whole", [b"x"]),
        "delete": FileDelete(16, "/a/log"),
    }
    stage.tell(handle, *effects.values(), FileAppend(17, "/b/log", [b" too"]))
    host.advance(0)
    errors = {done.token: done.error for done in puppet.events if isinstance(done, FileDone)}
    assert {name for name, effect in effects.items() if errors[effect.token] is not None} == failing
    assert host.files["/b/log"] == b"whole too"
    host.disk.faults.heal("/a")
    stage.tell(handle, FileAppend(18, "/a/log", [b"!"]))
    host.advance(0)
    assert host.files["/a/log"].endswith(b"!")


def test_a_disk_knows_three_ways_to_fail() -> None:
    with pytest.raises(UsageError, match="ENOSPC, EROFS, EIO"):
        VirtualHost().disk.faults.fail("/a", errno.ENOENT)


def test_a_reader_that_does_not_read_keeps_its_sender_waiting() -> None:
    host = VirtualHost(latency_ms=1)
    stage = Stage(host)
    client, handle, server, server_handle = stage.pair()
    link = host.link(handle, server_handle)
    link.stop_reading(handle)
    stage.tell(server_handle, Write(-1, [b"x" * SOCKET_BUFFER_BYTES]), AwaitSent(-1, SOCKET_BUFFER_BYTES))
    stage.until(lambda: server.of(Sent))
    stage.tell(server_handle, Write(-1, [b"y"]), AwaitSent(-1, SOCKET_BUFFER_BYTES + 1))
    stage.tell(handle, Write(1, [b"gets through"]))
    host.advance(60_000)
    assert (server.of(Sent), server.bytes_on(-1), client.bytes_on(1)) == (
        [Sent(-1, SOCKET_BUFFER_BYTES)],
        b"gets through",
        b"",
    )
    link.read_on(handle)
    stage.until(lambda: len(server.of(Sent)) == 2)
    assert client.bytes_on(1) == b"x" * SOCKET_BUFFER_BYTES + b"y"


def test_what_a_reader_has_not_read_is_there_after_the_end_of_its_connection() -> None:
    host = VirtualHost()
    stage = Stage(host)
    client, handle, _server, server_handle = stage.pair()
    host.link(handle, server_handle).stop_reading(handle)
    stage.tell(server_handle, Write(-1, [b"last words"]), Close(-1))
    stage.until(lambda: lost(client, 1))
    assert client.bytes_on(1) == b"last words"
