"""The server's end of TLS: the context of a listener, and the principal of a client's
certificate."""

from __future__ import annotations

import ssl

from fairlead_kafka.base.config import Settings
from fairlead_kafka.base.errors import AuthenticationFailed, ConfigError
from fairlead_kafka.security.principal_names import PrincipalNames, subject_name
from fairlead_kafka.security.tls import Contexts
from fairlead_kafka.security.tls_sockets import tls_context

_CLIENT_CERTIFICATES = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}


class ServerTls(Contexts):
    """TLS of one listener, of its own settings. ConfigError when it is made if a file or a setting
    cannot be used."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._names = PrincipalNames(settings["ssl.principal.mapping.rules"])

    def context(self) -> ssl.SSLContext:
        """The context for a connection that begins now. If the files on disk cannot be used any
        more, those read before are, and that is logged."""
        return self._current()

    def subject(self, certificate: bytes | None) -> str | None:
        """The user whom a client's certificate (DER) names by `ssl.principal.mapping.rules`; None:
        the client showed no certificate.

        AuthenticationFailed if no rule fits: Kafka closes the connection then.
        """
        if certificate is None:
            return None
        try:
            subject = subject_name(certificate)
        except ValueError as error:
            raise AuthenticationFailed(f"the certificate of the client is {error}") from None
        return self._names.name(subject)

    def _made(self) -> ssl.SSLContext:
        context = tls_context(ssl.PROTOCOL_TLS_SERVER)
        context.options |= ssl.OP_NO_RENEGOTIATION  # costs a server far more than the client that asks for it
        self._set_versions(context)
        self._set_suites(context)
        if not self._set_identity(context):
            raise ConfigError(
                "ssl.keystore.location: is needed, for a broker shows its certificate to every client"
            )
        wanted = _CLIENT_CERTIFICATES[self._settings["ssl.client.auth"]]
        if wanted is not ssl.CERT_NONE:
            self._set_trust(context, ssl.Purpose.CLIENT_AUTH)
            context.verify_mode = wanted
        return context
