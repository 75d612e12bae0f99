"""Configs without an effect here: parts of log-ins and TLS that are Java's or Kerberos's, and
delegation tokens; Kafka's keys and defaults (release 4.3)."""

from __future__ import annotations

from fairlead_kafka.base.config import ConfigType, at_least, between, one_of, one_of_any_case
from fairlead_kafka.base.config_kept import kept, never, of_no_effect

_T = ConfigType

_JVM = "it chooses parts of a JVM; Python's ssl and OpenSSL are used"
_FILES = "key stores are read when a broker starts"
_PLUGIN = "plug-in classes are Java's"
_KERBEROS = "clients cannot log in by Kerberos here"
_OWN = "brokers log in at each other by PLAIN, SCRAM or certificates"
_KEYS = "a broker asks for the keys again at the next token that it cannot judge"
_TOKENS = "there are no delegation tokens: clients log in with what they have themselves"

SECURITY_KEPT = (
    *of_no_effect(
        _JVM,
        kept("security.providers", _T.STRING, None, "Classes that add providers of cryptography."),
        kept(
            "ssl.keymanager.algorithm",
            _T.STRING,
            "SunX509",
            "Java's algorithm of key managers.",
            dynamic="per-broker",
        ),
        kept("ssl.provider", _T.STRING, None, "Java's provider of TLS.", dynamic="per-broker"),
        kept(
            "ssl.secure.random.implementation",
            _T.STRING,
            None,
            "Java's source of random numbers.",
            dynamic="per-broker",
        ),
        kept(
            "ssl.trustmanager.algorithm",
            _T.STRING,
            "PKIX",
            "Java's algorithm of trust managers.",
            dynamic="per-broker",
        ),
    ),
    *of_no_effect(
        _FILES,
        kept(
            "ssl.allow.dn.changes", _T.BOOLEAN, False, "A new key store may have another distinguished name."
        ),
        kept(
            "ssl.allow.san.changes",
            _T.BOOLEAN,
            False,
            "A new key store may lack alternative names of the one before.",
        ),
    ),
    *of_no_effect(
        _PLUGIN,
        kept(
            "principal.builder.class",
            _T.CLASS,
            "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder",
            "A class that makes a principal of who logged in.",
            one_of("org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"),
            dynamic="per-broker",
        ),
        kept(
            "sasl.client.callback.handler.class",
            _T.CLASS,
            None,
            "A class that answers for a broker that logs in.",
            never(_PLUGIN),
        ),
        kept(
            "sasl.login.callback.handler.class",
            _T.CLASS,
            None,
            "A class that gets a broker's own credentials.",
            never(_PLUGIN),
        ),
        kept("sasl.login.class", _T.CLASS, None, "A class that logs a broker in.", never(_PLUGIN)),
        kept(
            "sasl.oauthbearer.jwt.retriever.class",
            _T.CLASS,
            "org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever",
            "A class that gets tokens.",
            one_of("org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever"),
        ),
        kept(
            "sasl.oauthbearer.jwt.validator.class",
            _T.CLASS,
            "org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator",
            "A class that judges tokens.",
            one_of("org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator"),
        ),
        kept(
            "sasl.server.callback.handler.class",
            _T.CLASS,
            None,
            "A class that judges log-ins.",
            never(_PLUGIN),
        ),
        kept(
            "ssl.engine.factory.class",
            _T.CLASS,
            None,
            "A class that makes TLS engines.",
            never(_PLUGIN),
            dynamic="per-broker",
        ),
    ),
    *of_no_effect(
        _KERBEROS,
        kept(
            "sasl.kerberos.kinit.cmd", _T.STRING, "/usr/bin/kinit", "The path of kinit.", dynamic="per-broker"
        ),
        kept(
            "sasl.kerberos.min.time.before.relogin",
            _T.LONG,
            60_000,
            "How long a login thread sleeps between refreshes.",
            dynamic="per-broker",
        ),
        kept(
            "sasl.kerberos.principal.to.local.rules",
            _T.LIST,
            ("DEFAULT",),
            "How a Kerberos principal becomes a user.",
            dynamic="per-broker",
        ),
        kept(
            "sasl.kerberos.service.name",
            _T.STRING,
            None,
            "The principal name that brokers run as.",
            dynamic="per-broker",
        ),
        kept(
            "sasl.kerberos.ticket.renew.jitter",
            _T.DOUBLE,
            0.05,
            "By how much of a ticket's life its renewal varies.",
            dynamic="per-broker",
        ),
        kept(
            "sasl.kerberos.ticket.renew.window.factor",
            _T.DOUBLE,
            0.8,
            "After which share of its life a ticket is renewed.",
            dynamic="per-broker",
        ),
    ),
    *of_no_effect(
        _OWN,
        kept(
            "sasl.login.connect.timeout.ms",
            _T.INT,
            None,
            "How long a connection to the token end point may take.",
        ),
        kept("sasl.login.read.timeout.ms", _T.INT, None, "How long its answer may take."),
        kept(
            "sasl.login.refresh.buffer.seconds",
            _T.SHORT,
            300,
            "How long before it expires a token is replaced at the latest.",
            dynamic="per-broker",
        ),
        kept(
            "sasl.login.refresh.min.period.seconds",
            _T.SHORT,
            60,
            "How long a token is kept at least.",
            dynamic="per-broker",
        ),
        kept(
            "sasl.login.refresh.window.factor",
            _T.DOUBLE,
            0.8,
            "After which share of its life a token is replaced.",
            dynamic="per-broker",
        ),
        kept(
            "sasl.login.refresh.window.jitter",
            _T.DOUBLE,
            0.05,
            "By how much of its life that varies.",
            dynamic="per-broker",
        ),
        kept(
            "sasl.login.retry.backoff.max.ms",
            _T.LONG,
            10_000,
            "Longest wait before the end point is asked again.",
        ),
        kept("sasl.login.retry.backoff.ms", _T.LONG, 100, "First wait before the end point is asked again."),
        kept(
            "sasl.oauthbearer.assertion.algorithm",
            _T.STRING,
            "RS256",
            "How an assertion is signed: RS256 or ES256 (KIP-1258).",
            one_of_any_case("ES256", "RS256"),
        ),
        kept(
            "sasl.oauthbearer.assertion.claim.aud", _T.STRING, None, "The audience that an assertion names."
        ),
        kept(
            "sasl.oauthbearer.assertion.claim.exp.seconds",
            _T.INT,
            300,
            "How long an assertion is good.",
            between(0, 86_400),
        ),
        kept("sasl.oauthbearer.assertion.claim.iss", _T.STRING, None, "Who issues an assertion."),
        kept(
            "sasl.oauthbearer.assertion.claim.jti.include",
            _T.BOOLEAN,
            False,
            "An assertion has a number of its own.",
        ),
        kept(
            "sasl.oauthbearer.assertion.claim.nbf.seconds",
            _T.INT,
            60,
            "How long before now an assertion begins to be good.",
            between(0, 3_600),
        ),
        kept("sasl.oauthbearer.assertion.claim.sub", _T.STRING, None, "For whom an assertion is."),
        kept("sasl.oauthbearer.assertion.file", _T.STRING, None, "A file with an assertion that is ready."),
        kept(
            "sasl.oauthbearer.assertion.private.key.file",
            _T.STRING,
            None,
            "A file with the key that signs assertions.",
        ),
        kept(
            "sasl.oauthbearer.assertion.private.key.passphrase",
            _T.PASSWORD,
            None,
            "The password of that key.",
        ),
        kept(
            "sasl.oauthbearer.assertion.template.file",
            _T.STRING,
            None,
            "A file with fixed parts of assertions.",
        ),
        kept(
            "sasl.oauthbearer.client.credentials.client.id",
            _T.STRING,
            None,
            "A broker's id at the token end point.",
        ),
        kept(
            "sasl.oauthbearer.client.credentials.client.secret", _T.PASSWORD, None, "A broker's secret there."
        ),
        kept("sasl.oauthbearer.scope", _T.STRING, None, "The scope that a broker asks for there."),
        kept(
            "sasl.oauthbearer.token.endpoint.url",
            _T.STRING,
            None,
            "Where a broker asks for tokens of its own.",
        ),
    ),
    *of_no_effect(
        _KEYS,
        kept(
            "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
            _T.LONG,
            10_000,
            "Longest wait before the keys are asked for again.",
        ),
        kept(
            "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
            _T.LONG,
            100,
            "First wait before the keys are asked for again.",
        ),
    ),
    *of_no_effect(
        _TOKENS,
        kept(
            "delegation.token.expiry.check.interval.ms",
            _T.LONG,
            3_600_000,
            "How often expired tokens are looked for.",
            at_least(1),
        ),
        kept(
            "delegation.token.expiry.time.ms",
            _T.LONG,
            86_400_000,
            "How long a token is good before it must be renewed.",
            at_least(1),
        ),
        kept(
            "delegation.token.max.lifetime.ms",
            _T.LONG,
            604_800_000,
            "How long a token is good at most.",
            at_least(1),
        ),
        kept(
            "delegation.token.secret.key",
            _T.PASSWORD,
            None,
            "The secret that tokens are signed with; without one there are none.",
            never(_TOKENS),
        ),
    ),
)
