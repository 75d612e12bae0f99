"""The table of handlers, with the API and versions that each serves, filled by the files in
`broker/api`.

ApiVersions is answered from this table, so a handler that is not in it cannot be advertised.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from fairlead_kafka.base.errors import DecodeError
from fairlead_kafka.broker.requester import Reply, Requester
from fairlead_kafka.broker.services import Services
from fairlead_kafka.wire import (
    ApiKey,
    Message,
    PrivateApi,
    Request,
    RequestHeader,
    decode_request,
)

Handler = Callable[[Services, Request[Any], Requester, Reply], None]
"""Serves one request: of this broker, asked by this connection, answered by calling the last."""


class Interceptor(Protocol):
    """Stands between requests and their handlers, for faults on purpose (`testing`)."""

    @property
    def active(self) -> bool:
        """True if the interceptor is to be asked about requests at all."""

    def serve(
        self, handler: Handler, broker: Services, request: Request[Any], session: Requester, reply: Reply
    ) -> None:
        """Serve a request in place of `handler`, or have the handler do it."""


@dataclass(frozen=True)
class Api:
    """One API that the broker serves: `handler` serves its versions `low` to `high`, both
    included."""

    handler: Handler
    low: int
    high: int
    advertised_low: int
    pipelined: bool
    """Several of these may be under way on one connection: the next is begun before the one before
    is answered."""


REGISTRY: dict[ApiKey, Api] = {}
"""Everything the broker serves; `broker.api` imports the files that fill it."""
PRIVATE: dict[PrivateApi, Api] = {}
"""APIs between brokers, which are no part of Kafka's protocol and are not advertised."""


def serves(
    api_key: ApiKey, versions: tuple[int, int], *, advertised_low: int | None = None, pipelined: bool = False
) -> Callable[[Handler], Handler]:
    """Decorator: enter a handler into the table of APIs.

    `advertised_low` is what ApiVersions says instead of the lowest version served (Produce alone
    needs it: KAFKA-18659).
    """

    def enter(handler: Handler) -> Handler:
        if api_key in REGISTRY:
            raise AssertionError(f"two handlers for {api_key.name}")
        low, high = versions
        REGISTRY[api_key] = Api(
            handler, low, high, low if advertised_low is None else advertised_low, pipelined
        )
        return handler

    return enter


def serves_privately(api_key: PrivateApi) -> Callable[[Handler], Handler]:
    """Decorator: enter a handler for a private request of brokers; it has one version, 0, since all
    brokers of a cluster are of one release."""

    def enter(handler: Handler) -> Handler:
        PRIVATE[api_key] = Api(handler, 0, 0, 0, pipelined=True)
        return handler

    return enter


def api_of(api_key: int) -> Api | None:
    """The row of an API by its number; None if it is not served."""
    found = REGISTRY.get(api_key)  # type: ignore[call-overload]
    return found if found is not None else PRIVATE.get(api_key)  # type: ignore[call-overload, no-any-return]


def decode_served(frame: memoryview, header: RequestHeader) -> Request[Message]:
    """The request in a frame; bytes behind it are ignored, as by Kafka's
    `AbstractRequest.parseRequest`.

    librdkafka needs that: when it asks for all topics it writes a null array as four bytes where
    one is due (Metadata 9 and later), and three zeros are left over at the end. The DecodeError for
    such bytes says where the message ended; the frame cut there decodes only if the message was
    whole.
    """
    try:
        return decode_request(frame, header)
    except DecodeError as error:
        if not header.size_bytes <= error.offset < len(frame):
            raise
        try:
            return decode_request(frame[: error.offset], header)
        except DecodeError:
            raise error from None
