"""Asks a cluster for its topics, with one request and a short time-out.

`fairlead_kafka.client` would do, and takes as long to load as a whole check may last; a check needs
one frame there and one back.
"""

from __future__ import annotations

import socket
import struct
import time
from dataclasses import dataclass

from fairlead_kafka.base.errors import ConfigError, ConnectionFailed, DecodeError
from fairlead_kafka.wire import ApiKey, Message, decode_response, encode_request

METADATA_VERSION = 5
"""Version of the Metadata request: no flexible fields, and served by every broker since Kafka
1.0."""
CONNECT_PATIENCE_S = 0.4
"""Seconds to connect to all brokers of a list together: it is the system that accepts, within
milliseconds, however busy a broker is."""
ANSWER_PATIENCE_S = 3.0
"""Seconds to wait for data of an answer: a broker that is there may be slow, though what is asked
of it costs it next to nothing."""


@dataclass(frozen=True)
class ClusterView:
    """The number of partitions of each topic of a cluster."""

    partitions: dict[str, int]


def look_at(bootstrap_servers: str, patience_s: float = CONNECT_PATIENCE_S) -> ClusterView:
    """The topics of the first broker that answers. Raises ConnectionFailed, with the reason of
    each, or ConfigError for no address."""
    addresses = [_address(text) for text in bootstrap_servers.split(",") if text.strip()]
    if not addresses:
        raise ConfigError("no broker is named; write host:port, several separated by commas")
    deadline_s = time.monotonic() + patience_s
    refusals = []
    for number, (host, port) in enumerate(addresses):
        left_s = max(0.05, (deadline_s - time.monotonic()) / (len(addresses) - number))
        try:
            return _ask(host, port, left_s)
        except TimeoutError:
            refusals.append(f"{host}:{port} did not answer in time")
        except (OSError, DecodeError) as error:
            refusals.append(f"{host}:{port}: {getattr(error, 'strerror', None) or error}")
    raise ConnectionFailed("; ".join(refusals))


def _address(text: str) -> tuple[str, int]:
    host, found, port = text.strip().rpartition(":")
    if not found or not host or not port.isdecimal() or int(port) > 65_535:
        raise ConfigError(f"{text.strip()!r} is not host:port")
    return host.strip("[]"), int(port)


def _ask(host: str, port: int, patience_s: float) -> ClusterView:
    everything = Message(topics=None, allow_auto_topic_creation=False)
    request = b"".join(
        encode_request(ApiKey.METADATA, METADATA_VERSION, 0, "fairlead-pipeline-check", everything)
    )
    with socket.create_connection((host, port), timeout=patience_s) as connection:
        connection.settimeout(ANSWER_PATIENCE_S)
        connection.sendall(request)
        (size_bytes,) = struct.unpack(">i", _exactly(connection, 4))
        answer = decode_response(
            ApiKey.METADATA, METADATA_VERSION, memoryview(_exactly(connection, size_bytes))
        )
    return ClusterView(
        {topic.name: len(topic.partitions) for topic in answer.topics if topic.error_code == 0}
    )


def _exactly(connection: socket.socket, size_bytes: int) -> bytes:
    data = bytearray()
    while len(data) < size_bytes:
        piece = connection.recv(size_bytes - len(data))
        if not piece:
            raise ConnectionError("the broker ended the connection; is this a Kafka port, without TLS?")
        data += piece
    return bytes(data)
