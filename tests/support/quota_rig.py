"""A broker whose clients have quotas."""

from __future__ import annotations

from typing import Any

from fairlead_kafka.core.events import Disconnected
from fairlead_kafka.wire import ApiKey, Message, encode_request
from tests.support.broker_driver import Client, Driver, batch, produce_fields
from tests.support.quota_calls import Entity, alter_fields, alteration

ANYBODY: Entity = {"user": None}
WINDOWS_MS = 10_000


class Rig:
    """A broker with a topic, and quotas set by an administrator whose own connection is charged as
    any other."""

    def __init__(self, **config: Any) -> None:
        self.driver = Driver({name.replace("_", "."): value for name, value in config.items()})
        self.driver.controller.create_topic("events", 3)
        self.admin = self.connect("admin")

    def connect(self, client_id: str | None = "driver", address: str = "driver") -> Client:
        client = self.driver.connect(address)
        client.client_id = client_id  # type: ignore[assignment]
        return client

    def session(self, client: Client) -> Any:
        return self.driver.broker.clients.sessions[client.connection]

    def grant(self, entity: Entity, **values: float | None) -> None:
        answer = self.admin.ask(ApiKey.ALTER_CLIENT_QUOTAS, 1, **alter_fields(alteration(entity, **values)))
        assert [row.error_code for row in answer.entries] == [0], answer

    def session_lost(self, client: Client) -> None:
        """It leaves by itself."""
        self.driver.broker.receive(Disconnected(client.connection, "gone"))
        self.driver.run()

    def advance(self, milliseconds: float) -> None:
        self.driver.advance(milliseconds)
        self.driver.broker.check()


def frame_bytes(size_bytes: int, version: int = 9, acks: int = 1, client_id: str | None = "driver") -> int:
    """What a Produce request of one value is charged with."""
    fields = produce_fields({("events", 0): batch([b"x" * size_bytes])}, acks)
    return sum(map(len, encode_request(ApiKey.PRODUCE, version, 1, client_id, Message(**fields)))) - 4


def produce(client: Client, size_bytes: int, version: int = 9, acks: int = 1) -> Message:
    """Produce one value; the whole answer."""
    return client.ask(
        ApiKey.PRODUCE, version, **produce_fields({("events", 0): batch([b"x" * size_bytes])}, acks)
    )


def send_produce(client: Client, size_bytes: int, acks: int = 1) -> None:
    client.send(ApiKey.PRODUCE, 9, **produce_fields({("events", 0): batch([b"x" * size_bytes])}, acks))
