"""Signed tokens: the checks of a JWT (RFC 7519) before a broker accepts it, as Kafka's
`BrokerJwtValidator` and its jose4j do.

No library for JOSE is used. Few forms of tokens are accepted: signed (RFC 7515), in the compact
form, by one of nine algorithms of public keys. For each of their three families that is one call of
`cryptography`. Bounds, JSON without doubled names, the choice of the key and Kafka's rules for
claims would have to be written beside a library too; and there is no code here for HMAC, "none",
encryption or keys in a token's header, in which libraries had vulnerabilities. Tests compare it
with `joserfc`.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from fairlead_kafka.base.config import Settings
from fairlead_kafka.base.json_types import Json
from fairlead_kafka.base.limits import STRING_MAX_BYTES
from fairlead_kafka.security.tokens import EXPIRES_MAX_S, TOKEN_MAX_CHARACTERS, shown

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
    from cryptography.hazmat.primitives.asymmetric.padding import AsymmetricPadding
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
    from cryptography.hazmat.primitives.hashes import HashAlgorithm

    PublicKey = RSAPublicKey | EllipticCurvePublicKey

KEY_ID_MAX_CHARACTERS = 1000
"""Longest key id (`kid`) of a token that is looked up (Kafka's
`RefreshingHttpsJwks.MISSING_KEY_ID_MAX_KEY_LENGTH`)."""
_MS_PER_S = 1000


class Algorithm(NamedTuple):
    """A signature algorithm (`alg`). `curve`: an elliptic curve, by JOSE's name; None for RSA."""

    family: str
    hash: str
    curve: str | None = None


ALGORITHMS = {
    "RS256": Algorithm("RS", "SHA256"),
    "RS384": Algorithm("RS", "SHA384"),
    "RS512": Algorithm("RS", "SHA512"),
    "PS256": Algorithm("PS", "SHA256"),
    "PS384": Algorithm("PS", "SHA384"),
    "PS512": Algorithm("PS", "SHA512"),
    "ES256": Algorithm("ES", "SHA256", "P-256"),
    "ES384": Algorithm("ES", "SHA384", "P-384"),
    "ES512": Algorithm("ES", "SHA512", "P-521"),
}
"""The algorithms that are believed (RFC 7518, 3.1): those of public keys."""
CURVES = {"P-256": ("secp256r1", 32), "P-384": ("secp384r1", 48), "P-521": ("secp521r1", 66)}
"""Elliptic curves by JOSE's names (RFC 7518, 6.2.1.1): that of OpenSSL, and the bytes of a
coordinate."""
_NESTED = ("jwt", "application/jwt")
"""How a header says that the payload is a token again (RFC 7519, 5.2)."""
_HALF_CHARACTER = re.compile("[\\ud800-\\udfff]")
_PART = re.compile(r"[A-Za-z0-9_-]+")


class Jws(NamedTuple):
    """A signed token (JWS) in its parts, not verified yet."""

    algorithm: str
    key_id: str | None
    signed: bytes
    signature: bytes
    payload: bytes


class Believed(NamedTuple):
    """Claims of a token that was verified: user, expiry (ms since 1970) and scopes."""

    user: str
    expires_ms: int
    scopes: frozenset[str]


class Expected(NamedTuple):
    """Requirements on a token's claims. With empty `audiences`, or without `issuer`, none is
    expected."""

    audiences: tuple[str, ...] = ()
    issuer: str | None = None
    skew_s: int = 30
    user_claim: str = "sub"
    scope_claim: str = "scope"

    @staticmethod
    def of(settings: Settings) -> Expected:
        """The requirements that the settings `sasl.oauthbearer.*` state."""
        return Expected(
            settings["sasl.oauthbearer.expected.audience"] or (),
            settings["sasl.oauthbearer.expected.issuer"],
            settings["sasl.oauthbearer.clock.skew.seconds"],
            settings["sasl.oauthbearer.sub.claim.name"],
            settings["sasl.oauthbearer.scope.claim.name"],
        )


def taken_apart(text: str) -> Jws:
    """A token in its parts, not verified. ValueError, which says why, if it is no signed token."""
    if len(text) > TOKEN_MAX_CHARACTERS:
        raise ValueError(f"it has {len(text)} characters, and {TOKEN_MAX_CHARACTERS} are taken")
    parts = text.split(".")
    if len(parts) != 3 or not all(_PART.fullmatch(part) for part in parts):
        raise ValueError("it is no JWT, which has three parts in base64url and dots between")
    header = _json_object(_decoded(parts[0]), "header")
    algorithm, key_id = header.get("alg"), header.get("kid")
    if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
        raise ValueError(f"its algorithm {shown(repr(algorithm))} is not one of {', '.join(ALGORITHMS)}")
    if "crit" in header or "b64" in header:
        raise ValueError("its header has extensions that must be understood, and none is")
    if str(header.get("cty", "")).lower() in _NESTED:
        raise ValueError("there is another token in it, and those are not read")
    if key_id is not None and (not isinstance(key_id, str) or len(key_id) > KEY_ID_MAX_CHARACTERS):
        raise ValueError(f"its key id is no text of {KEY_ID_MAX_CHARACTERS} characters at most")
    signed = f"{parts[0]}.{parts[1]}".encode()
    return Jws(algorithm, key_id, signed, _decoded(parts[2]), _decoded(parts[1]))


def is_signed_by(token: Jws, key: PublicKey) -> bool:
    """Whether the signature is right, and the key one for its algorithm."""
    from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

    algorithm = ALGORITHMS[token.algorithm]
    digest: HashAlgorithm = getattr(hashes, algorithm.hash)()
    try:
        if not isinstance(key, RSAPublicKey):
            return _is_signed_on_curve(token, key, algorithm, digest)
        if algorithm.family == "ES":
            return False
        key.verify(token.signature, token.signed, _padding(algorithm, digest), digest)
    except (InvalidSignature, UnsupportedAlgorithm, ValueError):
        return False
    return True


def _padding(algorithm: Algorithm, digest: HashAlgorithm) -> AsymmetricPadding:
    from cryptography.hazmat.primitives.asymmetric.padding import MGF1, PSS, PKCS1v15

    return PKCS1v15() if algorithm.family == "RS" else PSS(MGF1(digest), digest.digest_size)


def _is_signed_on_curve(
    token: Jws, key: EllipticCurvePublicKey, algorithm: Algorithm, digest: HashAlgorithm
) -> bool:
    """True if a token's signature by `key` is right, for the algorithms ES*; False if key or
    signature are not of the algorithm's curve. The signature is two numbers of the curve's size,
    one after the other (RFC 7518, 3.4). InvalidSignature if it is wrong."""
    from cryptography.hazmat.primitives.asymmetric.ec import ECDSA
    from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

    name, size = CURVES.get(algorithm.curve or "", ("", 0))
    if key.curve.name != name or len(token.signature) != 2 * size:
        return False
    first, second = (int.from_bytes(half, "big") for half in (token.signature[:size], token.signature[size:]))
    key.verify(encode_dss_signature(first, second), token.signed, ECDSA(digest))
    return True


def believed(token: Jws, expected: Expected, now_s: float) -> Believed:
    """The claims of a token whose signature is right, at `now_s` (seconds since 1970).

    ValueError if it is not valid here and now.
    """
    claims = _json_object(token.payload, "payload")
    expires_s, issued_s, begins_s = (_time(claims, name) for name in ("exp", "iat", "nbf"))
    if expires_s is None or issued_s is None:
        raise ValueError("it does not say when it was issued and when it expires (iat and exp)")
    if now_s - expected.skew_s >= expires_s:
        raise ValueError(f"it expired {now_s - expires_s:.0f} s ago")
    if begins_s is not None and now_s + expected.skew_s < begins_s:
        raise ValueError(f"it is valid in {begins_s - now_s:.0f} s only")
    if now_s + expected.skew_s < issued_s:
        raise ValueError(f"it is issued in {issued_s - now_s:.0f} s only: check the clocks of both ends")
    if expires_s < issued_s or (begins_s is not None and expires_s < begins_s):
        raise ValueError("it expires before it begins")
    _check_issuer(claims, expected.issuer)
    _check_audience(claims, expected.audiences)
    return Believed(
        _user(claims, expected.user_claim), int(expires_s) * _MS_PER_S, _scopes(claims, expected.scope_claim)
    )


def _user(claims: Mapping[str, Json], name: str) -> str:
    """User in the claim `name`: a text that the messages and files of a cluster can hold.

    ValueError if it names nobody.
    """
    said = claims.get(name)
    user = said.strip() if isinstance(said, str) else ""
    if (
        not user
        or len(user) > STRING_MAX_BYTES
        or len(user.encode("utf-8", "replace")) > STRING_MAX_BYTES
        or _HALF_CHARACTER.search(user)
    ):
        raise ValueError(f"its claim {name} names nobody")
    return user


def _check_issuer(claims: Mapping[str, Json], wanted: str | None) -> None:
    issuer, number = claims.get("iss"), claims.get("jti")
    if not isinstance(issuer, str | None) or not isinstance(number, str | None):
        raise ValueError("its issuer or its id is no text")
    if wanted is not None and issuer != wanted:
        raise ValueError(f"its issuer is {shown(repr(issuer))}, and not {wanted}")


def _check_audience(claims: Mapping[str, Json], wanted: tuple[str, ...]) -> None:
    """Raise ValueError unless the token's audience is one of `wanted`.

    If none is wanted, the token must have none (RFC 7519, 4.1.3; so does jose4j).
    """
    audience = claims.get("aud")
    said = [] if audience is None else [audience] if isinstance(audience, str) else audience
    if not isinstance(said, list):
        raise ValueError("its audience is no text")
    texts = [each for each in said if isinstance(each, str)]
    if len(texts) != len(said):
        raise ValueError("its audience is no text")
    if wanted and not set(texts) & set(wanted):
        raise ValueError(
            f"its audience is {shown(', '.join(texts)) or 'missing'}, and none of {', '.join(wanted)}"
        )
    if audience is not None and not wanted:
        raise ValueError(
            f"its audience is {shown(', '.join(texts))}, and sasl.oauthbearer.expected.audience is not set"
        )


def _scopes(claims: Mapping[str, Json], name: str) -> frozenset[str]:
    """Scopes in the claim `name`: one text or a list of them, each once.

    A claim of another type counts as none (also in Kafka). ValueError for other items of a list,
    empty texts, and the same scope twice.
    """
    said = claims.get(name)
    scopes = [said] if isinstance(said, str) else said if isinstance(said, list) else []
    texts = [each.strip() for each in scopes if isinstance(each, str) and each.strip()]
    if len(texts) != len(scopes):
        raise ValueError(f"its claim {name} is no text or list of texts")
    stripped = frozenset(texts)
    if len(stripped) != len(scopes):
        raise ValueError(f"its claim {name} says the same twice")
    return stripped


def _time(claims: Mapping[str, Json], name: str) -> float | None:
    """The time that a claim says, in seconds since 1970; None if the claim is not there. ValueError
    if the claim is not a number."""
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= EXPIRES_MAX_S:
        raise ValueError(f"its claim {name} is no time")
    return value


def _json_object(data: bytes, what: str) -> dict[str, Json]:
    """The JSON object in `data`. ValueError if it is none, or has a name twice.

    (Two readers may not agree on which of the two counts.)
    """
    try:
        value: Json = json.loads(data.decode(), object_pairs_hook=_each_once, parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise ValueError(f"its {what} is no JSON object with each name once") from None
    if not isinstance(value, dict):
        raise ValueError(f"its {what} is no JSON object with each name once")
    return value


def _each_once(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name is there twice")
    return found


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is not JSON")


def _decoded(part: str) -> bytes:
    if len(part) % 4 == 1:
        raise ValueError("one of its parts is no base64url")
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
