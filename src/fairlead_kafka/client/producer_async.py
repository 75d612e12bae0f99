"""`AsyncProducer`: sends records, async.

`ProducerCore` does the work; this module only awaits it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from types import TracebackType
from typing import Self, TypeVar
from uuid import UUID

import numpy as np  # noqa: F401  # first of all: see the package's docstring

from fairlead_kafka.base.checked import checked
from fairlead_kafka.base.within import Seconds
from fairlead_kafka.client.delivery import LOGGER, OnDelivery, RecordMetadata
from fairlead_kafka.client.handles import AsyncAck, AsyncTableAck
from fairlead_kafka.client.hosting import Opener, Steps, open_host, run_async
from fairlead_kafka.client.intake import Headers, check_callback
from fairlead_kafka.client.offsets import Offsets
from fairlead_kafka.client.producer import Producer
from fairlead_kafka.client.producer_core import ProducerCore
from fairlead_kafka.client.transactions import AsyncTransaction
from fairlead_kafka.core.group_offsets import GroupMetadata
from fairlead_kafka.core.metadata import PartitionMetadata
from fairlead_kafka.core.prepared import PreparedTransaction
from fairlead_kafka.producer.metrics import Metrics

T = TypeVar("T")
_F = TypeVar("_F", bound=Callable[..., object])


def _as(blocking: Callable[..., object]) -> Callable[[_F], _F]:
    """Decorator: gives a method the docstring of its blocking counterpart.

    `tests/tidy/test_client_apis_agree.py` compares the parameters.
    """

    def decorate(function: _F) -> _F:
        function.__doc__ = blocking.__doc__
        return function

    return decorate


@checked("send", "send_table")
class AsyncProducer:
    """Sends records to Kafka, from one event loop; the methods of `Producer`, as coroutines.

    `async with` closes it: everything sent is delivered first, or failed by delivery.timeout.ms.
    After a cancellation it goes on for as long as anything is delivered within a second; what is
    left then fails, and the log says how many records of which topics.
    """

    @_as(Producer.__init__)
    def __init__(self, config: Mapping[str, object], *, opener: Opener = open_host) -> None:
        self._core = ProducerCore(config, AsyncAck, opener)
        self._offer = self._core.offer
        if self._core.serializing is not None:
            self._offer = self._core.serializing.around(self._offer)
        self._core.belongs_to(self)
        if self._core.interceptors is not None:
            self.send = self._core.interceptors.around_async(self.send)  # type: ignore[method-assign]

    def _run(self, steps: Steps[T]) -> Coroutine[object, None, T]:
        return run_async(steps, self._core.host)

    @_as(Producer.send)
    async def send(
        self,
        topic: str,
        value: object = None,
        *,
        key: object = None,
        headers: Headers | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> AsyncAck:
        if (
            headers is None and partition is None and timestamp_ms is None and on_delivery is None
        ):  # most often, and half of what the call takes
            found = self._offer(topic, value, key=key)
        else:
            if on_delivery is not None:
                check_callback(on_delivery)
                on_delivery = _in_loop(asyncio.get_running_loop(), on_delivery)
            found = self._offer(
                topic,
                value,
                key=key,
                headers=headers,
                partition=partition,
                timestamp_ms=timestamp_ms,
                on_delivery=on_delivery,
            )
        if isinstance(found, tuple):
            return await self._run(self._core.offer_steps(*found))
        return found

    @_as(Producer.send_table)
    async def send_table(self, topic: str, table: object) -> AsyncTableAck:
        return AsyncTableAck(await self._run(self._core.table_steps(topic, table)))

    @_as(Producer.flush)
    async def flush(self, timeout_s: Seconds | None = None) -> None:
        await self._run(self._core.flush_steps(timeout_s))

    @_as(Producer.close)
    async def close(self, timeout_s: Seconds | None = None) -> dict[str, int]:
        return await self._run(self._core.close_steps(timeout_s))

    @_as(Producer.connect)
    async def connect(self, timeout_s: Seconds | None = None) -> None:
        await self._run(self._core.connect_steps(timeout_s))

    @_as(Producer.client_instance_id)
    async def client_instance_id(self, timeout_s: Seconds | None = None) -> UUID:
        return await self._run(self._core.instance_id_steps(timeout_s))

    @_as(Producer.partitions_for)
    async def partitions_for(self, topic: str, timeout_s: Seconds | None = None) -> list[PartitionMetadata]:
        return await self._run(self._core.partitions_steps(topic, timeout_s))

    @_as(Producer.init_transactions)
    async def init_transactions(self, timeout_s: Seconds | None = None) -> None:
        await self._run(self._core.transactions.init(timeout_s))

    @_as(Producer.begin_transaction)
    async def begin_transaction(self) -> None:
        await self._run(self._core.transactions.begin())

    @_as(Producer.send_offsets_to_transaction)
    async def send_offsets_to_transaction(self, offsets: Offsets, group: str | GroupMetadata) -> None:
        await self._run(self._core.transactions.send_offsets(offsets, group))

    @_as(Producer.prepare_transaction)
    async def prepare_transaction(self, timeout_s: Seconds | None = None) -> PreparedTransaction | None:
        return await self._run(self._core.transactions.prepare(timeout_s))

    @_as(Producer.commit_transaction)
    async def commit_transaction(self, timeout_s: Seconds | None = None) -> None:
        await self._run(self._core.transactions.end(True, timeout_s))

    @_as(Producer.abort_transaction)
    async def abort_transaction(self, timeout_s: Seconds | None = None) -> None:
        await self._run(self._core.transactions.end(False, timeout_s))

    @_as(Producer.transaction)
    def transaction(self) -> AsyncTransaction:
        return AsyncTransaction(self._core.transactions)

    @_as(Producer.metrics)
    def metrics(self) -> Metrics:
        return self._core.metrics()

    @property
    def client_id(self) -> str:
        """The `client.id` of the config."""
        return self._core.client_id

    async def __aenter__(self) -> Self:
        self._core.check_open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._run(self._core.leave_steps(kind))


def _in_loop(loop: asyncio.AbstractEventLoop, on_delivery: OnDelivery) -> OnDelivery:
    def pass_on(metadata: RecordMetadata | None, error: Exception | None) -> None:
        try:
            loop.call_soon_threadsafe(on_delivery, metadata, error)
        except RuntimeError:
            LOGGER.warning(
                "a delivery callback was not called: its event loop is closed; close the producer before its "
                "loop"
            )

    return pass_on
