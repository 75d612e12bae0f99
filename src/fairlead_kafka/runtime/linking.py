"""Makes links, in TLS or plaintext, as a machine's transport asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead_kafka.core.effects import Connect
from fairlead_kafka.runtime.handle import Handle
from fairlead_kafka.runtime.sockets import Link, Loop

if TYPE_CHECKING:
    from fairlead_kafka.runtime.transport import Aside


def new_link(loop: Loop, handle: Handle, effect: Connect, aside: Aside) -> Link:
    """A link for `effect`, not connected yet."""
    tls = None if handle.transport is None or effect.plain else handle.transport.tls
    if tls is None:
        return Link(loop, handle, effect.connection, effect.host)
    from fairlead_kafka.runtime.tls_link import TlsLink  # most programs never need ssl

    return TlsLink(loop, handle, effect.connection, tls, effect.host, aside)


def new_accepted_link(loop: Loop, handle: Handle, number: int, listener: int, peer: str) -> Link:
    """A link for a connection that `listener` accepted."""
    transport = handle.transport
    tls = None
    if transport is not None:
        from fairlead_kafka.runtime.transport import ServingTransport

        tls = transport.listener_tls(listener) if isinstance(transport, ServingTransport) else None
    if tls is None:
        link = Link(loop, handle, number)
    else:
        from fairlead_kafka.runtime.tls_link import AcceptedTlsLink

        link = AcceptedTlsLink(loop, handle, number, tls, peer)
    link.listener = listener
    return link
