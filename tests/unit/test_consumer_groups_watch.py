"""The watch on a group's topics: when it looks, and what it waits for."""

from __future__ import annotations

from uuid import UUID

import pytest

from fairlead_kafka.base.config_client import CLIENT_CONFIGS
from fairlead_kafka.base.units import NS_PER_S
from fairlead_kafka.consumer.groups.watch import Watch
from fairlead_kafka.wire.messages import MetadataResponse

AGE_S = 5


def watch() -> Watch:
    config = {"bootstrap.servers": "localhost:9092", "metadata.max.age.ms": AGE_S * 1000}
    made = Watch(CLIENT_CONFIGS.parse("consumer", config))
    made.subscribe(["orders"], None)
    return made


def test_a_leader_looks_at_its_topics_every_metadata_max_age() -> None:
    made = watch()
    assert made.next_ns is None  # another leads
    made.shared({"orders": 1})
    assert not made.due(0)
    assert made.next_ns == AGE_S * NS_PER_S
    assert made.due(AGE_S * NS_PER_S)


def test_nothing_is_due_while_a_look_waits_out_an_outage() -> None:
    made = watch()
    made.shared({"orders": 1})
    assert not made.due(0)
    assert made.due(AGE_S * NS_PER_S)
    next(made.look(AGE_S * NS_PER_S))  # it asks, and nobody answers
    for after in range(1, 10):
        assert not made.due(after * AGE_S * NS_PER_S)
        assert made.next_ns is None, "or the machine would be stepped for ever"
    made.shared({"orders": None})
    assert made.next_ns is None


def test_a_topic_that_is_shared_while_a_look_is_under_way_is_not_missing() -> None:
    made = watch()
    made.shared({"orders": 1})
    look = made.look(0)
    next(look)
    made.shared({"orders": 1, "bills": 2})
    row = MetadataResponse.MetadataResponseTopic(
        name="orders",
        error_code=0,
        topic_id=UUID(int=1),
        is_internal=False,
        partitions=[object()],
    )
    with pytest.raises(StopIteration) as ended:
        look.send([MetadataResponse(topics=[row], error_code=0)])
    assert ended.value.value is False
