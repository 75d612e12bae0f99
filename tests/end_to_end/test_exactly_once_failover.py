"""Exactly-once writes while every broker dies and comes back, one after the other, at a step of the
protocol."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import fairlead_kafka
from fairlead_kafka.spark.exactly_once.driver import Committer, Step
from tests.support.exactly_once_rig import GUARANTEE, Query


@pytest.fixture(scope="module")
def cluster() -> Iterator[fairlead_kafka.Cluster]:
    with fairlead_kafka.Cluster(brokers=3, config={"default.replication.factor": 3}) as made:
        yield made


@pytest.mark.parametrize("step", [Step.TAKEN_OVER, Step.DECISION_SENT, Step.DECIDED, Step.ENDED_SOME])
def test_a_batch_is_committed_once_though_every_broker_dies_on_the_way(
    cluster: fairlead_kafka.Cluster, step: Step
) -> None:
    query = Query(cluster.bootstrap_servers, f"failover-{step.name.lower().replace('_', '-')}")
    died = []

    def reached(now: Step) -> None:
        if now is step and not died:
            for node_id in range(3):
                cluster.broker(node_id).kill()
                cluster.broker(node_id).start()
                died.append(node_id)

    parts = query.tasks(0)
    try:
        Committer(query.client, GUARANTEE, query.name, reached, at_once=1).commit(0, parts)
    except fairlead_kafka.FairleadError:  # the driver may give up, as it may die: the batch is repeated
        query.driver().abort(parts)
        query.commit(0)
    assert len(died) == 3
    assert query.visible() == query.all_rows(0)
    query.commit(1)
    assert query.visible() == query.all_rows(0, 1)
