"""The targets by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.fuzz import (
    target_broker,
    target_clients,
    target_codecs,
    target_formats,
    target_logins,
    target_records,
    target_security,
    target_wire,
)
from tests.fuzz.engine import Run


def _nothing() -> None:
    pass


@dataclass(frozen=True)
class Target:
    """`run` makes inputs of a tape; `prepare` is called once before."""

    run: Run
    prepare: Callable[[], None] = _nothing


TARGETS: dict[str, Target] = {
    "wire": Target(target_wire.run),
    "records": Target(target_records.run, target_records.prepare),
    "codecs": Target(target_codecs.run),
    "formats": Target(target_formats.run, target_formats.prepare),
    "security": Target(target_security.run),
    "logins": Target(target_logins.run, target_logins.prepare),
    "broker": Target(target_broker.run),
    "rights": Target(target_broker.rights),
    "producer": Target(target_clients.producer),
    "transactions": Target(target_clients.transactions),
    "consumer": Target(target_clients.consumer),
    "group": Target(target_clients.group),
    "admin": Target(target_clients.admin),
}
