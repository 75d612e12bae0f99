"""The server's end of TLS, against the client's end of ours."""

from __future__ import annotations

import base64
import logging
import os
import socket
import ssl
import struct
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fairlead_kafka.base.config_broker import BROKER_CONFIGS
from fairlead_kafka.base.config_client import CLIENT_CONFIGS
from fairlead_kafka.base.errors import AuthenticationFailed, ConfigError
from fairlead_kafka.security.server_tls import ServerTls
from fairlead_kafka.security.tls import ClientTls
from fairlead_kafka.testing.certificates import PASSWORD, Certificates

STORES = Path(__file__).parents[1] / "data" / "security"


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    return Certificates(tmp_path)


def server_tls(**more: Any) -> ServerTls:
    return ServerTls(
        BROKER_CONFIGS.parse("broker", {key.replace("_", "."): value for key, value in more.items()})
    )


def client_tls(certificates: Certificates, **more: Any) -> ClientTls:
    given = {
        "bootstrap.servers": "localhost:1",
        "security.protocol": "SSL",
        "ssl.truststore.location": str(certificates.trust),
    }
    return ClientTls(
        CLIENT_CONFIGS.parse(
            "admin", {**given, **{key.replace("_", "."): value for key, value in more.items()}}
        )
    )


def shaken(
    server: ServerTls, client: ClientTls
) -> tuple[str | None, str | None, tuple[str, str, int] | None]:
    """Version of TLS, the subject that the server sees, and the cipher; SSLError if it refuses. In
    memory, without sockets."""
    context, name = client.wrap("localhost")
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = server.context().wrap_bio(to_server, to_client, server_side=True)
    theirs = context.wrap_bio(to_client, to_server, server_hostname=name)
    for _ in range(10):
        done = True
        for end in (theirs, ours):
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                done = False
        if done:
            return ours.version(), server.subject(ours.getpeercert(binary_form=True)), ours.cipher()
    raise AssertionError("the handshake does not end")


@pytest.mark.parametrize("kind", ["pem", "pkcs12", "jks"])
def test_a_key_store_of_any_kind_serves(certificates: Certificates, kind: str) -> None:
    if kind == "jks":
        own, more = str(STORES / "identity.jks"), {"ssl.keystore.password": PASSWORD}
    else:
        pem = certificates.issue("localhost")
        own, more = (
            (str(pem), {})
            if kind == "pem"
            else (str(certificates.pkcs12(pem)), {"ssl.keystore.password": PASSWORD})
        )
    server = server_tls(ssl_keystore_location=own, **more)
    client = (
        client_tls(certificates)
        if kind != "jks"
        else client_tls(certificates, enable_ssl_certificate_verification="false")
    )
    assert shaken(server, client)[:2] == ("TLSv1.3", None)


def test_clients_show_a_certificate_if_they_are_asked(certificates: Certificates) -> None:
    own = str(certificates.issue("localhost"))
    client = client_tls(certificates, ssl_keystore_location=str(certificates.issue("alice@example.com")))
    for wanted in ("none", "requested", "required"):
        server = server_tls(
            ssl_keystore_location=own, ssl_truststore_location=str(certificates.trust), ssl_client_auth=wanted
        )
        subject = shaken(server, client)[1]
        assert (subject is None) == (wanted == "none"), wanted
        if wanted == "required":
            with pytest.raises(ssl.SSLError, match="PEER_DID_NOT_RETURN_A_CERTIFICATE"):
                shaken(server, client_tls(certificates))
        else:
            assert shaken(server, client_tls(certificates))[1] is None
    rules = "RULE:^OU=.*,O=(\\w+).*$/$1/U"
    server = server_tls(
        ssl_keystore_location=own,
        ssl_truststore_location=str(certificates.trust),
        ssl_client_auth="required",
        ssl_principal_mapping_rules=rules,
    )
    assert shaken(server, client)[1] == "TRUSTME"


@pytest.mark.parametrize("wanted", ["requested", "required"])
def test_a_certificate_of_a_stranger_or_an_old_one_is_refused(
    certificates: Certificates, tmp_path: Path, wanted: str
) -> None:
    (tmp_path / "other").mkdir()
    server = server_tls(
        ssl_keystore_location=str(certificates.issue("localhost")),
        ssl_truststore_location=str(certificates.trust),
        ssl_client_auth=wanted,
    )
    for own in (Certificates(tmp_path / "other").issue("mallory"), certificates.issue("alice", expired=True)):
        with pytest.raises(ssl.SSLCertVerificationError):
            shaken(server, client_tls(certificates, ssl_keystore_location=str(own)))


def test_versions_and_suites_are_those_of_the_settings(certificates: Certificates) -> None:
    own = str(certificates.issue("localhost"))
    suite = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"
    server = server_tls(ssl_keystore_location=own, ssl_enabled_protocols="TLSv1.2", ssl_cipher_suites=suite)
    version, _, cipher = shaken(server, client_tls(certificates))
    assert version == "TLSv1.2"
    assert cipher is not None
    assert cipher[0].endswith("AES256-GCM-SHA384")
    with pytest.raises(ssl.SSLError):
        shaken(server, client_tls(certificates, ssl_enabled_protocols="TLSv1.3"))
    assert server.context().options & ssl.OP_NO_RENEGOTIATION


def test_what_a_client_sends_instead_of_tls_raises_nothing_but_the_handshake_s_error(
    certificates: Certificates,
) -> None:
    server = server_tls(ssl_keystore_location=str(certificates.issue("localhost")))
    for noise in (
        b"",
        b"\0\0\0\x0a\0\x12\0\0",
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\xff\xff" + b"x" * 100,
    ):
        ours, theirs = socket.socketpair()
        with ours, theirs:
            theirs.sendall(noise)
            theirs.shutdown(socket.SHUT_WR)
            with pytest.raises((ssl.SSLError, ConnectionError)):
                server.context().wrap_socket(ours, server_side=True)


def test_a_renewed_certificate_is_shown_to_the_next_client(
    certificates: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    own = certificates.folder / "own.pem"
    own.write_bytes(certificates.issue("localhost").read_bytes())
    server = server_tls(ssl_keystore_location=str(own))
    first = server.context()
    assert server.context() is first
    own.write_text("half writ")
    with caplog.at_level(logging.WARNING, logger="fairlead_kafka.security"):
        assert server.context() is first
        assert server.context() is first
    assert caplog.text.count("the certificates read before are used") == 1, (
        "it is said once, and not to each client"
    )
    own.write_bytes(certificates.issue("localhost", "other").read_bytes())
    assert server.context() is not first
    assert shaken(server, client_tls(certificates))[0] == "TLSv1.3"


def test_a_trust_store_that_openssl_cannot_use_is_told(certificates: Certificates) -> None:
    own = str(certificates.issue("localhost"))
    hollow = bytes.fromhex(
        "3014 300d 020101" + "3000" * 5 + "3000 030100"
    )  # all parts are there, and nothing is in them
    text = f"-----BEGIN CERTIFICATE-----\n{base64.b64encode(hollow).decode()}\n-----END CERTIFICATE-----\n"
    with pytest.raises(ConfigError, match=r"ssl\.truststore: OpenSSL cannot use a certificate"):
        server_tls(ssl_keystore_location=own, ssl_truststore_certificates=text, ssl_client_auth="required")


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_a_session_that_is_resumed_is_of_the_same_client(certificates: Certificates, version: str) -> None:
    server = server_tls(
        ssl_keystore_location=str(certificates.issue("localhost")),
        ssl_truststore_location=str(certificates.trust),
        ssl_client_auth="required",
        ssl_enabled_protocols=version,
    )
    context, _ = client_tls(certificates, ssl_keystore_location=str(certificates.issue("alice"))).wrap(
        "localhost"
    )
    session = None
    subjects = []
    for _nth in range(2):
        to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
        ours = server.context().wrap_bio(to_server, to_client, server_side=True)
        theirs = context.wrap_bio(to_client, to_server, server_hostname="localhost", session=session)
        for step in (
            theirs.do_handshake,
            ours.do_handshake,
            theirs.do_handshake,
            ours.do_handshake,
            partial(ours.write, b"x"),
            theirs.read,
        ):
            with suppress(ssl.SSLWantReadError):
                step()
        subjects.append(server.subject(ours.getpeercert(binary_form=True)))
        session = theirs.session
    assert theirs.session_reused
    assert subjects[0] is not None
    assert subjects[0] == subjects[1]


def test_a_broker_without_a_certificate_is_none(certificates: Certificates) -> None:
    with pytest.raises(ConfigError, match=r"ssl\.keystore\.location: is needed"):
        server_tls()
    with pytest.raises(ConfigError, match=r"ssl\.keystore\.location /nowhere: cannot be read"):
        server_tls(ssl_keystore_location="/nowhere")
    with pytest.raises(ConfigError, match=r"ssl\.principal\.mapping\.rules"):
        server_tls(
            ssl_keystore_location=str(certificates.issue("localhost")), ssl_principal_mapping_rules="nonsense"
        )


def test_a_certificate_that_names_nobody_is_refused(certificates: Certificates) -> None:
    server = server_tls(
        ssl_keystore_location=str(certificates.issue("localhost")), ssl_principal_mapping_rules="RULE:CN=x/x/"
    )
    assert server.subject(None) is None
    with pytest.raises(AuthenticationFailed, match="not a certificate"):
        server.subject(b"x")


@pytest.mark.parametrize("end", ["server", "client"])
def test_a_connection_that_is_reset_before_tls_begins_leaves_no_descriptor(
    certificates: Certificates, end: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        theirs = socket.create_connection(listener.getsockname())
        ours, _ = listener.accept()
    theirs.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    theirs.close()  # with no time to linger, by a reset
    if end == "server":
        context = server_tls(ssl_keystore_location=str(certificates.issue("localhost"))).context()
    else:
        context, _ = client_tls(certificates).wrap("localhost")
    server, name = end == "server", None if end == "server" else "localhost"
    descriptor = ours.fileno()
    with pytest.raises(ConnectionResetError):
        context.wrap_socket(ours, server_side=server, do_handshake_on_connect=False, server_hostname=name)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)
