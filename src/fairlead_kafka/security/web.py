"""Requests to web servers: URLs from settings, and answers of bounded size in bounded time, by
`urllib`. No redirect is followed."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.base.units import KIB
from fairlead_kafka.security.tokens import shown

if TYPE_CHECKING:
    import ssl
    from http.client import HTTPResponse
    from urllib.request import OpenerDirector

_CHUNK_BYTES = 64 * KIB


class Url(NamedTuple):
    """Parts of a URL. `where` is how errors show it: without user info, query and fragment."""

    scheme: str
    host: str
    where: str
    user_info: bool


def checked_url(url: str, key: str) -> Url:
    """A URL of https or http out of the setting `key`. ConfigError if it cannot be asked."""
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url)
        scheme, host, port = parts.scheme, parts.hostname or "", parts.port
        host.encode("idna")
    except ValueError:
        raise ConfigError(f"{key}: this is not a URL: check its host and port") from None
    if scheme not in ("https", "http") or not host:
        raise ConfigError(f"{key}: a URL of https is needed, such as https://idp.example.com/oauth2/token")
    netloc = f"[{host}]" if ":" in host else host
    where = f"{scheme}://{netloc}{'' if port is None else f':{port}'}{parts.path}"
    if not url.isascii() or not url.isprintable() or " " in url:
        raise ConfigError(f"{key}: {shown(where)} has characters that a URL may not have: encode them")
    return Url(scheme, host, where, "@" in parts.netloc)


def read_body(
    response: HTTPResponse,
    largest_bytes: int,
    timeout_s: float,
    monotonic_s: Callable[[], float] = time.monotonic,
) -> bytes | None:
    """Body of an answer; None if it has more than `largest_bytes`.

    TimeoutError if it is not complete within `timeout_s` seconds, ConnectionResetError if it breaks
    off.
    """
    expected_bytes = response.length
    data = bytearray()
    deadline_s = monotonic_s() + timeout_s
    while expected_bytes is None or len(data) < expected_bytes:
        part = response.read1(_CHUNK_BYTES)
        if not part:
            break
        data += part
        if len(data) > largest_bytes:
            return None
        if monotonic_s() > deadline_s:
            raise TimeoutError
    if expected_bytes is not None and len(data) < expected_bytes:
        raise ConnectionResetError("its answer broke off")
    return bytes(data)


def is_loopback(host: str) -> bool:
    """Whether a host is this machine, whatever the network does."""
    from ipaddress import ip_address

    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def opener(read_timeout_s: float, ssl_context: ssl.SSLContext | None) -> OpenerDirector:
    """An opener of http and https alone. It follows no redirect, raises no exception for any HTTP
    status, and its connections have `read_timeout_s` seconds for each read."""
    from http.client import HTTPConnection, HTTPSConnection
    from urllib.request import HTTPHandler, HTTPSHandler, OpenerDirector, ProxyHandler, Request

    class Plain(HTTPConnection):
        def connect(self) -> None:
            super().connect()
            self.sock.settimeout(read_timeout_s)

    class Encrypted(HTTPSConnection):
        def connect(self) -> None:
            super().connect()
            self.sock.settimeout(read_timeout_s)

    class PlainHandler(HTTPHandler):
        def http_open(self, req: Request) -> HTTPResponse:
            return self.do_open(Plain, req)

    class EncryptedHandler(HTTPSHandler):
        def https_open(self, req: Request) -> HTTPResponse:
            return self.do_open(Encrypted, req, context=ssl_context)

    director = OpenerDirector()
    for handler in (ProxyHandler(), PlainHandler(), EncryptedHandler(context=ssl_context)):
        director.add_handler(handler)
    return director
