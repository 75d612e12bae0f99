"""The server's end of OAUTHBEARER (RFC 7628; KIP-255, KIP-768): a client sends a token, which is
accepted by its signature and claims."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

from fairlead_kafka.base.errors import AuthenticationFailed
from fairlead_kafka.base.units import KIB
from fairlead_kafka.security.jwks import Jwks
from fairlead_kafka.security.jwt import Believed, Expected, believed, is_signed_by, taken_apart
from fairlead_kafka.security.server_mechanisms import Answer, refuse
from fairlead_kafka.security.tokens import LOGGER, TOKEN_MAX_CHARACTERS, shown

MESSAGE_MAX_BYTES = TOKEN_MAX_CHARACTERS + 16 * KIB
"""Largest message taken: the longest token, and extensions."""
EXTENSIONS_MAX = 100
"""Extensions that one message may have. Those in use have one or two: which cluster and which pool
of identities are meant."""
_MECHANISM = "OAUTHBEARER"
_INVALID = b'{"status":"invalid_token"}'
_HEARD = b"\x01"

_NAME = rb"(?:[^=,\x00]|=2C|=3D)+"
_INITIAL = re.compile(
    rb"n,(?:a=(?P<wanted>" + _NAME + rb"))?,\x01(?P<pairs>(?:[A-Za-z]+=[\x21-\x7e \t\r\n]+\x01)*)\x01"
)
_BEARER = re.compile(rb"[Bb][Ee][Aa][Rr][Ee][Rr] +(?P<token>[A-Za-z0-9_~+/.-]+=*)")


class OAuthBearerServer:
    """One log-in by OAUTHBEARER. A token that is not valid is answered as RFC 7628 (3.2.2) has it,
    and the log-in fails once the client has replied to that."""

    blocking = True  # keys may have to be asked for

    def __init__(self, keys: Jwks, expected: Expected, now_s: Callable[[], float] = time.time) -> None:
        self._keys = keys
        self._expected = expected
        self._now_s = now_s
        self._reported = False

    def next(self, message: bytes) -> Answer:
        """The answer to a client's message. AuthenticationFailed, whose text the client is told, if
        the log-in is refused."""
        if self._reported and message == _HEARD:
            raise AuthenticationFailed(_INVALID.decode())
        found = None if self._reported or len(message) > MESSAGE_MAX_BYTES else _INITIAL.fullmatch(message)
        if found is None:
            refuse(_MECHANISM)
        token = _token(found["pairs"])
        wanted = found["wanted"]
        try:
            said = self._believed(token)
        except ValueError as error:
            LOGGER.info("a token is not believed: %s", error)
            self._reported = True
            return Answer(_INVALID)
        if wanted is not None and _plain(wanted) != said.user:
            raise AuthenticationFailed(
                f"Authentication failed: Client requested an authorization id ({shown(_plain(wanted))}) that "
                "is different from the token's "
                f"principal name ({shown(said.user)})"
            )
        return Answer(b"", said.user, said.expires_ms)

    def _believed(self, text: str) -> Believed:
        """The claims of a token, once verified. ValueError if it is not valid."""
        token = taken_apart(text)
        key = self._keys.key(token)
        if key is None:
            raise ValueError(f"there is no key {shown(repr(token.key_id))} for {token.algorithm}")
        if not is_signed_by(token, key.key):
            raise ValueError("its signature is wrong")
        return believed(token, self._expected, self._now_s())


def _plain(name: bytes) -> str:
    return name.replace(b"=2C", b",").replace(b"=3D", b"=").decode("utf-8", "replace")


def _token(pairs: bytes) -> str:
    """The token in a client's initial message. The message's extensions are not used (KIP-342).
    AuthenticationFailed if there is not exactly one token, or there are more than EXTENSIONS_MAX
    extensions."""
    values = [pair.partition(b"=") for pair in pairs.split(b"\x01") if pair]
    shown_tokens = [value for name, _, value in values if name == b"auth"]
    if len(shown_tokens) != 1 or len(values) > 1 + EXTENSIONS_MAX:
        refuse(_MECHANISM)
    found = _BEARER.fullmatch(shown_tokens[0])
    if found is None:
        refuse(_MECHANISM)
    return found["token"].decode()
