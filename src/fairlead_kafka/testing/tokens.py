"""A throw-away issuer of tokens, for brokers with OAUTHBEARER that throw-away clusters have. Needs
the extra `security`."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.base.json_types import Json
from fairlead_kafka.security.jwt import ALGORITHMS, CURVES

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric import ec, rsa

    PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey

_RSA_BITS = 2048
_PUBLIC_EXPONENT = 65_537


class TokenIssuer:
    """Issues tokens, signed with a key that is made with the issuer; `folder` gets the public key.

    ConfigError if `cryptography` is not installed.
    """

    def __init__(
        self, folder: Path, algorithm: str = "RS256", now_s: Callable[[], float] = time.time
    ) -> None:
        """Make the first key.

        `now_s`: the clock, in seconds since 1970. ConfigError for an algorithm that brokers do not
        accept.
        """
        if algorithm not in ALGORITHMS:
            raise ConfigError(f"algorithm: {algorithm} is not one of {', '.join(ALGORITHMS)}")
        self.algorithm = algorithm
        self._now_s = now_s
        self.jwks_path = folder / f"jwks-{algorithm}.json"
        """Path of the file with the public keys."""
        self._public: list[dict[str, str]] = []
        self.jwks_url = self.jwks_path.absolute().as_uri()
        """URL for `sasl.oauthbearer.jwks.endpoint.url`: the file with the public keys."""
        self.rotate()

    def rotate(self, keep: int = 0) -> None:
        """Sign with a new key from now on; the public keys of the last `keep` old ones stay in the
        file.
        """
        self.key = _made_key(self.algorithm)
        """The private key that signs now."""
        self.key_id = f"key-{time.time_ns()}"
        """Id of the key that signs now, which tokens carry as `kid`."""
        self._public = [
            *self._public[len(self._public) - keep :],
            {"kid": self.key_id, "use": "sig", **_public_fields(self.key)},
        ]
        self.jwks_path.write_text(json.dumps({"keys": self._public}))

    def issue(self, user: str, lifetime_s: float = 3600, **claims: Json) -> str:
        """A token for `user`, valid from now for `lifetime_s` seconds.

        `claims` are added, or replace the default ones; None leaves one out.
        """
        now_s = self._now_s()
        said = {"sub": user, "iat": int(now_s), "exp": int(now_s + lifetime_s), **claims}
        payload = {name: value for name, value in said.items() if value is not None}
        signed = ".".join(
            _encoded(json.dumps(part).encode())
            for part in ({"alg": self.algorithm, "kid": self.key_id}, payload)
        )
        return f"{signed}.{_encoded(self.sign(signed.encode()))}"

    def sign(self, data: bytes) -> bytes:
        """The signature of `data` in JOSE's form (RFC 7518)."""
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec, padding
        from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

        family, name, curve = ALGORITHMS[self.algorithm]
        digest = getattr(hashes, name)()
        if isinstance(self.key, ec.EllipticCurvePrivateKey):
            assert curve is not None, "the key was made for the algorithm"
            size = CURVES[curve][1]
            return b"".join(
                number.to_bytes(size, "big")
                for number in decode_dss_signature(self.key.sign(data, ec.ECDSA(digest)))
            )
        pads = padding.PKCS1v15() if family == "RS" else padding.PSS(padding.MGF1(digest), digest.digest_size)
        return self.key.sign(data, pads, digest)


def _made_key(algorithm: str) -> PrivateKey:
    try:
        from cryptography.hazmat.primitives.asymmetric import ec, rsa
    except ImportError:
        raise ConfigError(
            'tokens are signed by the package cryptography: pip install "fairlead-kafka[security]"'
        ) from None
    curve = ALGORITHMS[algorithm].curve
    if curve is None:
        return rsa.generate_private_key(_PUBLIC_EXPONENT, _RSA_BITS)
    curves: dict[str, ec.EllipticCurve] = {
        "P-256": ec.SECP256R1(),
        "P-384": ec.SECP384R1(),
        "P-521": ec.SECP521R1(),
    }
    return ec.generate_private_key(curves[curve])


def _public_fields(key: PrivateKey) -> dict[str, str]:
    """A public key as the fields of its JSON form (RFC 7517, RFC 7518)."""
    from cryptography.hazmat.primitives.asymmetric import rsa

    if isinstance(key, rsa.RSAPrivateKey):
        public = key.public_key().public_numbers()
        return {"kty": "RSA", "n": _number(public.n), "e": _number(public.e)}
    numbers = key.public_key().public_numbers()
    name, size = next((name, size) for name, (curve, size) in CURVES.items() if curve == numbers.curve.name)
    return {
        "kty": "EC",
        "crv": name,
        "x": _encoded(numbers.x.to_bytes(size, "big")),
        "y": _encoded(numbers.y.to_bytes(size, "big")),
    }


def _number(value: int) -> str:
    return _encoded(value.to_bytes((value.bit_length() + 7) // 8, "big"))


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
