"""TLS contexts whose sockets close if the peer has disconnected before TLS begins.

`SSLContext.wrap_socket` takes the descriptor over and then looks whether there is a peer. If the
peer has reset the connection by then, Python (3.11.5 and newer) raises and leaves the descriptor
open until the garbage collector comes, with a ResourceWarning.
"""

from __future__ import annotations

import errno
import os
import ssl
from typing import Any


class TlsSocket(ssl.SSLSocket):
    """A TLS socket that is closed when it is made without a peer."""

    def getpeername(self) -> Any:
        """The peer's address, as `socket.getpeername` gives it; ConnectionResetError if there is no
        peer any more: the socket is closed then."""
        try:
            return super().getpeername()
        except OSError as error:
            self.close()
            # Told there is no connection (ENOTCONN), `ssl` would go on with the closed socket.
            raise ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET)) from error


def tls_context(protocol: int) -> ssl.SSLContext:
    """A context of `ssl.PROTOCOL_TLS_CLIENT` or `ssl.PROTOCOL_TLS_SERVER` that makes
    `TlsSocket`s."""
    context = ssl.SSLContext(protocol)
    context.sslsocket_class = TlsSocket
    return context
