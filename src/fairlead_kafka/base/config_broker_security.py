"""Configs of a broker about TLS, log-ins and rights: Kafka's keys and defaults (release 4.3).

Many keys can be set for one listener, as `listener.name.<listener, in small letters>.<key>`, and
some SASL keys for one of its mechanisms, as `listener.name.<listener>.<mechanism>.<key>`
(`key_of_listener`).
"""

from __future__ import annotations

from dataclasses import replace

from fairlead_kafka.base.config import ConfigKey, ConfigType, at_least, one_of, validates
from fairlead_kafka.base.config_security import PROTOCOLS, SSL_KEYS
from fairlead_kafka.base.principal import parse_principal

_T = ConfigType
_BROKER = ("broker",)

SERVER_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
"""SASL mechanisms of the embedded brokers. Kafka also has GSSAPI, which needs a Kerberos server."""
STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
PROTOCOL_MAP = tuple(f"{protocol}:{protocol}" for protocol in PROTOCOLS)
_CLIENTS_ONLY = frozenset({"security.protocol", "enable.ssl.certificate.verification"})


@validates(tuple)
def _mechanisms(value: tuple[str, ...]) -> str | None:
    """PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER

    A validator: it says what is wrong with a value, or None. Its first line, above, is what the
    documentation says is allowed.
    """
    wrong = [each for each in value if each not in SERVER_MECHANISMS]
    return f"must be of {', '.join(SERVER_MECHANISMS)}; {wrong[0]} is not served" if wrong else None


def _authorizer(value: object) -> str | None:
    """org.apache.kafka.metadata.authorizer.StandardAuthorizer, or empty

    A validator: it says what is wrong with a value, or None. Its first line, above, is what the
    documentation says is allowed.
    """
    return (
        None
        if value in ("", STANDARD_AUTHORIZER)
        else f"must be {STANDARD_AUTHORIZER} (others are Java's alone), or empty"
    )


@validates(str)
def _principals(value: str) -> str | None:
    """User:NAME, and semicolons between

    A validator: it says what is wrong with a value, or None. Its first line, above, is what the
    documentation says is allowed.
    """
    try:
        super_users(value)
    except ValueError as error:
        return str(error)
    return None


def super_users(text: str) -> frozenset[str]:
    """The principals in `super.users`. ValueError for an entry that is no principal."""
    return frozenset(str(parse_principal(each)) for each in text.split(";") if each.strip())


def _text(name: str, doc: str, default: str | None = None) -> ConfigKey:
    return ConfigKey(name, _T.STRING, default, doc, _BROKER, nullable=True)


_LISTENER_KEYS = (
    ConfigKey(
        "listeners",
        _T.LIST,
        None,
        "Where brokers listen, NAME://HOST:PORT each. Ports are the first broker's, the next ones follow; 0: "
        "any free one. Null: "
        "one listener PLAINTEXT, as the launcher has it.",
        _BROKER,
        nullable=True,
    ),
    ConfigKey(
        "advertised.listeners",
        _T.LIST,
        None,
        "What clients of a listener are told, NAME://HOST:PORT each, where it is not what it listens on; "
        "port 0: the one it listens on.",
        _BROKER,
        nullable=True,
    ),
    ConfigKey(
        "listener.security.protocol.map",
        _T.LIST,
        PROTOCOL_MAP,
        "The security protocol of each listener, NAME:PROTOCOL each.",
        _BROKER,
        kafka_type=_T.STRING,
    ),
    _text(
        "inter.broker.listener.name",
        "The listener by which brokers reach each other; null: that of security.inter.broker.protocol.",
    ),
    ConfigKey(
        "security.inter.broker.protocol",
        _T.STRING,
        "PLAINTEXT",
        "The protocol between brokers: they use the first listener that has it.",
        _BROKER,
        one_of(*PROTOCOLS),
        upper=True,
    ),
)

_SASL_KEYS = (
    ConfigKey(
        "sasl.enabled.mechanisms",
        _T.LIST,
        (),
        "How clients may log in (Kafka's default is GSSAPI, which is not served here).",
        _BROKER,
        _mechanisms,
    ),
    _text(
        "sasl.mechanism.inter.broker.protocol",
        "How brokers log in at each other; null: the first of sasl.enabled.mechanisms.",
    ),
    ConfigKey(
        "sasl.jaas.config",
        _T.PASSWORD,
        None,
        'Of PLAIN the users, `user_NAME="PASSWORD"` each, and as username and password whom brokers log in '
        "as.",
        _BROKER,
        nullable=True,
    ),
    ConfigKey(
        "connections.max.reauth.ms",
        _T.LONG,
        0,
        "A client that has not logged in again after this long is disconnected (KIP-368); 0: none has to.",
        _BROKER,
        at_least(0),
    ),
    ConfigKey(
        "sasl.server.max.receive.size",
        _T.INT,
        524_288,
        "Largest request of a client that has not logged in.",
        _BROKER,
        at_least(1),
    ),
    ConfigKey(
        "connection.failed.authentication.delay.ms",
        _T.INT,
        100,
        "How long a connection stays open once its log-in has failed, so that passwords are not tried fast.",
        _BROKER,
        at_least(0),
    ),
    _text(
        "sasl.oauthbearer.jwks.endpoint.url",
        "Where the keys are that tokens are signed with (JWKS): an https, http or file URL.",
    ),
    ConfigKey(
        "sasl.oauthbearer.jwks.endpoint.refresh.ms",
        _T.LONG,
        3_600_000,
        "How old those keys may be before they are asked for again.",
        _BROKER,
        at_least(1),
    ),
    ConfigKey(
        "sasl.oauthbearer.expected.audience",
        _T.LIST,
        None,
        "A token's audience (aud) must be one of these.",
        _BROKER,
        nullable=True,
    ),
    _text("sasl.oauthbearer.expected.issuer", "A token's issuer (iss) must be this."),
    ConfigKey(
        "sasl.oauthbearer.clock.skew.seconds",
        _T.INT,
        30,
        "How far another clock may be off.",
        _BROKER,
        at_least(0),
    ),
    ConfigKey(
        "sasl.oauthbearer.scope.claim.name",
        _T.STRING,
        "scope",
        "The claim of a token that holds its scopes.",
        _BROKER,
    ),
    ConfigKey(
        "sasl.oauthbearer.sub.claim.name",
        _T.STRING,
        "sub",
        "The claim of a token that names its user.",
        _BROKER,
    ),
)

_SSL_KEYS = (
    *(replace(key, scopes=_BROKER, aliases=()) for key in SSL_KEYS if key.name not in _CLIENTS_ONLY),
    ConfigKey(
        "ssl.client.auth",
        _T.STRING,
        "none",
        "Whether clients show a certificate: required, requested or none.",
        _BROKER,
        one_of("required", "requested", "none"),
    ),
    ConfigKey(
        "ssl.principal.mapping.rules",
        _T.STRING,
        "DEFAULT",
        "How a certificate's subject becomes a user: `RULE:pattern/replacement/[LU]` each, and DEFAULT for "
        "the whole subject (KIP-371).",
        _BROKER,
    ),
)

_AUTHORIZER_KEYS = (
    ConfigKey(
        "authorizer.class.name",
        _T.STRING,
        "",
        "Who may do what: Kafka's StandardAuthorizer; empty: everyone may do everything.",
        _BROKER,
        _authorizer,
    ),
    ConfigKey(
        "super.users",
        _T.STRING,
        "",
        "Who may do everything: `User:NAME` each, semicolons between.",
        _BROKER,
        _principals,
    ),
    ConfigKey(
        "allow.everyone.if.no.acl.found",
        _T.BOOLEAN,
        False,
        "Everyone may use a resource that no ACL applies to.",
        _BROKER,
    ),
)

_PER_LISTENER = frozenset(key.name for key in _SSL_KEYS) | {
    "sasl.enabled.mechanisms",
    "connections.max.reauth.ms",
}
_PER_MECHANISM = frozenset(
    {"sasl.jaas.config", "connections.max.reauth.ms", "sasl.server.max.receive.size"}
    | {key.name for key in _SASL_KEYS if key.name.startswith("sasl.oauthbearer.")}
)
BROKER_SECURITY_KEYS = _LISTENER_KEYS + _SASL_KEYS + _SSL_KEYS + _AUTHORIZER_KEYS
_PREFIX = "listener.name."


def key_of_listener(name: str) -> str | None:
    """The key that `listener.name.<listener>.[<mechanism>.]<key>` sets; None for other names."""
    if not name.startswith(_PREFIX):
        return None
    _listener, _dot, rest = name[len(_PREFIX) :].partition(".")
    if rest in _PER_LISTENER or rest in _PER_MECHANISM:
        return rest
    mechanism, _dot, key = rest.partition(".")
    return key if mechanism.upper() in SERVER_MECHANISMS and key in _PER_MECHANISM else None
