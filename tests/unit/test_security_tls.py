"""TLS contexts out of Kafka's settings, over sockets of this process, and what a failure is told
as."""

from __future__ import annotations

import logging
import os
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from fairlead_kafka.base.config_client import CLIENT_CONFIGS
from fairlead_kafka.base.errors import AuthenticationFailed, ConfigError
from fairlead_kafka.security.ciphers import openssl_names
from fairlead_kafka.security.tls import ClientTls
from fairlead_kafka.testing.certificates import PASSWORD, Certificates


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    return Certificates(tmp_path)


def client_tls(**more: Any) -> ClientTls:
    given = {"bootstrap.servers": "localhost:1", "security.protocol": "SSL"}
    return ClientTls(
        CLIENT_CONFIGS.parse(
            "admin", {**given, **{key.replace("_", "."): value for key, value in more.items()}}
        )
    )


def server_context(pem: Path, trust: Path | None = None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    if trust is not None:
        context.load_verify_locations(trust)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


@contextmanager
def serving(handle: Callable[[socket.socket], None]) -> Iterator[tuple[socket.AddressFamily, Any]]:
    """The address of a server that gives each connection to `handle`, which may raise."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection, suppress(OSError):
                    handle(connection)

        thread = threading.Thread(target=accept)
        thread.start()
        try:
            yield socket.AF_INET, listener.getsockname()
        finally:
            listener.shutdown(socket.SHUT_RDWR)
    thread.join()


def secured(context: ssl.SSLContext) -> Callable[[socket.socket], None]:
    def handle(connection: socket.socket) -> None:
        with context.wrap_socket(connection, server_side=True) as wrapped:
            wrapped.sendall(b"x")

    return handle


def shake(tls: ClientTls, address: Any, host: str = "localhost") -> tuple[str, Exception | None]:
    """What came of a connection: the version of TLS, or why it failed."""
    context, name = tls.wrap(host)
    with socket.create_connection(address[1]) as plain:
        try:
            with context.wrap_socket(plain, server_hostname=name) as wrapped:
                wrapped.recv(1)
                return str(wrapped.version()), None
        except OSError as error:
            return tls.explain(host, address, error)


@pytest.mark.parametrize("way", ["location", "folder", "text"])
def test_authorities_come_from_a_file_a_folder_or_a_text(
    certificates: Certificates, tmp_path: Path, way: str
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "ours.crt").write_bytes(certificates.trust.read_bytes())
    more = {
        "location": {"ssl.truststore.location": str(certificates.trust)},
        "folder": {"ssl.ca.location": str(folder)},
        "text": {"ssl.truststore.certificates": certificates.trust.read_text()},
    }[way]
    with serving(secured(server_context(certificates.issue("localhost")))) as address:
        assert shake(client_tls(**more), address) == ("TLSv1.3", None)


def test_a_brokers_own_certificate_may_be_trusted(certificates: Certificates) -> None:
    pem = certificates.issue("localhost")
    with serving(secured(server_context(pem))) as address:
        assert shake(client_tls(ssl_truststore_location=str(pem)), address)[1] is None


@pytest.mark.parametrize("way", ["pem", "pkcs12", "texts", "two files"])
def test_a_client_shows_its_certificate(certificates: Certificates, tmp_path: Path, way: str) -> None:
    own = certificates.issue("client")
    key, chain = own.read_text().split("-----END PRIVATE KEY-----\n")
    key += "-----END PRIVATE KEY-----\n"
    (tmp_path / "key.pem").write_text(key)
    (tmp_path / "chain.pem").write_text(chain)
    more: dict[str, str] = {
        "pem": {"ssl.keystore.location": str(own)},
        "pkcs12": {
            "ssl.keystore.location": str(certificates.pkcs12(own)),
            "ssl.keystore.password": PASSWORD,
            "ssl.keystore.type": "JKS",
        },
        "texts": {"ssl.keystore.key": key, "ssl.keystore.certificate.chain": chain},
        "two files": {
            "ssl.key.location": str(tmp_path / "key.pem"),
            "ssl.certificate.location": str(tmp_path / "chain.pem"),
        },
    }[way]
    context = server_context(certificates.issue("localhost"), certificates.trust)
    with serving(secured(context)) as address:
        before = set(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else set()
        tls = client_tls(ssl_truststore_location=str(certificates.trust), **more)
        assert not before or len(os.listdir("/proc/self/fd")) <= len(before), (
            "no descriptor of the key is left"
        )
        assert shake(tls, address)[1] is None
        reason, error = shake(client_tls(ssl_truststore_location=str(certificates.trust)), address)
    assert isinstance(error, AuthenticationFailed)
    assert "wants a certificate of this client: set ssl.keystore.location" in reason


def test_renewed_certificates_are_used_by_the_next_connection(
    certificates: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    trust = certificates.folder / "trust.pem"
    trust.write_text(certificates.trust.read_text())
    tls = client_tls(ssl_truststore_location=str(trust))
    first, _ = tls.wrap("localhost")
    assert tls.wrap("localhost")[0] is first
    trust.write_text("half writ")
    with caplog.at_level(logging.WARNING, logger="fairlead_kafka.security"):
        assert tls.wrap("localhost")[0] is first
    assert "the certificates read before are used" in caplog.text
    trust.write_text(certificates.trust.read_text() * 2)
    assert tls.wrap("localhost")[0] is not first


@pytest.mark.parametrize("way", ["folder", "file", "property", "dir", "location", "password"])
def test_files_in_a_folder_or_behind_a_reference_are_watched_too(
    certificates: Certificates, tmp_path: Path, way: str
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    pem, other = certificates.trust.read_text(), certificates.issue("localhost").read_text()
    other = other[other.index("-----BEGIN CERTIFICATE") :]
    watched, contents = {
        "folder": (folder / "ca.pem", (pem, other)),
        "file": (folder / "ca", (pem, other)),
        "dir": (folder / "ca", (pem, other)),
        "property": (folder / "p", tuple(f"ca={each!r}".replace("'", "") for each in (pem, other))),
        "location": (folder / "p", (f"at={certificates.trust}", f"at={folder / 'ca.pem'}")),
        "password": (folder / "p", ("one", "two")),
    }[way]
    (folder / "ca.pem").write_text(other)
    watched.write_text(contents[0])
    given = {
        "folder": {"ssl.ca.location": str(folder)},
        "file": {"ssl.truststore.certificates": f"${{file:{watched}}}"},
        "dir": {"ssl.truststore.certificates": f"${{dir:{folder}:ca}}"},
        "property": {"ssl.truststore.certificates": f"${{file:{watched}:ca}}"},
        "location": {"ssl.truststore.location": f"${{file:{watched}:at}}"},
        "password": {
            "ssl.truststore.location": str(certificates.trust),
            "ssl.key.password": f"${{file:{watched}}}",
        },
    }[way]
    tls = client_tls(**given)
    first, _ = tls.wrap("localhost")
    assert tls.wrap("localhost")[0] is first
    before = os.stat(folder)
    watched.write_text(contents[1])  # in place
    os.utime(folder, ns=(before.st_atime_ns, before.st_mtime_ns))
    second, _ = tls.wrap("localhost")
    assert second is not first
    assert way == "password" or first.get_ca_certs(True) != second.get_ca_certs(True)
    watched.unlink()
    assert tls.wrap("localhost")[0] is second or way == "password"
    assert tls.explain("localhost", None, ConnectionResetError("reset"))[0]


def test_why_a_handshake_failed_is_said(certificates: Certificates, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    ours = client_tls(ssl_truststore_location=str(certificates.trust))
    theirs = client_tls(ssl_truststore_location=str(Certificates(tmp_path / "other").trust))
    with serving(secured(server_context(certificates.issue("localhost", "broker-1")))) as address:
        assert "was issued by nobody whom ssl.truststore.location" in shake(theirs, address)[0]
        assert "is for localhost, broker-1, and not for elsewhere" in shake(ours, address, "elsewhere")[0]
        quiet = client_tls(
            ssl_truststore_location=str(certificates.trust), ssl_endpoint_identification_algorithm=""
        )
        assert shake(quiet, address, "elsewhere")[1] is None
        blind = client_tls(enable_ssl_certificate_verification="false")
        assert shake(blind, address, "elsewhere")[1] is None
        old = client_tls(ssl_truststore_location=str(certificates.trust), ssl_enabled_protocols="TLSv1.2")
        assert shake(old, address) == ("TLSv1.2", None)
    with serving(secured(server_context(certificates.issue("localhost", expired=True)))) as address:
        reason, error = shake(ours, address)
        assert isinstance(error, AuthenticationFailed)
        assert " expired on 20" in reason
        assert "have it renewed" in reason
    newest = server_context(certificates.issue("localhost"))
    newest.minimum_version = ssl.TLSVersion.TLSv1_3
    with serving(secured(newest)) as address:
        assert "speaks no version of TLS that ssl.enabled.protocols has (TLSv1.2)" in shake(old, address)[0]


def test_what_is_not_tls_is_recognized(certificates: Certificates) -> None:
    tls = client_tls(ssl_truststore_location=str(certificates.trust))

    def kafka(connection: socket.socket) -> None:
        if connection.recv(65_536)[:1] == b"\0":  # not a TLS record
            connection.sendall(b"\0\0\0\x0a\0\0\0\0\0\0\0\0\0\0")

    with serving(kafka) as address:
        for error in (None, ConnectionResetError()):
            reason, refusal = tls.explain("localhost", address, error)
            assert isinstance(refusal, AuthenticationFailed)
            assert (
                "speaks no TLS at this port: set security.protocol to PLAINTEXT or SASL_PLAINTEXT" in reason
            )
    with serving(lambda connection: connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")) as address:
        assert "answered with something that is not TLS" in shake(tls, address)[0]
    with serving(lambda connection: None) as address:
        assert tls.explain("localhost", address, None) == ("closed by the peer in the TLS handshake", None)
    assert tls.explain("localhost", address, None)[1] is None, "nobody is there any more"


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (
            {"ssl.truststore.location": "/nowhere.pem"},
            "ssl.truststore.location /nowhere.pem: cannot be read (no such file or directory)",
        ),
        (
            {"ssl.truststore.location": "TRUST", "ssl.truststore.certificates": "x"},
            "say the same; leave one of them out",
        ),
        ({"ssl.keystore.key": "x"}, "ssl.keystore.certificate.chain: is needed beside ssl.keystore.key"),
        (
            {"ssl.key.location": "TRUST", "ssl.keystore.location": "TRUST"},
            "ssl.keystore.location and ssl.key.location say the same",
        ),
        ({"ssl.keystore.location": "TRUST"}, "there is no PRIVATE KEY in it"),
        (
            {"ssl.enabled.protocols": "TLSv1.1"},
            "ssl.enabled.protocols: TLSv1.1 is not one of TLSv1.2, TLSv1.3",
        ),
        (
            {"ssl.enabled.protocols": "TLSv1.3", "ssl.protocol": "TLSv1.2"},
            "ssl.protocol is TLSv1.2, and ssl.enabled.protocols has",
        ),
        ({"ssl.cipher.suites": "NONSENSE"}, "ssl.cipher.suites: OpenSSL has none of NONSENSE"),
        ({"ssl.endpoint.identification.algorithm": "ldaps"}, "must be https, none or empty, got 'ldaps'"),
        ({"ssl.ca.location": "FOLDER"}, "no file in this folder ends in .pem, .crt, .cer"),
    ],
)
def test_settings_of_no_use_are_refused_when_the_client_is_made(
    certificates: Certificates, tmp_path: Path, more: dict[str, str], said: str
) -> None:
    (tmp_path / "empty").mkdir()
    places = {"TRUST": str(certificates.trust), "FOLDER": str(tmp_path / "empty")}
    with pytest.raises(ConfigError) as raised:
        client_tls(**{key: places.get(value, value) for key, value in more.items()})
    assert said in str(raised.value)


def test_a_key_that_is_anothers_is_told(certificates: Certificates, tmp_path: Path) -> None:
    one, other = (
        certificates.issue("client").read_text().split("-----END PRIVATE KEY-----\n") for _ in range(2)
    )
    key = one[0] + "-----END PRIVATE KEY-----\n"
    with pytest.raises(ConfigError, match="the private key is not that of the certificate"):
        client_tls(
            ssl_keystore_key=key,
            ssl_keystore_certificate_chain=other[1],
            ssl_truststore_location=str(certificates.trust),
        )


@pytest.mark.parametrize(
    ("suites", "expected"),
    [
        (("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",), "ECDHE-RSA-AES128-GCM-SHA256"),
        (("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",), "ECDHE-ECDSA-CHACHA20-POLY1305"),
        (("TLS_RSA_WITH_AES_256_CBC_SHA256",), "AES256-SHA256"),
        (("TLS_DHE_RSA_WITH_AES_128_CBC_SHA",), "DHE-RSA-AES128-SHA"),
        (("TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"), None),
        (("ECDHE-RSA-AES128-GCM-SHA256:AES128-SHA",), "ECDHE-RSA-AES128-GCM-SHA256:AES128-SHA"),
        ((), None),
    ],
)
def test_cipher_suites_have_names_in_java_and_in_openssl(
    suites: tuple[str, ...], expected: str | None
) -> None:
    assert openssl_names(suites) == expected
    if expected:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).set_ciphers(expected)
