"""Configs of secured connections: Kafka's keys and defaults (release 4.3), and librdkafka's names
for the same.

Values of type PASSWORD are `Secret`s and never shown. A value may hold `${env:NAME}` or
`${file:PATH:KEY}` anywhere; such references are resolved where they are used
(`fairlead_kafka.security`), so that stored or shipped settings never hold the secret.
"""

from __future__ import annotations

from fairlead_kafka.base.config import ConfigKey, ConfigType, at_least, between, one_of
from fairlead_kafka.base.config_share import SHARE_CONSUMER

_T = ConfigType
_ALL = ("producer", "consumer", SHARE_CONSUMER, "admin")
_STORE_TYPE = "JKS, PKCS12 or PEM; null: told from what is in it."

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI", "AWS_MSK_IAM")
MSK_HANDLER = "software.amazon.msk.auth.iam.IAMClientCallbackHandler"
HANDLERS = (
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler",
    "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerLoginCallbackHandler",
    MSK_HANDLER,
)
"""Java's callback handler classes; the settings here do their work."""


def _text(name: str, doc: str, *aliases: str, default: str | None = None) -> ConfigKey:
    return ConfigKey(name, _T.STRING, default, doc, _ALL, nullable=True, aliases=aliases)


def _secret(name: str, doc: str, *aliases: str) -> ConfigKey:
    return ConfigKey(name, _T.PASSWORD, None, doc, _ALL, nullable=True, aliases=aliases)


SSL_KEYS = (
    ConfigKey(
        "security.protocol",
        _T.STRING,
        "PLAINTEXT",
        "How to talk to brokers: PLAINTEXT; SSL, encrypted by TLS; SASL_PLAINTEXT, with a log-in; SASL_SSL, "
        "with both.",
        _ALL,
        one_of(*PROTOCOLS),
        upper=True,
    ),
    _text(
        "ssl.truststore.location",
        "A file of the certificate authorities to trust (JKS, PKCS12 or PEM), or a folder of PEM files. "
        "Null, without "
        "ssl.truststore.certificates: those that the system trusts.",
        "ssl.ca.location",
    ),
    _secret(
        "ssl.truststore.password",
        "The password of ssl.truststore.location. A JKS is read without one too, but not checked then.",
    ),
    ConfigKey(
        "ssl.truststore.type",
        _T.STRING,
        None,
        _STORE_TYPE,
        _ALL,
        one_of("JKS", "PKCS12", "PEM"),
        nullable=True,
        upper=True,
    ),
    _secret(
        "ssl.truststore.certificates",
        "The certificate authorities to trust themselves, as PEM text (KIP-651).",
        "ssl.ca.pem",
    ),
    _text(
        "ssl.keystore.location",
        "A file with the certificate to show to brokers and its private key (JKS, PKCS12 or PEM).",
    ),
    _secret("ssl.keystore.password", "The password of ssl.keystore.location."),
    ConfigKey(
        "ssl.keystore.type",
        _T.STRING,
        None,
        _STORE_TYPE,
        _ALL,
        one_of("JKS", "PKCS12", "PEM"),
        nullable=True,
        upper=True,
    ),
    _secret("ssl.keystore.key", "The private key itself, as PEM text (PKCS #8; KIP-651).", "ssl.key.pem"),
    _secret(
        "ssl.keystore.certificate.chain",
        "Its certificate and those that issued it, as PEM text (KIP-651).",
        "ssl.certificate.pem",
    ),
    _secret(
        "ssl.key.password",
        "The password of the private key. Null: ssl.keystore.password for a JKS, none otherwise.",
    ),
    _text(
        "ssl.certificate.location",
        "A PEM file of the certificate to show, where the key is in a file of its own (librdkafka's name).",
    ),
    _text("ssl.key.location", "A PEM file of that certificate's private key (librdkafka's name)."),
    _text(
        "ssl.endpoint.identification.algorithm",
        "https: the broker's certificate must name the host that was asked for; empty or none: it need not.",
        default="https",
    ),
    ConfigKey(
        "enable.ssl.certificate.verification",
        _T.BOOLEAN,
        True,
        "False: take any certificate of any broker, so that it is encrypted, but anybody's (librdkafka's "
        "name; Kafka has none).",
        _ALL,
    ),
    ConfigKey("ssl.enabled.protocols", _T.LIST, ("TLSv1.2", "TLSv1.3"), "Versions of TLS to speak.", _ALL),
    ConfigKey(
        "ssl.protocol",
        _T.STRING,
        "TLSv1.3",
        "The newest version to speak, if it is older than those of ssl.enabled.protocols.",
        _ALL,
        one_of("TLSv1.3", "TLSv1.2", "TLS"),
    ),
    ConfigKey(
        "ssl.cipher.suites",
        _T.LIST,
        None,
        "Cipher suites to offer, by their names in Java or in OpenSSL; those of TLS 1.3 are always offered. "
        "Null: OpenSSL's default.",
        _ALL,
        nullable=True,
    ),
)

_SASL_KEYS = (
    ConfigKey(
        "sasl.mechanism",
        _T.STRING,
        "GSSAPI",
        "How to log in. AWS_MSK_IAM is OAUTHBEARER with a token signed by Amazon's own package (extra "
        "`msk`).",
        _ALL,
        one_of(*MECHANISMS),
        upper=True,
        aliases=("sasl.mechanisms",),
    ),
    _secret(
        "sasl.jaas.config",
        'The log-in as Java writes it: `…PlainLoginModule required username="…" password="…";`. Read into '
        "the settings below, which "
        "may not be given beside it.",
    ),
    ConfigKey(
        "sasl.login.callback.handler.class",
        _T.STRING,
        None,
        "Java's class that gets tokens. Those of Kafka (OIDC) and of Amazon's MSK say what the settings here "
        "say; others are Java's alone.",
        _ALL,
        one_of(*HANDLERS),
        nullable=True,
    ),
    ConfigKey(
        "sasl.client.callback.handler.class",
        _T.STRING,
        None,
        "The same, where Amazon's documents give it.",
        _ALL,
        one_of(*HANDLERS),
        nullable=True,
    ),
    _text("sasl.username", "User name, for PLAIN and SCRAM (librdkafka's name)."),
    _secret("sasl.password", "Its password (librdkafka's name)."),
    _text(
        "sasl.kerberos.service.name", "The principal name that brokers run as, for GSSAPI.", default="kafka"
    ),
    _text(
        "sasl.kerberos.principal",
        "Whom to log in as, for GSSAPI; null: the principal of the credential cache or the keytab.",
    ),
    _text(
        "sasl.kerberos.keytab", "A keytab to log in from, for GSSAPI; null: the credential cache of `kinit`."
    ),
    _text(
        "sasl.oauthbearer.token.endpoint.url",
        "Where to ask for a token (OIDC, client credentials), for OAUTHBEARER; of a file: URL the file holds "
        "it.",
    ),
    _text(
        "sasl.oauthbearer.client.credentials.client.id",
        "The client's id there (KIP-1139).",
        "sasl.oauthbearer.client.id",
    ),
    _secret(
        "sasl.oauthbearer.client.credentials.client.secret",
        "The client's secret there (KIP-1139).",
        "sasl.oauthbearer.client.secret",
    ),
    _text("sasl.oauthbearer.scope", "The scope to ask for there (KIP-1139)."),
    _text(
        "sasl.oauthbearer.extensions",
        "SASL extensions to send with a token: `name=value` pairs, separated by commas (KIP-342).",
    ),
    ConfigKey(
        "sasl.oauthbearer.header.urlencode",
        _T.BOOLEAN,
        False,
        "Encode id and secret for URLs before they go into the Authorization header (RFC 6749; KIP-1076).",
        _ALL,
    ),
    ConfigKey(
        "sasl.oauthbearer.token.provider",
        _T.ANY,
        None,
        "A callable that gives a token, or its dotted path; it may be a coroutine function. It returns the "
        "token, or (token, when it "
        "expires in seconds since 1970). confluent-kafka's oauth_cb is this with sasl.oauthbearer.config as "
        "argument.",
        _ALL,
        nullable=True,
    ),
    ConfigKey(
        "oauth_cb",
        _T.ANY,
        None,
        "confluent-kafka's name for such a callable; given sasl.oauthbearer.config.",
        _ALL,
        nullable=True,
    ),
    _text("sasl.oauthbearer.config", "The text that oauth_cb is called with (librdkafka's name)."),
    _text(
        "sasl.oauthbearer.method",
        "librdkafka's name for how tokens are had: oidc asks the end point; default: oauth_cb.",
    ),
    ConfigKey(
        "sasl.login.connect.timeout.ms",
        _T.INT,
        None,
        "How long a connection to the token end point may take; null: 10 s.",
        _ALL,
        at_least(1),
        nullable=True,
    ),
    ConfigKey(
        "sasl.login.read.timeout.ms",
        _T.INT,
        None,
        "How long its answer may take; null: 10 s.",
        _ALL,
        at_least(1),
        nullable=True,
    ),
    ConfigKey(
        "sasl.login.retry.backoff.ms",
        _T.LONG,
        100,
        "First wait before it is asked again after a failure.",
        _ALL,
        at_least(1),
    ),
    ConfigKey(
        "sasl.login.retry.backoff.max.ms",
        _T.LONG,
        10_000,
        "Longest such wait, and how long one log-in tries at most.",
        _ALL,
        at_least(1),
    ),
    ConfigKey(
        "sasl.login.refresh.window.factor",
        _T.DOUBLE,
        0.8,
        "A token is replaced once this part of its life is over.",
        _ALL,
        between(0.5, 1.0),
    ),
    ConfigKey(
        "sasl.login.refresh.window.jitter",
        _T.DOUBLE,
        0.05,
        "Up to this part of its life later, by chance.",
        _ALL,
        between(0.0, 0.25),
    ),
    ConfigKey(
        "sasl.login.refresh.min.period.seconds",
        _T.INT,
        60,
        "A token is not replaced sooner than this.",
        _ALL,
        between(0, 900),
    ),
    ConfigKey(
        "sasl.login.refresh.buffer.seconds",
        _T.INT,
        300,
        "It is replaced this long before it expires, at the latest.",
        _ALL,
        between(0, 3600),
    ),
)

SECURITY_KEYS = SSL_KEYS + _SASL_KEYS
