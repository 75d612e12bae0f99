"""Translation of cipher suites from Java's names to OpenSSL's:
`TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256` is `ECDHE-RSA-AES128-GCM-SHA256` there."""

from __future__ import annotations

import re

_SUITE = re.compile(r"(?:TLS|SSL)_(\w+?)_WITH_(\w+)")
_TLS_13 = re.compile(r"TLS_(AES|CHACHA20)_\w+")
_CBC_OF_SHA = re.compile(r"_CBC_SHA")


def openssl_names(suites: tuple[str, ...]) -> str | None:
    """Cipher list for OpenSSL and TLS 1.2, from names of either kind, in a list or with colons.

    None if only suites of TLS 1.3 are named. Those are always left out: OpenSSL always offers them,
    and Python has no way to change that.
    """
    names = [name.strip() for suite in suites for name in suite.split(":") if name.strip()]
    found = [_openssl_name(name) for name in names if not _TLS_13.fullmatch(name)]
    return ":".join(found) or None


def _openssl_name(name: str) -> str:
    parts = _SUITE.fullmatch(name)
    if parts is None:
        return name
    exchange = "" if parts[1] == "RSA" else parts[1].replace("_", "-") + "-"
    cipher = _CBC_OF_SHA.sub("_SHA", parts[2])
    cipher = cipher.removesuffix("_SHA256") if cipher.startswith("CHACHA20") else cipher
    return exchange + re.sub(r"(AES|CAMELLIA|ARIA)_(\d+)", r"\1\2", cipher).replace("_", "-")
