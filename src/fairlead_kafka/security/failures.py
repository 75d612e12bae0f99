"""Explanations of failed TLS handshakes: the cause, the place, and the remedy. Connects to the
broker once more if that gives details, on a thread of its own."""

from __future__ import annotations

import datetime
import socket
import ssl
import struct
from dataclasses import dataclass

from fairlead_kafka.base.errors import AuthenticationFailed
from fairlead_kafka.base.ids import SocketAddress
from fairlead_kafka.security.tls_sockets import tls_context

Address = tuple[socket.AddressFamily, SocketAddress]

PROBE_S = 2.0
"""Seconds to wait for the broker's certificate or its answer in plaintext: for a message only."""
_EXPIRED, _NOT_YET = 10, 9
_WRONG_NAME = (62, 64)
_UNTRUSTED = (2, 18, 19, 20, 21)
"""OpenSSL's X509_V_ERR_*: an issuer that is not there, a certificate that issued itself."""
_CLIENT_CERTIFICATE = (
    "CERTIFICATE_REQUIRED",
    "BAD_CERTIFICATE",
    "UNKNOWN_CA",
    "CERTIFICATE_EXPIRED",
    "CERTIFICATE_UNKNOWN",
    "ACCESS_DENIED",
)
_NOT_TLS = (
    "WRONG_VERSION_NUMBER",
    "HTTP_REQUEST",
    "UNKNOWN_PROTOCOL",
    "RECORD_LAYER_FAILURE",
    "PACKET_LENGTH_TOO_LONG",
    "UNEXPECTED_MESSAGE",
)
_API_VERSIONS = struct.pack(">ihhih", 10, 18, 0, 0, -1)
"""ApiVersions in version 0, which every Kafka broker answers, log-in or not."""


@dataclass(frozen=True)
class Facts:
    """Facts about a connection, known at this end, that explain why its TLS handshake failed.

    `trust`: `ssl.truststore.location`, or empty; `shows`: this side has a certificate of its own.
    """

    host: str
    address: Address | None
    trust: str
    trusts_texts: bool
    shows: bool
    versions: str

    @property
    def port(self) -> str:
        """The broker's port as ":9093"; empty if it is not known."""
        port = None if self.address is None else self.address[1][1]
        return f":{port}" if isinstance(port, int) else ""


def explain(facts: Facts, error: OSError | None) -> tuple[str, Exception | None]:
    """The reason of a failed handshake in words, and AuthenticationFailed if trying again does not
    help. `error` None: the peer closed the connection. May connect to the broker again, so it takes
    time."""
    where = f"{facts.host}{facts.port}"
    if isinstance(error, ssl.SSLCertVerificationError):
        text = _certificate(facts, where, error)
    elif isinstance(error, ssl.SSLError) and not isinstance(error, ssl.SSLEOFError):
        text = _alert(facts, where, error.reason or str(error))
    elif _speaks_plaintext(facts.address):
        text = (
            f"{where} speaks no TLS at this port: set security.protocol to PLAINTEXT or SASL_PLAINTEXT, "
            "or use the port for TLS"
        )
    else:
        return "closed by the peer in the TLS handshake", None
    return text, AuthenticationFailed(text)


def _certificate(facts: Facts, where: str, error: ssl.SSLCertVerificationError) -> str:
    found = _shown_certificate(facts)
    who = f"the certificate of {where}" + (
        "" if found is None else f" (subject {found.subject}, issuer {found.issuer})"
    )
    code = error.verify_code
    if code in (_EXPIRED, _NOT_YET):
        now = datetime.datetime.now(datetime.UTC)
        own = found is not None and not found.start <= now <= found.end
        if found is None or not own:
            return (
                f"{who}: a certificate of its chain is "
                f"{'expired' if code == _EXPIRED else 'not valid yet'}; have it renewed"
            )
        if code == _EXPIRED:
            return f"{who} expired on {found.end:%Y-%m-%d %H:%M} UTC; have it renewed"
        return f"{who} is valid from {found.start:%Y-%m-%d %H:%M} UTC on; check the clocks of both ends"
    if code in _WRONG_NAME:
        names = "another host" if found is None else (", ".join(found.names) or "no host")
        return (
            f"{who} is for {names}, and not for {facts.host}: use a name that is in it in bootstrap.servers "
            "and the brokers' "
            "advertised.listeners, or leave ssl.endpoint.identification.algorithm empty"
        )
    if code in _UNTRUSTED:
        trust = f"ssl.truststore.location {facts.trust}" if facts.trust else "the system's trust store"
        trust = "ssl.truststore.certificates" if facts.trusts_texts else trust
        todo = (
            "put its issuer's certificate there"
            if facts.trust or facts.trusts_texts
            else "name its issuer's in ssl.truststore.location"
        )
        return f"{who} was issued by nobody whom {trust} trusts; {todo}"
    return f"{who} is refused: {error.verify_message}"


def _alert(facts: Facts, where: str, reason: str) -> str:
    if any(part in reason for part in _CLIENT_CERTIFICATE):
        if not facts.shows:
            return f"{where} wants a certificate of this client: set ssl.keystore.location"
        said = (
            reason.removeprefix("TLSV13_ALERT_")
            .removeprefix("TLSV1_ALERT_")
            .removeprefix("SSLV3_ALERT_")
            .replace("_", " ")
            .lower()
        )
        return f"{where} refused the certificate of this client ({said}): check who issued it, and its dates"
    if any(part in reason for part in _NOT_TLS):
        if _speaks_plaintext(facts.address):
            return (
                f"{where} speaks no TLS at this port: set security.protocol to PLAINTEXT or "
                "SASL_PLAINTEXT, or use the port for TLS"
            )
        return (
            f"{where} answered with something that is not TLS ({reason.replace('_', ' ').lower()}): is "
            "this the right port?"
        )
    if "PROTOCOL_VERSION" in reason or "UNSUPPORTED_PROTOCOL" in reason:
        return f"{where} speaks no version of TLS that ssl.enabled.protocols has ({facts.versions})"
    if "HANDSHAKE_FAILURE" in reason or "NO_CIPHERS" in reason or "NO_SHARED_CIPHER" in reason:
        more = "" if facts.shows else ", or it wants a certificate of this client (ssl.keystore.location)"
        return (
            f"{where} shares no cipher suite with this client (ssl.cipher.suites, ssl.enabled.protocols "
            f"{facts.versions}){more}"
        )
    return f"the TLS handshake with {where} failed: {reason.replace('_', ' ').lower()}"


@dataclass(frozen=True)
class Certificate:
    """Subject, issuer, validity and host names that a certificate states."""

    subject: str
    issuer: str
    start: datetime.datetime
    end: datetime.datetime
    names: tuple[str, ...]


def _shown_certificate(facts: Facts) -> Certificate | None:
    """The certificate that the broker shows, trusted or not; None if it cannot be had."""
    if facts.address is None:
        return None
    context = tls_context(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        with (
            _connected(facts.address) as plain,
            context.wrap_socket(plain, server_hostname=facts.host) as secured,
        ):
            der = secured.getpeercert(binary_form=True)
        return None if der is None else shown_certificate(der)
    except (OSError, ValueError):
        return None


def shown_certificate(der: bytes) -> Certificate:
    """The statements of a certificate in DER, trusted or not. ValueError if it is none."""
    try:
        return _parsed(der)
    except (
        Exception
    ) as error:  # a stranger's bytes: whatever the parser raises over them, the handshake has failed already
        raise ValueError(f"not a certificate that can be read: {error}") from None


def _parsed(der: bytes) -> Certificate:
    from asn1crypto import x509

    certificate = x509.Certificate.load(der)
    alternative = certificate.subject_alt_name_value
    names = (
        []
        if alternative is None
        else [str(name.native) for name in alternative if name.name in ("dns_name", "ip_address")]
    )
    if alternative is None:
        names = [str(certificate.subject.native.get("common_name", ""))]
    return Certificate(
        certificate.subject.human_friendly,
        certificate.issuer.human_friendly,
        certificate.not_valid_before,
        certificate.not_valid_after,
        tuple(filter(None, names)),
    )


def _speaks_plaintext(address: Address | None) -> bool:
    """True if a Kafka broker answers there without TLS."""
    if address is None:
        return False
    try:
        with _connected(address) as sock:
            sock.sendall(_API_VERSIONS)
            answer = b""
            while len(answer) < 8:
                piece = sock.recv(8 - len(answer))
                if not piece:
                    return False
                answer += piece
    except OSError:
        return False
    size_bytes: int
    correlation_id: int
    size_bytes, correlation_id = struct.unpack(">ii", answer)
    return 4 < size_bytes < 1 << 20 and correlation_id == 0


def _connected(address: Address) -> socket.socket:
    family, name = address
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.settimeout(PROBE_S)
        sock.connect(name)
    except BaseException:
        sock.close()
        raise
    return sock
