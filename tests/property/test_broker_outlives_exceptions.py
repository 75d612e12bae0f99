"""An exception in any callback and handler of the broker, and in any decision of the controller,
one at a time: it is counted, no broker ends, and all others are served."""

from __future__ import annotations

import logging
from collections import Counter
from typing import Any

import pytest

from fairlead_kafka.broker.controller import (
    AlterPartitions,
    BrokerStarted,
    BrokerStopped,
    BrokerStopping,
    Controller,
    DiskReported,
)
from fairlead_kafka.broker.controller.controller import DECIDERS
from fairlead_kafka.broker.dispatch import REGISTRY
from tests.support.every_api import check_well, new_cluster, tour
from tests.support.raising import Fault, Injected, before_each_call, place_of

CAUGHT_IN_PLACE = (
    "sessions.py:Session._serve",
    "sessions.py:Session._work",
    "api/k00_produce.py:_Produced._replicated",
)
"""Called for every request and every batch: whoever calls them catches what they raise, without
`Guard.call`."""


def _called_in_a_tour() -> Counter[str]:
    """How often each function is called that is to raise."""
    called: Counter[str] = Counter()
    with before_each_call(lambda code: called.update([place_of(code)]), CAUGHT_IN_PLACE):
        cluster = new_cluster()
        called.clear()  # all of a broker stands on its start
        tour(cluster)
        cluster.close()
    return called


HANDLERS = {place_of(api.handler.__code__) for api in REGISTRY.values()}
CALLBACKS = {place: calls for place, calls in _called_in_a_tour().items() if place not in HANDLERS}
PLACES = [(place, 1) for place in sorted({*HANDLERS, *CALLBACKS})]
PLACES += [(place, calls // 2) for place, calls in sorted(CALLBACKS.items()) if calls >= 4]
"""What is to raise, and when: as it is called for the first time, and in the midst of it all."""


@pytest.mark.parametrize(("place", "at_call"), PLACES)
def test_the_broker_goes_on_serving_others(
    caplog: pytest.LogCaptureFixture, place: str, at_call: int
) -> None:
    caplog.set_level(logging.CRITICAL)
    fault = Fault(place, at_call)
    with before_each_call(fault, CAUGHT_IN_PLACE):
        cluster = new_cluster()
        fault.armed = True
        tour(cluster)
    assert fault.raised, f"{place} was called less often than before"
    assert sum(broker.errors for broker in cluster.brokers.values()) >= 1
    check_well(cluster)
    cluster.close()


def test_the_tour_comes_by_every_callback_that_there_is() -> None:
    """A callback is what `Guard.bind`, a timer, a link or a file is given; those of rare cases are
    listed, and tested where they are."""
    assert len(CALLBACKS) >= 40


LIFE = (AlterPartitions, BrokerStarted, BrokerStopped, BrokerStopping, DiskReported)
"""What a tour has no cause for; see `test_controller_outlives`."""


@pytest.mark.parametrize(
    "kind", [kind for kind in DECIDERS if kind not in LIFE], ids=lambda kind: str(kind.__name__)
)
def test_a_decision_that_raises_is_an_error_of_who_asked_alone(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, kind: type
) -> None:
    caplog.set_level(logging.CRITICAL)
    sound, raised = DECIDERS[kind], list[object]()

    def decide(controller: Controller, decision: Any) -> Any:
        if raised:
            return sound(controller, decision)
        raised.append(decision)
        raise Injected(kind.__name__)

    cluster = new_cluster()
    monkeypatch.setitem(DECIDERS, kind, decide)
    tour(cluster)
    assert raised
    assert cluster.controller.guard.errors == 1
    check_well(cluster)
    cluster.close()
