"""An exception in any callback and any handler of the broker, one at a time: it is counted, no
broker ends, and all others are served."""

from __future__ import annotations

import logging

import pytest

from fairlead_kafka.broker.dispatch import REGISTRY
from tests.support.every_api import check_well, new_cluster, tour
from tests.support.raising import callbacks, place_of, raising
from tests.support.virtual_cluster import VirtualCluster

SHARED = {"log/logs.py:Logs.recover"}
"""Callbacks that do not go on in the name of one: what all of a broker stands on."""


def _tour() -> None:
    cluster = new_cluster()
    tour(cluster)
    cluster.close()


CAUGHT_IN_PLACE = (
    "sessions.py:Session._serve",
    "sessions.py:Session._work",
    "api/k00_produce.py:_Produced._replicated",
)
"""Called for every request and every batch: whoever calls them catches what they raise, without
`Guard.call`."""
CALLBACKS = callbacks(_tour, CAUGHT_IN_PLACE)
HANDLERS = {place_of(api.handler.__code__) for api in REGISTRY.values()}
PLACES = [(place, 1) for place in sorted({*HANDLERS, *CALLBACKS} - SHARED)]
PLACES += [
    (place, calls // 2) for place, calls in sorted(CALLBACKS.items()) if place not in SHARED and calls >= 4
]
"""What is to raise, and when: as it is called for the first time, and in the midst of it all."""


@pytest.fixture
def cluster(caplog: pytest.LogCaptureFixture) -> VirtualCluster:
    caplog.set_level(logging.CRITICAL)
    return new_cluster()


@pytest.mark.parametrize(("place", "at_call"), PLACES)
def test_the_broker_goes_on_serving_others(cluster: VirtualCluster, place: str, at_call: int) -> None:
    with raising(place, at_call) as raised:
        tour(cluster)
    assert raised, f"{place} was called less often than before"
    assert sum(broker.errors for broker in cluster.brokers.values()) >= 1
    check_well(cluster)
    cluster.close()


def test_the_tour_comes_by_every_callback_that_there_is() -> None:
    """A callback is what `Guard.bind`, a timer, a link or a file is given; those of rare cases are
    listed, and tested where they are."""
    assert len(CALLBACKS) >= 40
