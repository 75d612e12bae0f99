"""A client that is told to hold still does (KIP-219): nothing is sent to that broker until the time
is over, and nothing is late for it."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead_kafka.base.errors import TimedOut
from fairlead_kafka.broker.dispatch import REGISTRY
from fairlead_kafka.core.throttling import CLIENT_WAITS_FROM_VERSION, wait_ms
from fairlead_kafka.wire import ApiKey, Message
from fairlead_kafka.wire.private import PrivateApi
from tests.support.fake_broker import (
    Client,
    FakeBroker,
    Scene,
    list_offsets_message,
    list_offsets_request,
    versions_message,
)


def scene_with(
    throttle_ms: list[int], offered: dict[ApiKey, tuple[int, int]] | None = None, **configs: Any
) -> Scene:
    """A broker whose answers to ListOffsets ask for these waits, one after the other, and then for
    none."""
    broker = FakeBroker()
    waits = list(throttle_ms)
    broker.answers[ApiKey.LIST_OFFSETS] = lambda request: list_offsets_message(waits.pop(0) if waits else 0)
    if offered is not None:
        broker.answers[ApiKey.API_VERSIONS] = lambda request: versions_message(offered)
    return Scene(Client(**configs), broker)


def asked(scene: Scene) -> int:
    return len(scene.brokers[0][0].asked(ApiKey.LIST_OFFSETS))


def test_what_waits_for_a_broker_waits_until_the_time_is_over() -> None:
    scene = scene_with([500])
    scene.until_ready()
    scene.send()
    scene.until_answers()
    started_ms = scene.now_ms()
    assert scene.network.throttled(0)
    scene.do(
        lambda network: network.request(
            ApiKey.LIST_OFFSETS,
            list_offsets_request(),
            scene.client.on_done,
            node_id=0,
            deadline_ns=10**18,
            fails_fast=True,
        )
    )
    scene.host.advance(499)
    assert asked(scene) == 1
    scene.until_answers(2)
    assert scene.now_ms() - started_ms == 500
    assert not scene.client.errors()
    assert not scene.network.throttled(0)


def test_a_request_that_may_not_wait_so_long_says_why_it_was_not_sent() -> None:
    scene = scene_with([5_000])
    scene.until_ready()
    scene.send()
    scene.until_answers()
    now_ns = scene.host.now_ns()
    scene.do(
        lambda network: network.request(
            ApiKey.LIST_OFFSETS,
            list_offsets_request(),
            scene.client.on_done,
            node_id=0,
            deadline_ns=now_ns + 10**9,
        )
    )
    (_, (_, error)) = scene.until_answers(2)
    assert isinstance(error, TimedOut)
    assert "asked to be left alone, for a quota of this client is used up" in str(error)


def test_a_shorter_wait_does_not_end_a_longer_one() -> None:
    scene = scene_with([1_000, 10])
    scene.until_ready()
    scene.send(2)
    scene.until_answers(2)
    started_ms = scene.now_ms()
    scene.host.run_until(lambda: scene.network.ready(0))
    assert scene.now_ms() - started_ms == 1_000


def test_what_is_in_flight_has_so_much_more_time() -> None:
    """The broker begins nothing of it meanwhile."""
    broker = FakeBroker()
    answers: list[Message | None] = [list_offsets_message(3_000), None]
    broker.answers[ApiKey.LIST_OFFSETS] = lambda request: answers.pop(0)
    scene = Scene(Client(request_timeout_ms=700), broker)
    scene.until_ready()
    scene.send(2)
    scene.until_answers(1)
    started_ms = scene.now_ms()
    ((_, error),) = scene.until_answers(2)[1:]
    assert isinstance(error, TimedOut)
    assert scene.now_ms() - started_ms == 3_700


def test_an_old_broker_has_waited_itself() -> None:
    """Before version 3 of ListOffsets the wait that an answer tells of is over."""
    offered = {ApiKey.METADATA: (4, 12), ApiKey.API_VERSIONS: (0, 3), ApiKey.LIST_OFFSETS: (1, 2)}
    scene = scene_with([500], offered)
    scene.until_ready()
    scene.send()
    scene.until_answers()
    assert scene.network.ready(0)


def test_a_wait_may_be_asked_for_when_versions_are_negotiated() -> None:
    broker = FakeBroker()
    broker.answers[ApiKey.API_VERSIONS] = lambda request: Message(
        **{**versions_message().__dict__, "throttle_time_ms": 400}
    )
    scene = Scene(Client(), broker)
    started_ms = scene.now_ms()
    scene.host.run_until(lambda: bool(broker.asked(ApiKey.METADATA)))
    assert scene.now_ms() - started_ms == 400


def test_a_new_connection_is_not_throttled() -> None:
    scene = scene_with([60_000])
    scene.until_ready()
    scene.send()
    scene.until_answers()
    broker, handle = scene.brokers[0]
    scene.host.submit(handle, broker.hang_up())
    scene.host.run_until(lambda: not scene.network.throttled(0))
    scene.until_ready()


@pytest.mark.parametrize(("version", "expected"), [(5, 0), (6, 250)])
def test_the_version_says_who_waits(version: int, expected: int) -> None:
    assert wait_ms(ApiKey.PRODUCE, version, Message(throttle_time_ms=250)) == expected


def test_apis_that_are_younger_than_the_rule_always_keep_it() -> None:
    assert wait_ms(ApiKey.DESCRIBE_CLIENT_QUOTAS, 0, Message(throttle_time_ms=250)) == 250
    assert wait_ms(PrivateApi.REPLICATE, 0, Message(body=b"")) == 0
    assert wait_ms(ApiKey.SASL_AUTHENTICATE, 2, Message(error_code=0)) == 0
    assert all(api.high >= CLIENT_WAITS_FROM_VERSION.get(key, 0) for key, api in REGISTRY.items())
