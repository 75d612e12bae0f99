"""Credentials of a client's log-in: the settings of SASL, given one by one or as Java's
`sasl.jaas.config`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fairlead_kafka.base.config import Settings
from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.base.secret import Secret
from fairlead_kafka.security.jaas import JaasEntry, parse_jaas
from fairlead_kafka.security.references import resolve

_KAFKA = "org.apache.kafka.common.security"
_EXTENSION = "extension_"
_PRINCIPAL, _KEYTAB = "sasl.kerberos.principal", "sasl.kerberos.keytab"
_CLIENT_ID = "sasl.oauthbearer.client.credentials.client.id"
_CLIENT_SECRET = "sasl.oauthbearer.client.credentials.client.secret"
_EXTENSIONS = "sasl.oauthbearer.extensions"
_MODULES: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {
    "PlainLoginModule": (("PLAIN",), {"username": "sasl.username", "password": "sasl.password"}),
    "ScramLoginModule": (
        ("SCRAM-SHA-256", "SCRAM-SHA-512"),
        {"username": "sasl.username", "password": "sasl.password"},
    ),
    "OAuthBearerLoginModule": (
        ("OAUTHBEARER",),
        {"clientId": _CLIENT_ID, "clientSecret": _CLIENT_SECRET, "scope": "sasl.oauthbearer.scope"},
    ),
    "Krb5LoginModule": (
        ("GSSAPI",),
        {"principal": _PRINCIPAL, "keyTab": _KEYTAB, "serviceName": "sasl.kerberos.service.name"},
    ),
    "IAMLoginModule": (
        ("AWS_MSK_IAM",),
        {name: name for name in ("awsProfileName", "awsRoleArn", "awsRoleSessionName", "awsStsRegion")},
    ),
}
"""The last part of a log-in module's name → the mechanisms that it serves, and its options as our
settings."""
_OF_A_JVM = {
    "Krb5LoginModule": (
        "useKeyTab",
        "useTicketCache",
        "storeKey",
        "debug",
        "doNotPrompt",
        "refreshKrb5Config",
        "renewTGT",
        "ticketCache",
    ),
    "IAMLoginModule": ("awsDebugCreds", "awsMaxRetries", "awsMaxBackOffTimeMs"),
}
"""Options of log-in modules, by module, that are accepted and ignored."""
_BESIDE_JAAS = ("sasl.username", "sasl.password", _PRINCIPAL, _KEYTAB, _CLIENT_ID, _CLIENT_SECRET)


class Credentials(Mapping[str, str]):
    """Settings of SASL as text, with references resolved now; without the keys that are not set. It
    contains passwords, so keep it nowhere."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values

    def __getitem__(self, key: str) -> str:
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"Credentials({', '.join(self._values)})"

    def secret(self, key: str) -> Secret:
        """The value of one setting, which must be there."""
        return Secret(self._values[key])

    def extensions(self) -> dict[str, str]:
        """The SASL extensions of `sasl.oauthbearer.extensions`. ConfigError if they are no
        pairs."""
        pairs = [pair for pair in self._values.get(_EXTENSIONS, "").split(",") if pair.strip()]
        if any("=" not in pair for pair in pairs):
            raise ConfigError(f"{_EXTENSIONS}: must be name=value pairs, separated by commas")
        return {name.strip(): value.strip() for name, _, value in (pair.partition("=") for pair in pairs)}


def credentials(settings: Settings) -> Credentials:
    """SASL settings of the log-in, from `settings`.

    ConfigError if they do not fit together, or a reference leads nowhere.
    """
    texts: dict[str, str] = {}
    for key in settings:
        value = settings[key]
        if key.startswith("sasl.") and key != "sasl.jaas.config" and isinstance(value, str | Secret):
            texts[key] = resolve(value.reveal() if isinstance(value, Secret) else value, key)
    jaas: Secret | None = settings["sasl.jaas.config"]
    if jaas is not None:
        twice = [key for key in _BESIDE_JAAS if settings[key] is not None]
        if twice:
            raise ConfigError(f"sasl.jaas.config and {twice[0]} say the same; leave one of them out")
        texts.update(
            _of_jaas(parse_jaas(resolve(jaas.reveal(), "sasl.jaas.config")), settings["sasl.mechanism"])
        )
    return Credentials(texts)


def _of_jaas(entry: JaasEntry, mechanism: str) -> dict[str, str]:
    name = entry.module.rpartition(".")[2]
    if name not in _MODULES:
        known = ", ".join(_MODULES)
        raise ConfigError(
            f"sasl.jaas.config: the log-in module {entry.module} is Java's alone; known here are {known}"
        )
    mechanisms, keys = _MODULES[name]
    if mechanism not in mechanisms:
        raise ConfigError(
            f"sasl.jaas.config: {name} is for sasl.mechanism {' or '.join(mechanisms)}, and that is "
            f"{mechanism}"
        )
    found: dict[str, str] = {}
    extensions: list[str] = []
    for option, value in entry.options.items():
        if option in keys:
            found[keys[option]] = value
        elif name == "OAuthBearerLoginModule" and option.startswith(_EXTENSION):
            extensions.append(f"{option.removeprefix(_EXTENSION)}={value}")
        elif name == "ScramLoginModule" and option == "tokenauth":
            if value.lower() == "true":
                raise ConfigError(
                    "sasl.jaas.config: tokenauth: delegation tokens are not served; log in with a user name "
                    "and a password"
                )
        elif option not in _OF_A_JVM.get(name, ()):
            raise ConfigError(f"sasl.jaas.config: {name} has no option {option}; it has {', '.join(keys)}")
    if extensions:
        found[_EXTENSIONS] = ",".join(extensions)
    return found
