"""Tokens for SASL/OAUTHBEARER (RFC 7628): their expiry, their renewal, and the one that all
connections of a client share.

Tokens come from sources: `oidc.OidcSource`, `token_providers.CallableSource` and
`token_providers.MskSource`. A source fetches one token per call; `Tokens` decides when. Brokers
verify tokens; here only the expiry and the principal are read from a token.
"""

from __future__ import annotations

import math
import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from fairlead_kafka.base.errors import AuthenticationFailed, FairleadError
from fairlead_kafka.base.guarded_log import GuardedLogger
from fairlead_kafka.base.json_types import Json
from fairlead_kafka.base.secret import HIDDEN, Secret
from fairlead_kafka.base.units import KIB

LOGGER = GuardedLogger("fairlead_kafka.security")

TOKEN_MAX_CHARACTERS = 64 * KIB
"""Longest token taken. Web servers take 8 to 16 KiB of headers, so identity providers stay below;
what is longer is no token."""
RETRY_AFTER_S = 10.0
"""Shortest time between a refresh that failed and the next one, while the old token serves (as in
Kafka's `ExpiringCredentialRefreshingLogin`)."""
LEFT_MIN_S = 2.0
"""An old token serves in place of one that could not be fetched as long as it has so much left: its
session is renewed before it ends, and a broker takes no renewal within a second of the last
(KIP-368)."""
EXPIRES_MIN_S = 1_000_000_000
"""An expiry before this (the year 2001) is not a time since 1970, but a token's lifetime in
seconds."""
EXPIRES_MAX_S = 100_000_000_000
"""An expiry after this (the year 5138) is given in milliseconds."""
TEXT_SHOWN_MAX = 200
"""Characters of a foreign text that an error shows: enough for a sentence, and too few for a page
of HTML."""

_CONTROL = re.compile("[\\x00-\\x1f\\x7f-\\x9f\\ud800-\\udfff]")
"""Control characters, which would end a field of the SASL message (RFC 7628, 3.1), and halves of
characters."""
_JWT = re.compile(r"eyJ[\w-]+\.[\w-]+(\.[\w-]*)?")
_EXTENSION_NAME = re.compile(r"[A-Za-z]+")
_EXTENSION_VALUE = re.compile(r"[\x21-\x7e \t\r\n]+")


@dataclass(frozen=True)
class Token:
    """A bearer token. Its `repr` shows the two times only."""

    text: Secret = field(repr=False)
    expires_s: float | None
    """Seconds since 1970; None: not known."""
    obtained_s: float
    """Seconds since 1970, when it was asked for."""
    principal: str | None = field(default=None, repr=False)
    extensions: Mapping[str, str] = field(default_factory=dict, repr=False)
    """SASL extensions to send with it (KIP-342)."""


class TokenSource(Protocol):
    """A source of tokens: it fetches one per call."""

    def fetch(self, now_s: float) -> Token:
        """A new token, asked for at `now_s` (seconds since 1970). Blocks.

        Raises ConnectionFailed for a failure that may pass by itself, AuthenticationFailed for one
        that does not, and ConfigError for a setting.
        """


def make_token(
    text: object,
    obtained_s: float,
    origin: str,
    *,
    expires_s: float | None = None,
    principal: object = None,
    extensions: object = None,
) -> Token:
    """A Token made of the text and fields that `origin` (a name for errors) gave, checked. Fields
    that are not given are read from the token, if it is a JWT (RFC 7519).

    AuthenticationFailed if the token cannot be sent: empty, too long, with control characters, not
    text; or a principal or extensions that are not texts, or extensions that SASL does not allow
    (RFC 7628, 3.1).
    """
    checked = _checked_text(text, origin)
    claims = jwt_claims(checked)
    if principal is not None and not isinstance(principal, str):
        raise AuthenticationFailed(
            f"{origin} gave a principal of type {type(principal).__name__}: it must be a text or None"
        )
    if expires_s is None:
        expires_s = expiry_claim_s(claims)
    subject = claims.get("sub")
    if principal is None and isinstance(subject, str) and not _CONTROL.search(subject):
        principal = subject or None
    return Token(Secret(checked), expires_s, obtained_s, principal, _checked_extensions(extensions, origin))


def jwt_claims(text: str) -> Mapping[str, Json]:
    """The claims of a JWT (RFC 7519), decoded and not verified; empty if `text` is none."""
    parts = text.split(".")
    if len(parts) != 3:
        return {}
    import base64
    import json

    try:
        claims: Json = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (ValueError, RecursionError):
        return {}
    return claims if isinstance(claims, Mapping) else {}


def expiry_claim_s(claims: Mapping[str, Json]) -> float | None:
    """When a JWT of these claims expires (`exp`), in seconds since 1970; None if there is no such
    claim, or it is no sensible number."""
    expires_s = number(claims.get("exp"))
    return expires_s if expires_s is not None and 0 < expires_s <= EXPIRES_MAX_S else None


def number(value: object) -> float | None:
    """The finite number that `value` is or, as a text, says; None if it is no number."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        parsed = float(value)
    except (ValueError, OverflowError):
        return None
    return parsed if math.isfinite(parsed) else None


def shown(text: str) -> str:
    """A foreign text as an error may show it: on one line, TEXT_SHOWN_MAX characters at most, and
    without JWTs."""
    line = " ".join(_CONTROL.sub(" ", _JWT.sub(HIDDEN, text)).split())
    return line if len(line) <= TEXT_SHOWN_MAX else f"{line[:TEXT_SHOWN_MAX]}…"


def _checked_text(value: object, origin: str) -> str:
    text = value.decode("utf-8", "surrogateescape") if isinstance(value, bytes | bytearray) else value
    if not isinstance(text, str):
        raise AuthenticationFailed(f"{origin} gave a token of type {type(value).__name__}: it must be a text")
    text = text.strip(" \t\r\n")  # as Kafka does: tokens that come from files end with a newline
    if not text:
        raise AuthenticationFailed(f"{origin} gave an empty token")
    if len(text) > TOKEN_MAX_CHARACTERS:
        raise AuthenticationFailed(
            f"{origin} gave a token of {len(text)} characters: {TOKEN_MAX_CHARACTERS} are taken"
        )
    if _CONTROL.search(text):
        raise AuthenticationFailed(
            f"{origin} gave a token with control characters in it: check what it returns"
        )
    return text


def _checked_extensions(extensions: object, origin: str) -> Mapping[str, str]:
    if extensions is None:
        return {}
    if not isinstance(extensions, Mapping):
        raise AuthenticationFailed(
            f"{origin} gave extensions of type {type(extensions).__name__}: they must be a dict of texts"
        )
    for name, value in extensions.items():
        if not isinstance(name, str) or not _EXTENSION_NAME.fullmatch(name) or name == "auth":
            raise AuthenticationFailed(
                f"{origin} gave an extension named {shown(repr(name))}: names are of letters, and not auth "
                "(KIP-342)"
            )
        if not isinstance(value, str) or not _EXTENSION_VALUE.fullmatch(value):
            raise AuthenticationFailed(
                f"{origin} gave extension {name} a value that is not of printable ASCII characters (KIP-342)"
            )
    return dict(extensions)


def refresh_at_s(
    obtained_s: float,
    expires_s: float | None,
    window_factor: float,
    jitter_share: float,
    min_period_s: float,
    buffer_s: float,
) -> float:
    """When to replace a token, in seconds since 1970, as `sasl.login.refresh.*` say and Kafka's
    `ExpiringCredentialRefreshingLogin` does.

    After `window_factor` plus `jitter_share` (drawn for this token) of its life; but `min_period_s`
    after it was obtained at the soonest, and `buffer_s` before it expires at the latest. These two
    are ignored if the token does not live as long as both. Unlike Kafka, never after it expired. If
    its expiry is not known: after `min_period_s`. If it had expired when it came, which clocks that
    differ may feign: after RETRY_AFTER_S.
    """
    if expires_s is None:
        return obtained_s + min_period_s
    life_s = expires_s - obtained_s
    if life_s <= 0:
        return obtained_s + RETRY_AFTER_S
    wanted_s = obtained_s + life_s * (window_factor + jitter_share)
    if min_period_s + buffer_s > life_s:
        return min(wanted_s, expires_s)
    return max(min(wanted_s, expires_s - buffer_s), obtained_s + min_period_s)


class _Fetch:
    """A fetch that is under way, and what came of it: a token, an error, or neither if its thread
    was interrupted."""

    def __init__(self) -> None:
        self.done = threading.Event()
        self.token: Token | None = None
        self.error: FairleadError | None = None


class Refresh(NamedTuple):
    """When a token is replaced before it expires: the settings `sasl.login.refresh.*`."""

    window_factor: float = 0.8
    """Share of its life after which a token is replaced."""
    jitter: float = 0.05
    """Share of its life by which that is put off at most, at random."""
    min_period_s: float = 60
    """Seconds that a token is kept at least."""
    buffer_s: float = 300
    """Seconds before its end by which it is replaced."""


class Tokens:
    """The newest token of one source, for all connections of one client. Any thread may ask for it.
    `random()` gives numbers in [0, 1), and `monotonic_s()` seconds, which measure how long a fetch
    took."""

    def __init__(
        self,
        source: TokenSource,
        *,
        random: Callable[[], float],
        refresh: Refresh = Refresh(),  # noqa: B008  # it cannot be changed
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._source = source
        self._random = random
        self._refresh = refresh
        self._monotonic_s = monotonic_s
        self._lock = threading.Lock()
        self._token: Token | None = None
        self._refresh_at_s = 0.0
        self._warned_of: Token | None = None
        self._fetch: _Fetch | None = None

    def get(self, now_s: float) -> Token:
        """A token to use at `now_s` (seconds since 1970). Blocks while one is fetched, which only
        one thread does at a time.

        The others use the old token while it is valid, and otherwise wait for what that thread
        gets. If a fetch fails while the old token is valid, that one is used, and logged once; if
        not, the source's error is raised.
        """
        while True:
            with self._lock:
                old, fetch = self._token, self._fetch
                if old is not None and (
                    now_s < self._refresh_at_s or (fetch is not None and _serves(old, now_s))
                ):
                    return old
                if fetch is None:
                    mine = self._fetch = _Fetch()
                    break
            fetch.done.wait()
            if fetch.token is not None:
                return fetch.token
            if fetch.error is not None:
                raise type(fetch.error)(*fetch.error.args) from fetch.error
        return self._fetched(mine, old, now_s)

    def _fetched(self, fetch: _Fetch, old: Token | None, now_s: float) -> Token:
        """Fetch a token on this thread, and pass it on to the threads that wait for it."""
        started_s = self._monotonic_s()
        try:
            fetch.token = self._kept(self._source.fetch(now_s))
        except FairleadError as error:
            now_s += self._monotonic_s() - started_s
            if old is None or old.expires_s is None or not _serves(old, now_s):
                fetch.error = error
                raise
            fetch.token = self._kept_on(old, old.expires_s, now_s, error)
        finally:
            with self._lock:
                self._fetch = None
            fetch.done.set()
        return fetch.token

    def _kept(self, token: Token) -> Token:
        refresh_s = refresh_at_s(
            token.obtained_s,
            token.expires_s,
            self._refresh.window_factor,
            self._refresh.jitter * self._random(),
            self._refresh.min_period_s,
            self._refresh.buffer_s,
        )
        with self._lock:
            self._token, self._refresh_at_s = token, refresh_s
        if token.expires_s is not None and token.expires_s <= token.obtained_s:
            late_s = token.obtained_s - token.expires_s
            LOGGER.warning(
                "a new token expired %.0f s ago: check that the clocks here and at its issuer agree", late_s
            )
        return token

    def _kept_on(self, old: Token, expires_s: float, now_s: float, error: FairleadError) -> Token:
        with self._lock:
            self._refresh_at_s = min(now_s + RETRY_AFTER_S, expires_s - LEFT_MIN_S)
        if self._warned_of is not old:
            self._warned_of = old
            LOGGER.warning(
                "the token could not be replaced, and serves for another %.0f s at most: %s",
                expires_s - now_s,
                error,
            )
        return old


def _serves(token: Token, now_s: float) -> bool:
    """True if the token is known to be valid, and for a while."""
    return token.expires_s is not None and now_s + LEFT_MIN_S < token.expires_s
