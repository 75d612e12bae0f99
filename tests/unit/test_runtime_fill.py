"""A machine may give a room that what comes next on a connection is read into (`effects.Fill`)."""

from __future__ import annotations

from contextlib import closing

import pytest

from fairlead_kafka.core.effects import Fill, Write
from fairlead_kafka.core.events import Received
from fairlead_kafka.runtime import SelectorHost, VirtualHost
from tests.support.hosts import Stage


@pytest.mark.parametrize("kind", ["selector", "virtual", "virtual, 3 bytes at a time"])
def test_what_comes_next_is_read_into_the_room_and_the_rest_elsewhere(kind: str) -> None:
    host = SelectorHost("test") if kind == "selector" else VirtualHost(chunk_bytes=3 if "3" in kind else 0)
    host.start()
    with closing(host):
        stage = Stage(host)
        client, handle, server, server_handle = stage.pair()
        memory = bytearray(12)
        stage.tell(
            server_handle, Fill(-1, memoryview(memory)[2:]), Fill(99, memoryview(memory)), Write(-1, [b"go"])
        )
        stage.until(lambda: client.bytes_on(1) == b"go")
        stage.tell(handle, Write(1, [b"0123456"]), Write(1, [b"789abcdef"]))
        stage.until(lambda: server.bytes_on(-1) == b"0123456789abcdef")
    assert memory == b"\0\x000123456789"
    assert (
        b"".join(event.data for event in server.of(Received) if isinstance(event.data, memoryview))
        == b"0123456789"
    )
