"""Log-ins themselves: the order of their requests, mechanisms, wrong tokens, and requests before
their end.
"""

from __future__ import annotations

from collections.abc import Iterable

from fairlead_kafka.lab.transcript.holders import NOBODY, PASSWORD
from fairlead_kafka.lab.transcript.steps import PREFIX, Step, ask
from fairlead_kafka.lab.transcript.talk import plain_token
from fairlead_kafka.wire import ApiKey
from fairlead_kafka.wire.messages import MetadataRequest

_GOOD = plain_token(NOBODY, PASSWORD)


def _shake(
    on: str, mechanism: str = "PLAIN", versions: Iterable[int] = (1,), name: str = "a mechanism named"
) -> Step:
    return ask(f"{name}, {mechanism or 'none'}", ApiKey.SASL_HANDSHAKE, versions, on=on, mechanism=mechanism)


def _token(on: str, name: str, token: bytes, versions: Iterable[int] = (2,)) -> Step:
    return ask(f"token: {name}", ApiKey.SASL_AUTHENTICATE, versions, on=on, auth_bytes=token)


def _versions(on: str, name: str, versions: Iterable[int] = (3,)) -> Step:
    return ask(
        name,
        ApiKey.API_VERSIONS,
        versions,
        on=on,
        client_software_name="transcript",
        client_software_version="1",
    )


def _asks(on: str, name: str) -> Step:
    return ask(
        name,
        ApiKey.METADATA,
        (12,),
        on=on,
        topics=[MetadataRequest.MetadataRequestTopic(name=PREFIX + "x")],
        allow_auto_topic_creation=False,
    )


_REFUSED_TOKENS: dict[str, tuple[str, bytes]] = {
    "a wrong password": ("PLAIN", plain_token(NOBODY, "wrong")),
    "a user that is not there": ("PLAIN", plain_token("stranger", PASSWORD)),
    "no user": ("PLAIN", plain_token("", PASSWORD)),
    "no password": ("PLAIN", plain_token(NOBODY, "")),
    "as somebody else": ("PLAIN", b"admin" + _GOOD),
    "as oneself, said twice": ("PLAIN", NOBODY.encode() + _GOOD),
    "too few parts": ("PLAIN", b"\0nobody"),
    "too many parts": ("PLAIN", _GOOD + b"\0more"),
    "no bytes": ("PLAIN", b""),
    "no bytes of SCRAM": ("SCRAM-SHA-512", b""),
    "what is no SCRAM": ("SCRAM-SHA-512", b"hello"),
    "a stranger by SCRAM": ("SCRAM-SHA-256", b"n,,n=stranger,r=abcdefgh"),
    "somebody else by SCRAM": ("SCRAM-SHA-256", b"n,a=admin,n=nobody,r=abcdefgh"),
}

STEPS: list[Step] = [
    _versions("early", "what is served, before a log-in", range(5)),
    _versions("early again", "what is served, asked once"),
    _versions("early again", "and asked twice"),
    _asks("bare", "without a log-in"),
    _token("unnamed", "before a mechanism is named", _GOOD),
    _shake("unknown", "MAGIC", name="one that is not there"),
    _shake("unknown 0", "MAGIC", (0,), name="one that is not there"),
    _shake("empty", "", name="no name"),
    _shake("small", "plain", name="in small letters"),
    _shake("unserved", "GSSAPI", name="one that is not enabled"),
    _shake("twice"),
    _shake("twice", name="a mechanism named twice"),
    _shake("impatient"),
    _asks("impatient", "before the token"),
    _shake("late versions"),
    _versions("late versions", "what is served, after a mechanism is named"),
    *(
        step
        for name, (mechanism, token) in _REFUSED_TOKENS.items()
        for step in (
            _shake(f"refused: {name}", mechanism, name=f"for {name}"),
            _token(f"refused: {name}", name, token),
        )
    ),
    _shake("after", name="for a wrong password that is not the end"),
    _token("after", "wrong, and then", plain_token(NOBODY, "wrong")),
    _asks("after", "after a log-in that failed"),
    *(
        step
        for version in range(3)
        for step in (
            _shake(f"good {version}"),
            _token(f"good {version}", f"a good one in version {version}", _GOOD, (version,)),
        )
    ),
    _asks("good 2", "after the log-in"),
    _token("good 2", "once more", _GOOD, (0, 1, 2)),
    _shake("good 2", name="once more"),
    _asks("good 2", "after that"),
    _versions("good 1", "what is served, after a log-in"),
    _shake("good 1", "SCRAM-SHA-512", name="another one after a log-in"),
    _token("good 1", "of it", b"n,,n=nobody,r=abcdefgh"),
    _shake("good 0", "MAGIC", name="one that is not there after a log-in"),
    _shake("scram", "SCRAM-SHA-512"),
    _token("scram", "a good first one of SCRAM", b"n,,n=nobody,r=abcdefgh"),
    _token("scram", "a bad second one of SCRAM", b"c=biws,r=abcdefgh,p=AAAA"),
]
"""Steps on connections of their own."""
