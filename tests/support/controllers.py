"""Controllers for tests: one that writes its log into a list, with brokers that run."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from fairlead_kafka.base.config_broker import BROKER_CONFIGS
from fairlead_kafka.base.ids import Node
from fairlead_kafka.broker.controller import Controller


class Log(Protocol):
    """A list will do."""

    def append(self, data: bytes, /) -> None:
        """Take a line."""


def node(node_id: int) -> Node:
    """A broker's address."""
    return Node(node_id, "localhost", 9092 + node_id)


def make_controller(
    brokers: int = 3,
    config: Mapping[str, Any] | None = None,
    log: Log | None = None,
    replay: bytes | None = None,
    replace: Callable[[bytes], None] | None = None,
) -> Controller:
    """A controller whose brokers 0, 1, ... have started; `log` gets what it writes, `replay` is
    what it starts from."""
    append = None if log is None else log.append
    controller = Controller(
        BROKER_CONFIGS.parse("broker", dict(config or {})), random.Random(7), append, replace
    )
    if replay is not None:
        controller.replay(replay)
    for node_id in range(brokers):
        controller.broker_started(node(node_id))
    return controller
