"""ReadShareGroupStateSummary (87): the group coordinator asks the share coordinator from where
share partitions go on (KIP-932).

Versions 0-1; how many records are complete from 1 on (KIP-1226). A state that is not there has the
start offset -1. Needs CLUSTER_ACTION on the cluster (CLUSTER_AUTHORIZATION_FAILED for every
partition).
"""

from __future__ import annotations

from functools import partial

from fairlead_kafka.broker.api.share_state_rows import StateApi
from fairlead_kafka.broker.dispatch import serves
from fairlead_kafka.broker.requester import Reply, Requester
from fairlead_kafka.broker.services import Services
from fairlead_kafka.broker.share_groups import ShareCoordinator, ShareKey, ShareState
from fairlead_kafka.broker.share_groups.share_coordinator import Stateful
from fairlead_kafka.broker.share_groups.share_state import NO_COUNT
from fairlead_kafka.wire import ApiKey, Request
from fairlead_kafka.wire.messages import (
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
)

_Row = ReadShareGroupStateSummaryResponse.PartitionResult


@serves(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, versions=(0, 1))
def read_share_group_state_summary(
    broker: Services, request: Request[ReadShareGroupStateSummaryRequest], session: Requester, reply: Reply
) -> None:
    """Serve ReadShareGroupStateSummary: answer with the start offset of each share partition that
    is named."""
    _API.serve(broker, request.message, session, reply)


def _fill(row: _Row, state: ShareState) -> None:
    row.state_epoch, row.leader_epoch = state.state_epoch, state.leader_epoch
    row.start_offset, row.delivery_complete_count = state.start_offset, state.complete_count


def _ask(
    coordinator: ShareCoordinator,
    key: ShareKey,
    _asked: ReadShareGroupStateSummaryRequest.PartitionData,
    done: Stateful,
) -> None:
    coordinator.summary(key, done)


_API = StateApi(
    ReadShareGroupStateSummaryResponse,
    ReadShareGroupStateSummaryResponse.ReadStateSummaryResult,
    partial(_Row, state_epoch=0, leader_epoch=0, start_offset=0, delivery_complete_count=NO_COUNT),
    _ask,
    _fill,
)
