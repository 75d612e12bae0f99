"""Tokens from an identity provider (OIDC), by the client credentials grant (RFC 6749, 4.4), as
Kafka's `ClientCredentialsJwtRetriever`."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from fairlead_kafka.base.errors import AuthenticationFailed, ConfigError, ConnectionFailed
from fairlead_kafka.base.json_types import Json
from fairlead_kafka.base.secret import HIDDEN, Secret
from fairlead_kafka.base.units import MIB
from fairlead_kafka.security.tokens import (
    EXPIRES_MAX_S,
    LOGGER,
    Token,
    expiry_claim_s,
    jwt_claims,
    make_token,
    number,
    shown,
)
from fairlead_kafka.security.web import checked_url, is_loopback, opener, read_body

if TYPE_CHECKING:
    import ssl
    from http.client import HTTPResponse

ANSWER_MAX_BYTES = MIB
"""Largest answer read. A token of 64 KiB, the largest taken, fits in many times; an endless answer
must not fill the memory."""
TIMEOUT_DEFAULT_MS = 10_000
"""Time-out in ms where the settings are null, in which Java waits for as long as the system does:
nobody waits longer for a page either."""
DOUBLINGS_MAX = 32
"""Doublings of the back-off: any wait is at its maximum then, and the power stays small."""

_URL_KEY: Final = "sasl.oauthbearer.token.endpoint.url"
_CREDENTIALS_KEY = "sasl.oauthbearer.client.credentials"
_SCOPE_KEY = "sasl.oauthbearer.scope"
_NOT_UTF8 = re.compile("[\\ud800-\\udfff]")
"""Surrogates: what Python makes of bytes that are not UTF-8, as in environment variables."""
_NAMES_SHOWN = 10
_RETRIED = frozenset({408, 425, 429})
"""Refusals that may pass: Request Timeout, Too Early, Too Many Requests."""
_NOT_RETRIED = frozenset({501, 505})
"""Failures that do not pass (also in Kafka): Not Implemented, HTTP Version Not Supported."""


class _Answer(NamedTuple):
    status: int
    reason: str
    location: str
    body: bytes | None
    """Body of the answer; None: more than ANSWER_MAX_BYTES."""


class TokenRequest(NamedTuple):
    """The parts of a client's request for a token: the URL of the endpoint, its id and secret, and
    the scope."""

    url: str
    client_id: str
    client_secret: Secret
    scope: str | None = None
    header_urlencode: bool = False
    """Encode id and secret as in a form before they go into the header (RFC 6749, 2.3.1)."""


class Patience(NamedTuple):
    """How long an endpoint may take, in ms: the settings `sasl.login.*`."""

    connect_timeout_ms: int | None = None
    """None: TIMEOUT_DEFAULT_MS, here and of `read_timeout_ms`."""
    read_timeout_ms: int | None = None
    retry_backoff_ms: float = 100
    """Wait before it is asked again, doubled each time."""
    retry_backoff_max_ms: float = 10_000
    """Time of all attempts together."""


class OidcSource:
    """Asks a token endpoint for tokens, with a client's id and secret.

    An endpoint that cannot be reached, or fails, is asked again as `Patience` has it. Redirects are
    not followed: the secret goes to the URL that was configured, and nowhere else. Proxies are
    those of the environment (`https_proxy`, `no_proxy`), as urllib reads it.
    """

    def __init__(
        self,
        request: TokenRequest,
        patience: Patience = Patience(),  # noqa: B008  # it cannot be changed
        *,
        ssl_context: ssl.SSLContext | None = None,
        monotonic_s: Callable[[], float] = time.monotonic,
        sleep_s: Callable[[float], object] = time.sleep,
    ) -> None:
        """`ssl_context` is for https; None: one with the system's trust store. `monotonic_s()`
        gives seconds, and `sleep_s(seconds)` waits.

        ConfigError for a URL that cannot be asked, for an empty id or secret, and for texts that
        are not valid UTF-8. A URL of http is warned of, unless its host is this machine: anybody on
        the way can read the secret.
        """
        url, client_id, client_secret, scope, self._urlencode = request
        self._scheme, host, self._where = _parsed(url)
        if not client_id or not client_secret:
            raise ConfigError(
                f"{_CREDENTIALS_KEY}.client.id and .client.secret: both are needed to ask {self._where}"
            )
        if _NOT_UTF8.search(f"{client_id}{client_secret.reveal()}{scope}"):
            raise ConfigError(
                f"{_CREDENTIALS_KEY}.client.id, .client.secret and {_SCOPE_KEY}: one of them is not valid "
                "UTF-8"
            )
        if self._scheme == "http" and not is_loopback(host):
            LOGGER.warning(
                "%s: the client's secret is sent to it unencrypted; use https in %s", self._where, _URL_KEY
            )
        self._url = url
        self._client_id = client_id
        self._secret = client_secret
        self._scope = (scope or "").strip()
        connect_ms, read_ms, backoff_ms, backoff_max_ms = patience
        self._connect_timeout_s = (TIMEOUT_DEFAULT_MS if connect_ms is None else connect_ms) / 1000
        self._read_timeout_s = (TIMEOUT_DEFAULT_MS if read_ms is None else read_ms) / 1000
        self._backoff_s = backoff_ms / 1000
        self._backoff_max_s = backoff_max_ms / 1000
        self._ssl_context = ssl_context
        self._monotonic_s = monotonic_s
        self._sleep_s = sleep_s

    def fetch(self, now_s: float) -> Token:
        """A new token, asked for at `now_s` (seconds since 1970). Blocks.

        ConnectionFailed if the endpoint cannot be reached, does not answer in time, or fails (HTTP
        status 5xx, 408, 425, 429) until the time for retries is over; AuthenticationFailed for any
        other refusal, an answer without a token, and a certificate that is not trusted.
        """
        started_s = self._monotonic_s()
        failures = 0
        while True:
            passed_s = self._monotonic_s() - started_s
            try:
                return self._token(self._asked(), now_s + passed_s)
            except ConnectionFailed as error:
                left_s = self._backoff_max_s - (self._monotonic_s() - started_s)
                wait_s = min(self._backoff_s * 2 ** min(failures, DOUBLINGS_MAX), left_s)
                failures += 1
                if wait_s <= 0:
                    raise ConnectionFailed(
                        f"{error}; asked {failures} time{'s' if failures > 1 else ''}"
                    ) from error
                if failures == 1:
                    LOGGER.warning("%s; asking again for up to %.0f s", error, left_s)
            self._sleep_s(wait_s)

    def _asked(self) -> _Answer:
        """The endpoint's answer to one request. ConnectionFailed if there is none,
        AuthenticationFailed if the endpoint's certificate is not trusted."""
        from http.client import HTTPException
        from urllib.error import URLError

        try:
            return self._exchanged()
        except (OSError, HTTPException) as error:
            cause = (
                error.reason if isinstance(error, URLError) and isinstance(error.reason, Exception) else error
            )
            if type(cause).__name__ == "SSLCertVerificationError":
                raise AuthenticationFailed(
                    f"{self._where} has a certificate that is not trusted ({self._shown(str(cause))}): "
                    "check that its issuer is among the certificate authorities to trust, and its host name"
                ) from None
            # Not chained: some of these errors hold what the endpoint sent, as it was.
            raise ConnectionFailed(
                f"{self._where} could not be asked for a token: {self._reason(error, cause)}"
            ) from None

    def _exchanged(self) -> _Answer:
        from urllib.request import Request

        if self._scheme == "https" and self._ssl_context is None:
            import ssl

            self._ssl_context = ssl.create_default_context()
        headers = {
            "Accept": "application/json",
            "Authorization": f"Basic {self._credentials()}",
            "Cache-Control": "no-cache",
            "Content-Type": "application/x-www-form-urlencoded",
            "User-Agent": "fairlead-kafka",
        }
        request = Request(self._url, self._form(), headers, method="POST")
        asker = opener(self._read_timeout_s, self._ssl_context)
        with asker.open(request, timeout=self._connect_timeout_s) as response:
            body = self._body(response)
            return _Answer(
                response.status, response.reason or "", response.headers.get("Location") or "", body
            )

    def _form(self) -> bytes:
        from urllib.parse import urlencode

        fields = {"grant_type": "client_credentials", **({"scope": self._scope} if self._scope else {})}
        return urlencode(fields).encode("ascii")

    def _credentials(self) -> str:
        """Id and secret for the Authorization header (RFC 7617), encoded for URLs first if
        `header_urlencode` is set (RFC 6749, 2.3.1; KIP-1076)."""
        import base64
        from urllib.parse import quote_plus

        pair = (self._client_id, self._secret.reveal())
        return base64.b64encode(":".join(map(quote_plus, pair) if self._urlencode else pair).encode()).decode(
            "ascii"
        )

    def _body(self, response: HTTPResponse) -> bytes | None:
        return read_body(response, ANSWER_MAX_BYTES, self._read_timeout_s, self._monotonic_s)

    def _reason(self, error: Exception, cause: Exception) -> str:
        """Why the token end point could not be asked, in words. urllib wraps an error before the
        answer in a URLError."""
        if isinstance(cause, TimeoutError) and cause.errno is None:
            return (
                f"no answer within {self._read_timeout_s:g} s (sasl.login.read.timeout.ms)"
                if cause is error
                else f"no connection within {self._connect_timeout_s:g} s (sasl.login.connect.timeout.ms)"
            )
        return self._shown(getattr(cause, "strerror", None) or str(cause) or type(cause).__name__).lower()

    def _token(self, answer: _Answer, obtained_s: float) -> Token:
        """The token in an answer, which was obtained at `obtained_s` (seconds since 1970).
        ConnectionFailed for a failure that may pass, AuthenticationFailed for all others."""
        fields = _json_object(answer.body) if answer.body is not None else {}
        if not 200 <= answer.status < 300:
            raise self._refusal(answer, fields or {})
        if answer.body is None:
            raise AuthenticationFailed(
                f"{self._where} answered with more than {ANSWER_MAX_BYTES} bytes: check {_URL_KEY}"
            )
        if fields is None:
            raise AuthenticationFailed(
                f"{self._where} answered with something else than a JSON object: check {_URL_KEY}"
            )
        text = fields.get("access_token") or fields.get("id_token")
        if not text:
            if "error" in fields:
                raise self._refusal(answer, fields)
            names = self._shown(", ".join(list(fields)[:_NAMES_SHOWN])) or "nothing"
            raise AuthenticationFailed(
                f"{self._where} answered without an access_token (what is there: {names}): check {_URL_KEY}"
            )
        claims = jwt_claims(text) if isinstance(text, str) else {}
        expires_s = _expires_s(number(fields.get("expires_in")), expiry_claim_s(claims), obtained_s)
        return make_token(text, obtained_s, self._where, expires_s=expires_s)

    def _refusal(
        self, answer: _Answer, fields: Mapping[str, Json]
    ) -> AuthenticationFailed | ConnectionFailed:
        status = answer.status
        if 300 <= status < 400:
            target = self._shown(_without_secrets(answer.location)) or "nowhere"
            return AuthenticationFailed(
                f"{self._where} redirects to {target} ({status}), where the secret is not sent: set "
                f"{_URL_KEY} to where tokens are given"
            )
        code, description = _error(fields)
        said = self._shown(code + (f": {description}" if description else "")) or self._shown(answer.reason)
        if status in _RETRIED or (status >= 500 and status not in _NOT_RETRIED):
            return ConnectionFailed(f"{self._where} gave no token ({status} {said})")
        return AuthenticationFailed(
            f"{self._where} refused client {self._client_id!r} ({status} {said}): check "
            f"{_settings_to_check(status, code)}"
        )

    def _shown(self, text: str) -> str:
        """A text from the endpoint as an error may show it: with the client's secret hidden, also
        in its encoded forms."""
        import json
        from urllib.parse import quote, quote_plus

        secret = self._secret.reveal()
        forms = {
            secret,
            quote(secret, safe=""),
            quote(secret),
            quote_plus(secret),
            json.dumps(secret)[1:-1],
            self._credentials(),
        }
        longest_first = sorted(forms, key=len, reverse=True)
        return shown(re.sub("|".join(map(re.escape, longest_first)), HIDDEN, text, flags=re.IGNORECASE))


def _parsed(url: str) -> tuple[str, str, str]:
    """Scheme, host, and how errors show the URL. ConfigError if it cannot be asked."""
    scheme, host, where, user_info = checked_url(url, _URL_KEY)
    if user_info:
        raise ConfigError(
            f"{_URL_KEY}: {where} has user info before its host: give id and secret in "
            f"{_CREDENTIALS_KEY}.client.id and .client.secret"
        )
    return scheme, host, where


def _without_secrets(url: str) -> str:
    """`url` without user info, query and fragment; empty if it is no URL."""
    from urllib.parse import urlsplit, urlunsplit

    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def _json_object(body: bytes) -> dict[str, Json] | None:
    """The JSON object that `body` is, None if it is none. (Errors of the parser contain the whole
    text, so they are not passed on.)"""
    import json

    try:
        value: Json = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _error(fields: Mapping[str, Json]) -> tuple[str, str]:
    """Code and description of an error (RFC 6749, 5.2), also under the names that Okta gives them;
    empty if they are missing."""
    code = fields.get("error") or fields.get("errorCode")
    description = fields.get("error_description") or fields.get("errorSummary")
    return code if isinstance(code, str) else "", description if isinstance(description, str) else ""


def _settings_to_check(status: int, code: str) -> str:
    if code == "invalid_scope":
        return _SCOPE_KEY
    if status in (404, 405, 410, 501):
        return _URL_KEY
    if status == 407:
        return "https_proxy and http_proxy in the environment"
    return f"{_CREDENTIALS_KEY}.client.id and .client.secret"


def _expires_s(lives_s: float | None, claimed_s: float | None, obtained_s: float) -> float | None:
    """When a token expires, in seconds since 1970: the earlier of `expires_in` (`lives_s` after
    `obtained_s`) and `exp` (`claimed_s`); None if there is neither.

    An `exp` that is past already does not count beside an `expires_in`: the clocks here and at the
    issuer differ.
    """
    if lives_s is None or not 0 < lives_s <= EXPIRES_MAX_S:
        return claimed_s
    expires_s = obtained_s + lives_s
    return min(expires_s, claimed_s) if claimed_s is not None and claimed_s > obtained_s else expires_s
