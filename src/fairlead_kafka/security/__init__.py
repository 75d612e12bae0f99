"""Security: TLS, log-ins and secrets.

A machine knows that its connections log in, and in which order the messages of a log-in go
(`core.login`). The contents of the messages, and TLS, are made here: this package gives a host the
`Transport` of a machine, and the host carries it out. No password, key or token ever reaches a
machine, and none is kept longer than a log-in or a connection needs it.

    transport     `client_transport(settings)`: what a client's host is given, or None for PLAINTEXT
    tls           contexts of Python's `ssl`, made again when a file has changed, and `failures`:
                  why a handshake failed, in words
    key_stores    certificates and keys out of PEM, PKCS12 and JKS (`jks`)
    mechanisms    one log-in each: PLAIN, SCRAM, OAUTHBEARER, GSSAPI
    tokens        one token for all connections of a client, renewed in time; it comes from `oidc`
                  or `token_providers`
    jaas          Java's `sasl.jaas.config`, read into Fairlead's settings
    references    `${env:NAME}` and `${file:PATH:KEY}`, resolved where a value is used

A broker's host is given a `server_transport.ServerTransport`: the same for connections to other
brokers, and for each of its listeners

    server_tls         the server's context, and principals of certificates (`principal_names`)
    server_mechanisms  servers' ends of log-ins: PLAIN here, `server_scram` and `server_bearer`
    jwt, jwks          the checks of a token, and the keys that may sign it

Errors. Settings that cannot work (a file that is missing, a password that does not fit, a mechanism
without its user name) are ConfigError when the client is made. A refusal of the other end is
AuthenticationFailed, raised at once from each call that waits. A token end point that is down is
ConnectionFailed, tried again. A client's messages are bounded before they are read, and any invalid
one is AuthenticationFailed too, with a message to the client that reveals no more than Kafka's.
Secrets are `base.secret.Secret`s: no message or log line shows one.

Python's `ssl` is OpenSSL and the operating system's trust; PKCS12 and signatures are
`cryptography`'s, Kerberos is `gssapi`'s. JKS is read here, because the package for it is not
maintained; the modules of the server's SCRAM and of tokens have the reasons why they are written
here.
"""

from fairlead_kafka.security.transport import client_transport

__all__ = ["client_transport"]
