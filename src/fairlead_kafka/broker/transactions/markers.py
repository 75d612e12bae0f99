"""Writes the markers of an ended transaction to all its partitions, through their leaders (Kafka's
`TransactionMarkerChannelManager`).

    due ──leader is this broker──▶ appended here ──────────┐
     │  └─leader is another──▶ WriteTxnMarkers to it ──────┤
     ▲                                                     ├──▶ finished: written, or not needed
     └──no leader, not reached, not written: a little later┘

A partition that was deleted needs no marker, nor does one where the producer has been seen with a
later epoch: that transaction is over there. Once all are finished the transaction is complete. A
coordinator that stopped in between finds the decision in its log and writes the markers again; a
second marker has no effect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.base.units import ms_to_ns
from fairlead_kafka.broker.controller import ClusterView
from fairlead_kafka.broker.internal import Marker, MarkerHost, append_marker
from fairlead_kafka.broker.links import Links
from fairlead_kafka.broker.timers import TimerHost
from fairlead_kafka.wire import ApiKey
from fairlead_kafka.wire.messages import WriteTxnMarkersRequest, WriteTxnMarkersResponse

RETRY_MS = 100
"""Wait before a marker that could not be brought is tried again."""
WRITE_TXN_MARKERS_VERSION = 2

_FINAL = frozenset({ErrorCode.NONE, ErrorCode.INVALID_PRODUCER_EPOCH})
_FENCED = ErrorCode.TRANSACTION_COORDINATOR_FENCED


@dataclass(slots=True, eq=False)
class Ending:
    """One transaction whose markers are being written. `wanted()` is true as long as this broker is
    to write them."""

    marker: Marker
    unmarked: set[TopicPartition]
    wanted: Callable[[], bool]
    completed: Callable[[], None]


class MarkersHost(MarkerHost, TimerHost, Protocol):
    """The parts of a broker that writing markers uses."""

    node_id: int
    controller: ClusterView
    links: Links


class Markers:
    """Writes the markers of all transactions of one coordinator that are ending."""

    def __init__(self, broker: MarkersHost) -> None:
        self._broker = broker

    def bring(self, ending: Ending) -> None:
        """Have the markers of a transaction written to its partitions; `ending.completed` is called
        once, perhaps at once."""
        self._bring(ending, set(ending.unmarked))

    def _bring(self, ending: Ending, partitions: set[TopicPartition]) -> None:
        if not ending.wanted():
            return
        image = self._broker.controller.image
        later: set[TopicPartition] = set()
        by_leader: dict[int, list[TopicPartition]] = {}
        for of in sorted(partitions):
            partition = image.partition(*of)
            if partition is None:
                ending.unmarked.discard(of)
            elif not image.is_alive(partition.leader):
                later.add(of)
            else:
                by_leader.setdefault(partition.leader, []).append(of)
        if later:
            self._bring_later(ending, later)
        for leader, led in by_leader.items():
            if leader == self._broker.node_id:
                self._append(ending, led)
            else:
                self._ask(ending, leader, led)
        if not ending.unmarked and not by_leader:
            ending.completed()

    def _append(self, ending: Ending, partitions: Iterable[TopicPartition]) -> None:
        for of in partitions:
            append_marker(self._broker, of, ending.marker, partial(self._appended, ending, of))

    def _appended(self, ending: Ending, of: TopicPartition, error: int) -> None:
        self._answered(ending, {of: error})

    def _ask(self, ending: Ending, leader: int, partitions: list[TopicPartition]) -> None:
        def answered(response: WriteTxnMarkersResponse | None, _error: Exception | None) -> None:
            errors = dict.fromkeys(partitions, int(ErrorCode.NETWORK_EXCEPTION))
            if response is not None:
                for result in response.markers:
                    for topic in result.topics:
                        errors |= {
                            TopicPartition(topic.name, one.partition_index): one.error_code
                            for one in topic.partitions
                        }
            self._answered(ending, errors)

        request = marker_request(ending.marker, partitions)
        self._broker.links.ask(leader, ApiKey.WRITE_TXN_MARKERS, WRITE_TXN_MARKERS_VERSION, request, answered)

    def _answered(self, ending: Ending, errors: dict[TopicPartition, int]) -> None:
        if _FENCED in errors.values() or not ending.wanted():
            return  # another coordinator has the transaction now
        before = len(ending.unmarked)
        ending.unmarked.difference_update(of for of, error in errors.items() if error in _FINAL)
        failed = {of for of in errors if of in ending.unmarked}
        if failed:
            self._bring_later(ending, failed)
        if before and not ending.unmarked:
            ending.completed()

    def _bring_later(self, ending: Ending, partitions: set[TopicPartition]) -> None:
        self._broker.call_at(
            self._broker.now_ns + ms_to_ns(RETRY_MS), lambda: self._bring(ending, partitions)
        )


def marker_request(marker: Marker, partitions: Iterable[TopicPartition]) -> WriteTxnMarkersRequest:
    """The WriteTxnMarkers request for one transaction."""
    topics: dict[str, list[int]] = {}
    for topic, number in partitions:
        topics.setdefault(topic, []).append(number)
    return WriteTxnMarkersRequest(
        markers=[
            WriteTxnMarkersRequest.WritableTxnMarker(
                producer_id=marker.producer_id,
                producer_epoch=marker.producer_epoch,
                transaction_result=marker.committed,
                topics=[
                    WriteTxnMarkersRequest.WritableTxnMarkerTopic(name=name, partition_indexes=numbers)
                    for name, numbers in topics.items()
                ],
                coordinator_epoch=marker.coordinator_epoch,
                transaction_version=marker.transaction_version,
            )
        ]
    )
