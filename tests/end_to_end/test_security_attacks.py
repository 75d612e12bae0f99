"""Strangers at the door: what somebody without a password can make our brokers do, which is to be
little, and for a while."""

from __future__ import annotations

import os
import socket
import ssl
import struct
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlead_kafka import Cluster, FairleadError, Producer
from fairlead_kafka.wire import ApiKey, PrivateApi
from tests.support.secured_cluster import PASSWORD, USER, SecuredCluster, Stranger, secured_cluster
from tests.support.waiting import PATIENCE_S, until

HUNDREDS = 300
IDLE_MS = 3_000
SERVED_WITHIN_S = 10.0
RSS_PER_CONNECTION_MAX_BYTES = 256 * 1024
"""Of one that does nothing but hold on: sockets, buffers of OpenSSL and a session. Measured: 4 to
60 KB."""


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredCluster]:
    with secured_cluster(tmp_path_factory.mktemp("security")) as running:
        yield running


@pytest.fixture(scope="module")
def besieged() -> Iterator[Cluster]:
    """A broker in a process of its own, whose memory can be told."""
    with Cluster(
        1, processes=True, security="sasl_ssl", config={"connections.max.idle.ms": IDLE_MS}
    ) as cluster:
        yield cluster


def rss_bytes(cluster: Cluster) -> int:
    pages = Path(f"/proc/{cluster.broker(0).pid}/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def is_served(cluster: Cluster) -> None:
    """Somebody who may come in, comes in."""
    began_s = time.monotonic()
    with Producer(cluster.client_settings("alice")) as producer:
        producer.send("served", b"v").result(timeout_s=PATIENCE_S)
    assert time.monotonic() - began_s < SERVED_WITHIN_S


def client_hello(address: str) -> bytes:
    """The first flight of a handshake."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    shaking = context.wrap_bio(incoming, outgoing, server_hostname=address.rpartition(":")[0])
    with pytest.raises(ssl.SSLWantReadError):
        shaking.do_handshake()
    return outgoing.read()


STAGES = ["TCP only", "half a ClientHello", "a ClientHello", "SaslHandshake"]


@pytest.mark.parametrize("stage", STAGES)
def test_half_handshakes_by_the_hundred_keep_nobody_out_and_are_ended(besieged: Cluster, stage: str) -> None:
    address = besieged.bootstrap_servers
    trust = (
        Path(str(besieged.client_settings("alice")["ssl.truststore.location"]))
        if stage == STAGES[3]
        else None
    )
    is_served(besieged)
    before_bytes, began_s = rss_bytes(besieged), time.monotonic()
    hello = client_hello(address)
    first = {"half a ClientHello": hello[: len(hello) // 2], "a ClientHello": hello}.get(stage, b"")
    strangers: list[Stranger] = []
    try:
        for _ in range(HUNDREDS):
            strangers.append(stranger := Stranger(address, trust))
            stranger.send(
                stranger.request(ApiKey.SASL_HANDSHAKE, 1, mechanism="SCRAM-SHA-256") if trust else first
            )
        is_served(besieged)
        grown_bytes = rss_bytes(besieged) - before_bytes
        assert grown_bytes < HUNDREDS * RSS_PER_CONNECTION_MAX_BYTES
        assert all(stranger.drained() for stranger in strangers), "connections.max.idle.ms ends them"
        print(
            f"BADDAY {stage}: {grown_bytes / HUNDREDS / 1024:.1f} KiB each, ended after "
            f"{time.monotonic() - began_s:.1f} s"
        )
    finally:
        for stranger in strangers:
            stranger.close()
    is_served(besieged)


def test_above_max_connections_everybody_waits_until_idle_ones_are_ended() -> None:
    with Cluster(
        1, security="sasl_ssl", config={"max.connections": 20, "connections.max.idle.ms": 2_000}
    ) as cluster:
        strangers = [Stranger(cluster.bootstrap_servers) for _ in range(50)]
        with Producer(cluster.client_settings("alice")) as producer:
            assert producer.send("patient", b"v").result(timeout_s=PATIENCE_S).offset == 0
        for stranger in strangers:
            stranger.close()


def test_thousands_of_connections_leave_a_broker_as_it_was(besieged: Cluster) -> None:
    host, port = besieged.bootstrap_servers.rsplit(":", 1)
    rounds: list[int] = []
    for _ in range(3):
        sockets = [socket.create_connection((host, int(port)), timeout=PATIENCE_S) for _ in range(1_000)]
        is_served(besieged)
        for each in sockets:
            each.close()
        is_served(besieged)
        rounds.append(rss_bytes(besieged))
    print(f"BADDAY thousands: {[round(each / 2**20, 1) for each in rounds]} MiB")
    assert rounds[2] - rounds[0] < 16 << 20, "what the first thousand took the third has again"


@pytest.mark.parametrize("size_bytes", [2**31 - 1, 100 << 20, 524_289, -1])
def test_a_frame_that_is_too_large_before_the_log_in_ends_the_connection(
    secured: SecuredCluster, size_bytes: int
) -> None:
    with Stranger(secured.settings("SASL")["bootstrap.servers"]) as stranger:
        stranger.send(struct.pack(">i", size_bytes))
        assert stranger.ended()


def test_a_slow_one_who_sends_byte_by_byte_holds_up_nobody_and_is_understood(secured: SecuredCluster) -> None:
    with (
        Stranger(secured.settings("SASL")["bootstrap.servers"]) as stranger,
        Producer(secured.user("SASL")) as producer,
    ):
        for byte in stranger.request(ApiKey.SASL_HANDSHAKE, 1, mechanism="PLAIN"):
            stranger.send(bytes([byte]))
            assert producer.send("beside", b"v").result(timeout_s=PATIENCE_S)
        assert stranger.answer() is not None


@pytest.mark.parametrize(
    "api_key", [ApiKey.METADATA, ApiKey.PRODUCE, ApiKey.SASL_AUTHENTICATE, PrivateApi.REPLICATE]
)
@pytest.mark.parametrize("shaken", [False, True])
def test_nothing_but_the_log_in_is_taken_before_it(
    secured: SecuredCluster, api_key: int, shaken: bool
) -> None:
    if shaken and api_key == ApiKey.SASL_AUTHENTICATE:
        pytest.skip("that is its turn")
    with Stranger(secured.settings("SASL")["bootstrap.servers"], client_id="broker-1") as stranger:
        if shaken:
            assert stranger.ask(ApiKey.SASL_HANDSHAKE, 1, mechanism="PLAIN") is not None
        stranger.send(struct.pack(">ihhih", 10, int(api_key), 0, 7, -1))
        assert stranger.ended()


def test_what_is_pipelined_behind_a_failing_log_in_is_never_served(secured: SecuredCluster) -> None:
    with Stranger(secured.settings("SASL")["bootstrap.servers"]) as stranger:
        assert stranger.ask(ApiKey.SASL_HANDSHAKE, 1, mechanism="PLAIN") is not None
        began_s = time.monotonic()
        wrong = stranger.request(ApiKey.SASL_AUTHENTICATE, 2, auth_bytes=f"\0{USER}\0wrong".encode())
        right = stranger.request(ApiKey.SASL_AUTHENTICATE, 2, auth_bytes=f"\0{USER}\0{PASSWORD}".encode())
        stranger.send(
            wrong, right, stranger.request(ApiKey.METADATA, 12, topics=None, allow_auto_topic_creation=False)
        )
        answer = stranger.answer()
        assert answer is not None
        assert b"Invalid username or password" in answer
        assert time.monotonic() - began_s >= 0.1, "connection.failed.authentication.delay.ms"
        assert stranger.ended()


def test_passwords_are_tried_slowly_on_one_connection_after_the_other(secured: SecuredCluster) -> None:
    began_s, tries = time.monotonic(), 10
    for number in range(tries):
        with Stranger(secured.settings("SASL")["bootstrap.servers"]) as stranger:
            answer = stranger.log_in(password=f"guess-{number}")
            assert answer is not None
            assert answer.error_code == 58
    assert time.monotonic() - began_s >= tries * 0.1


def test_nobody_becomes_somebody_else_by_renewing(secured: SecuredCluster) -> None:
    secured.user("SASL", "mallory")
    with Stranger(secured.settings("SHORT")["bootstrap.servers"], secured.certificates.trust) as stranger:
        assert stranger.log_in() is not None
        assert stranger.ask(ApiKey.SASL_HANDSHAKE, 1, mechanism="SCRAM-SHA-256") is not None
        answer = stranger.ask(ApiKey.SASL_AUTHENTICATE, 2, auth_bytes=b"n,,n=mallory,r=abcdefghijkl")
        assert answer is not None
        assert "not supported for re-authentication" in answer.error_message
        assert stranger.ended()


def test_what_brokers_ask_each_other_is_asked_by_nobody_else(secured: SecuredCluster) -> None:
    """A user without CLUSTER_ACTION, and anybody at a listener that brokers do not use."""
    with Stranger(secured.settings("SASL")["bootstrap.servers"], client_id="broker-1") as stranger:
        assert stranger.log_in() is not None
        stranger.send(struct.pack(">ihhih", 10, int(PrivateApi.REPLICATE), 0, 7, -1))
        assert stranger.ended()
    with Stranger(
        secured.settings("TLS")["bootstrap.servers"], secured.certificates.trust, "broker-1"
    ) as stranger:
        stranger.send(struct.pack(">ihhih", 10, int(PrivateApi.REPLICATE), 0, 7, -1))
        assert stranger.ended(), "ANONYMOUS may do everything here, but brokers come in elsewhere"


def test_a_renegotiation_is_refused(secured: SecuredCluster) -> None:
    address = secured.settings("TLS")["bootstrap.servers"]
    command = [
        "openssl",
        "s_client",
        "-connect",
        address,
        "-tls1_2",
        "-CAfile",
        str(secured.certificates.trust),
    ]
    try:
        ran = subprocess.run(command, input=b"R\n", capture_output=True, timeout=PATIENCE_S, check=False)
    except FileNotFoundError:
        pytest.skip("there is no openssl")
    assert b"RENEGOTIATING" in ran.stdout + ran.stderr
    assert b"no renegotiation" in ran.stderr.lower()


def test_garbage_at_every_port_ends_only_its_own_connection(secured: SecuredCluster) -> None:
    garbage = [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\xff\xff" + os.urandom(2_000),
        os.urandom(4_000),
        b"\0" * 4_000,
    ]
    for listener in ("SASL", "SASLTLS", "TLS"):
        for data in garbage:
            with Stranger(secured.settings(listener)["bootstrap.servers"]) as stranger:
                stranger.send(data)
    with Producer(secured.user("SASLTLS")) as producer:

        def sends() -> bool:
            try:
                return bool(producer.send("after-garbage", b"v").result(timeout_s=PATIENCE_S))
            except FairleadError:
                return False

        until(sends)
