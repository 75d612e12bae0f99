"""What members of a classic group log on a cluster; `tests/unit/test_event_log.py` has
KIP-848's."""

from __future__ import annotations

import logging

import pytest

from fairlead_kafka.core.event_log import GROUP
from fairlead_kafka.testing import Cluster
from tests.support.group_clients import Member, poll_until, wait_assigned


def test_a_member_logs_what_it_joins_gets_and_gives_up(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger=GROUP)
    topic = "events-of-members"
    cluster.create_topic(topic, partitions=2)
    first = Member(cluster.bootstrap_servers, topic, [topic], client_id="first")
    wait_assigned([first], 2)
    second = Member(cluster.bootstrap_servers, topic, [topic], client_id="second")
    poll_until([first, second], lambda: len(first.partitions) == len(second.partitions) == 1)
    second.close()
    first.close()
    lines = [record.getMessage() for record in caplog.records if record.name == GROUP]
    for client_id, events in {
        "first": ("group_joined", "partitions_assigned", "partitions_revoked", "group_left"),
        "second": ("group_joined", "partitions_assigned", "group_left"),
    }.items():
        for event in events:
            expected = f"{event} client_id={client_id} group={topic} "
            assert any(line.startswith(expected) for line in lines), (expected, lines)
    assert any(f"count=2 partitions={topic}-0,{topic}-1" in line for line in lines), lines
