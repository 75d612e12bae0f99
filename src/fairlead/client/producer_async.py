"""`AsyncProducer`: the face of `Producer` to await. What it does is `ProducerCore`'s; here is only the awaiting."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self, TypeVar

from fairlead.client.delivery import AsyncAck, AsyncTableAck, OnDelivery
from fairlead.client.hosting import run_async
from fairlead.client.intake import Headers
from fairlead.client.producer import Producer, ProducerCore, closing_time_s
from fairlead.core.metadata import PartitionMetadata

_F = TypeVar("_F", bound=Callable[..., Any])


def _as(blocking: Callable[..., Any]) -> Callable[[_F], _F]:
    """Decorator: the docstring of the blocking face's method; `tests/tidy/test_faces_agree.py` compares the parameters."""

    def decorate(function: _F) -> _F:
        function.__doc__ = blocking.__doc__
        return function

    return decorate


class AsyncProducer:
    """Sends records to Kafka, from one event loop.

    `async with` closes it: everything handed over is delivered first, or failed by delivery.timeout.ms. After a cancellation it gets a
    second; what is left then fails, and the log says how many records of which topics.
    """

    @_as(Producer.__init__)
    def __init__(self, config: Mapping[str, Any]) -> None:
        self._core = ProducerCore(config)

    @_as(Producer.send)
    async def send(
        self,
        topic: str,
        value: bytes | None = None,
        *,
        key: bytes | None = None,
        headers: Headers | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> AsyncAck:
        if on_delivery is not None:
            on_delivery = _in_loop(asyncio.get_running_loop(), on_delivery)
        found = self._core.offer(topic, value, key, headers, partition, timestamp_ms, on_delivery)
        if type(found) is int:
            record = (topic, value, key, headers, partition, timestamp_ms, on_delivery)
            found = await run_async(self._core.offer_steps(found, record))
        return AsyncAck(found)  # type: ignore[arg-type]

    @_as(Producer.send_table)
    async def send_table(self, topic: str, table: Any) -> AsyncTableAck:
        return AsyncTableAck(await run_async(self._core.table_steps(topic, table)))

    @_as(Producer.flush)
    async def flush(self, timeout_s: float | None = None) -> None:
        await run_async(self._core.flush_steps(timeout_s))

    @_as(Producer.close)
    async def close(self, timeout_s: float | None = None) -> None:
        await run_async(self._core.close_steps(timeout_s))

    @_as(Producer.partitions_for)
    async def partitions_for(self, topic: str) -> list[PartitionMetadata]:
        return await run_async(self._core.partitions_steps(topic))

    @_as(Producer.metrics)
    def metrics(self) -> dict[str, int]:
        return self._core.metrics()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close(closing_time_s(kind))


def _in_loop(loop: asyncio.AbstractEventLoop, on_delivery: OnDelivery) -> OnDelivery:
    return lambda metadata, error: loop.call_soon_threadsafe(on_delivery, metadata, error)
