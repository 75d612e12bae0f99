"""The keys that tokens are signed with (JWKS, RFC 7517): read from a URL, kept, and read again in
time.

They are read when the first token comes (from a file: when the listener is set up), once they are
as old as `sasl.oauthbearer.jwks.endpoint.refresh.ms`, when a file has changed, and when a token
names an unknown key: then at most once in ASK_AGAIN_S seconds, so that forged tokens do not cause
many requests. While the keys cannot be read, the last ones are used, however old they are.
"""

from __future__ import annotations

import base64
import json
import os
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from fairlead_kafka.base.errors import ConfigError, ConnectionFailed
from fairlead_kafka.base.json_types import Json
from fairlead_kafka.base.units import MIB
from fairlead_kafka.security.jwt import ALGORITHMS, CURVES, Jws
from fairlead_kafka.security.tokens import LOGGER, shown
from fairlead_kafka.security.web import checked_url, is_loopback, opener, read_body

if TYPE_CHECKING:
    from fairlead_kafka.security.jwt import PublicKey

URL_KEY: Final = "sasl.oauthbearer.jwks.endpoint.url"
KEYS_MAX_BYTES = MIB
"""Largest set of keys read: one has some 500 bytes, and providers have a handful of them."""
ASK_AGAIN_S = 10.0
"""Shortest time between two questions for a key that is not there, and after one that failed."""
TIMEOUT_S = 10.0
"""How long a connection to the URL may take, and how long its answer."""
_RSA_BITS_MIN = 2048
"""Shorter keys must not be used (RFC 7518, 3.3)."""

Stamp = tuple[int, int] | None


class VerificationKey(NamedTuple):
    """One public key. `key_id` and `algorithm` are None if the JWKS does not say."""

    key_id: str | None
    algorithm: str | None
    curve: str | None
    key: PublicKey


def parse_jwks(data: bytes) -> tuple[VerificationKey, ...]:
    """The keys of a JWKS that signatures can be verified with; others in it are left out.
    ValueError if there are none."""
    try:
        found: Json = json.loads(data)
    except (ValueError, RecursionError):
        raise ValueError("is no JSON") from None
    keys = found.get("keys") if isinstance(found, dict) else None
    if not isinstance(keys, list):
        raise ValueError('is no set of keys, which is {"keys": [...]}')
    usable = tuple(key for each in keys if isinstance(each, dict) and (key := _usable(each)) is not None)
    if not usable:
        raise ValueError(f"has no key for {', '.join(ALGORITHMS)}")
    return usable


def _usable(fields: Mapping[str, Json]) -> VerificationKey | None:
    """A key of a JWKS, made of its `fields`; None if it is of another kind, for another use, or
    damaged."""
    operations = fields.get("key_ops")
    if fields.get("use", "sig") != "sig" or (isinstance(operations, list) and "verify" not in operations):
        return None
    key_id, algorithm = (
        value if isinstance(value := fields.get(name), str) else None for name in ("kid", "alg")
    )
    kind, curve = fields.get("kty"), fields.get("crv")
    try:
        if kind == "RSA":
            return VerificationKey(key_id, algorithm, None, _rsa_key(fields))
        if kind == "EC" and isinstance(curve, str) and curve in CURVES:
            return VerificationKey(key_id, algorithm, curve, _curve_key(fields, curve))
    except (KeyError, TypeError, ValueError):
        return None
    return None


def _rsa_key(fields: Mapping[str, Json]) -> PublicKey:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicNumbers

    modulus = _number(fields["n"])
    if modulus.bit_length() < _RSA_BITS_MIN:
        raise ValueError("too short")
    return RSAPublicNumbers(_number(fields["e"]), modulus).public_key()


def _curve_key(fields: Mapping[str, Json], curve: str) -> PublicKey:
    from cryptography.hazmat.primitives.asymmetric import ec

    curves: dict[str, ec.EllipticCurve] = {
        "P-256": ec.SECP256R1(),
        "P-384": ec.SECP384R1(),
        "P-521": ec.SECP521R1(),
    }
    return ec.EllipticCurvePublicNumbers(
        _number(fields["x"]), _number(fields["y"]), curves[curve]
    ).public_key()


def _number(text: Json) -> int:
    if not isinstance(text, str):
        raise TypeError("not base64url")
    return int.from_bytes(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)), "big")


def select(keys: tuple[VerificationKey, ...], token: Jws) -> VerificationKey | None:
    """The key to verify a token by: the first key of the kind that the token's algorithm needs, and
    with the key id, if the token names one. As jose4j's `VerificationJwkSelector`."""
    curve = ALGORITHMS[token.algorithm].curve
    for key in keys:
        if (
            key.curve == curve
            and key.algorithm in (None, token.algorithm)
            and token.key_id in (None, key.key_id)
        ):
            return key
    return None


class Source(Protocol):
    """A source of keys: a file or a web server."""

    where: str
    """Name of the source in errors."""

    def read(self) -> bytes:
        """The bytes of the JWKS. OSError or ValueError if it cannot be read."""

    def stamp(self) -> Stamp:
        """A value that changes when the JWKS does; None if the source cannot tell."""


class _File:
    def __init__(self, path: str) -> None:
        self.where = path

    def read(self) -> bytes:
        with open(self.where, "rb") as file:
            data = file.read(KEYS_MAX_BYTES + 1)
        if len(data) > KEYS_MAX_BYTES:
            raise ValueError(f"is larger than {KEYS_MAX_BYTES} bytes")
        return data

    def stamp(self) -> Stamp:
        try:
            found = os.stat(self.where)
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size


class _Web:
    def __init__(self, url: str, where: str) -> None:
        self._url = url
        self.where = where
        self._ssl_context: ssl.SSLContext | None = None

    def read(self) -> bytes:
        from http.client import HTTPException
        from urllib.request import Request

        if self._url.startswith("https") and self._ssl_context is None:
            self._ssl_context = ssl.create_default_context()
        request = Request(
            self._url,
            headers={
                "Accept": "application/json",
                "Cache-Control": "no-cache",
                "User-Agent": "fairlead-kafka",
            },
        )
        try:
            with opener(TIMEOUT_S, self._ssl_context).open(request, timeout=TIMEOUT_S) as response:
                if response.status != 200:
                    raise ValueError(f"answers with status {response.status}")
                data = read_body(response, KEYS_MAX_BYTES, TIMEOUT_S)
        except HTTPException as error:
            raise ValueError(f"does not speak HTTP ({type(error).__name__})") from None
        if data is None:
            raise ValueError(f"answers with more than {KEYS_MAX_BYTES} bytes")
        return data

    def stamp(self) -> Stamp:
        return None


def source_of(url: str) -> Source:
    """The source that `sasl.oauthbearer.jwks.endpoint.url` names. ConfigError if it names none."""
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    if url.lower().startswith("file:"):
        parts = urlsplit(url)
        if parts.netloc not in ("", "localhost") or not parts.path:
            raise ConfigError(
                f"{URL_KEY}: {shown(url)} is no file of this machine, such as file:///etc/kafka/jwks.json"
            )
        return _File(url2pathname(parts.path))
    scheme, host, where, user_info = checked_url(url, URL_KEY)
    if user_info:
        raise ConfigError(
            f"{URL_KEY}: {where} has user info before its host, and keys are public: leave it out"
        )
    if scheme == "http" and not is_loopback(host):
        LOGGER.warning(
            "%s: anyone on the way there can make tokens that are believed; use https in %s", where, URL_KEY
        )
    return _Web(url, where)


class Jwks:
    """The keys of one source, for all log-ins of a listener. Any thread may ask for one; the keys
    are read by one thread at a time."""

    def __init__(
        self, source: Source, refresh_s: float, monotonic_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._source = source
        self._refresh_s = refresh_s
        self._now_s = monotonic_s
        self._reading = threading.Lock()
        self._keys: tuple[VerificationKey, ...] | None = None
        self._stamp: Stamp = None
        self._read_s = 0.0
        self._asked_s: float | None = None
        self._failure = ""

    def key(self, token: Jws) -> VerificationKey | None:
        """The key that a token names; None if there is no such key. May read the source, and so
        block.

        ConnectionFailed if there are no keys yet and they cannot be read.
        """
        self._renew(self._is_old, wait=self._keys is None)
        if (
            self._keys is None
        ):  # the client is told this much: where they are, and why they are not to be had, is in the log
            raise ConnectionFailed("the keys that tokens are verified with cannot be had now")
        found = select(self._keys, token)
        if found is None:
            self._renew(self._may_ask, wait=True)
            found = select(self._keys, token)
        return found

    def read(self) -> None:
        """Read the keys now. ConfigError if that fails."""
        with self._reading:
            self._read()
        if self._keys is None:
            raise ConfigError(f"{URL_KEY}: {self._failure}")

    def _is_old(self) -> bool:
        if self._asked_s is None:
            return True
        changed = self._source.stamp() != self._stamp
        return changed or (
            self._may_ask() and (self._keys is None or self._now_s() - self._read_s >= self._refresh_s)
        )

    def _may_ask(self) -> bool:
        return self._asked_s is None or self._now_s() - self._asked_s >= ASK_AGAIN_S

    def _renew(self, wanted: Callable[[], bool], wait: bool) -> None:
        """Read the keys if `wanted()` is true. If another thread reads them: with `wait`, wait for
        its end and ask `wanted()` again; else do nothing."""
        if not wanted() or not self._reading.acquire(blocking=wait):
            return
        try:
            if wanted():
                reported = self._failure
                self._read()
                if self._failure and not reported:
                    what = "there are none yet" if self._keys is None else "those read before are used"
                    LOGGER.warning("the keys of tokens cannot be read, and %s: %s", what, self._failure)
        finally:
            self._reading.release()

    def _read(self) -> None:
        stamp = self._source.stamp()
        try:
            self._keys = parse_jwks(self._source.read())
            self._read_s = self._now_s()
            self._failure = ""
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(getattr(error, "reason", None) or error)
            self._failure = f"{self._source.where}: {shown(reason)}"
        self._stamp = stamp
        self._asked_s = self._now_s()
