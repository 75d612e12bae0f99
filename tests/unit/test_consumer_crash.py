"""A defect in the consumer's machine ends it, and nobody waits for it for ever."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

from fairlead_kafka.base.errors import UsageError
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.client import Consumer
from fairlead_kafka.consumer.fetcher import Fetcher

T0 = TopicPartition("t", 0)


@pytest.mark.parametrize(
    "call",
    [
        lambda consumer: consumer.poll(30),
        lambda consumer: consumer.position(T0),
        lambda consumer: consumer.end_offsets([T0]),
        lambda consumer: consumer.commit({T0: 1}),
        lambda consumer: consumer.committed([T0]),
    ],
)
def test_who_waits_for_a_machine_that_crashes_is_told_and_so_is_who_comes_later(
    call: Callable[[Consumer], object], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    consumer = Consumer({"bootstrap.servers": "127.0.0.1:1", "group.id": "g"})
    consumer.assign([T0])

    def crash(_fetcher: Fetcher) -> None:
        raise ZeroDivisionError("a defect")

    monkeypatch.setattr(Fetcher, "advance", crash)
    with pytest.raises((ZeroDivisionError, UsageError), match="a defect"):
        call(consumer)  # what `assign` left to do may crash the machine before this call
    with pytest.raises(UsageError, match="takes no operations any more, it failed earlier"):
        call(consumer)
    consumer.close()
