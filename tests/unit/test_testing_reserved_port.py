"""Ports that are kept for a server that is about to start."""

from __future__ import annotations

import errno
import socket
import sys

import pytest

from fairlead_kafka.testing.reserved_port import ReservedPort

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux keeps a port for a server")


def _bind(port: int, *, as_server: bool) -> None:
    """Listen at a port as a server does that sets SO_REUSEADDR, or only take it."""
    with socket.socket() as server:
        if as_server:
            server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind(("127.0.0.1", port))
        if as_server:
            server.listen()
            with socket.create_connection(("127.0.0.1", port)), server.accept()[0]:
                pass


def test_nobody_else_is_given_a_reserved_port() -> None:
    with ReservedPort() as port, pytest.raises(OSError) as refused:
        _bind(port.number, as_server=False)
    assert refused.value.errno == errno.EADDRINUSE


def test_the_server_it_is_for_listens_at_it_more_than_once() -> None:
    with ReservedPort() as port:
        for _ in range(3):
            _bind(port.number, as_server=True)


def test_a_port_that_is_taken_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(OSError) as refused:
        ReservedPort("localhost", taken.getsockname()[1])
    assert refused.value.errno == errno.EADDRINUSE


def test_a_port_that_was_given_back_is_free() -> None:
    port = ReservedPort()
    port.close()
    port.close()
    _bind(port.number, as_server=False)
