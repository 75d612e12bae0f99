"""States of a `queues.Batch`, and the events that change them."""

from __future__ import annotations

from enum import Enum


class BatchState(Enum):
    """States of a batch; see TRANSITIONS."""

    CUT = "it is about to be sent, or put back"
    IN_FLIGHT = "a request with it is not answered"
    ANSWERED = "an answer or a failure came, and is being classified"
    RETRY = "it waits to be sent again"
    DONE = "its records are completed"
    ABANDONED = "its records are completed, and it is still in flight"


class BatchTrigger(Enum):
    """Events that change the state of a batch; see TRANSITIONS."""

    SENT = "a request with it goes out"
    ANSWERED = "that request was answered, or its connection failed"
    PUT_BACK = "it is to be sent again"
    COMPLETED = "its records are delivered or failed, or in smaller batches"


TRANSITIONS: dict[tuple[BatchState, BatchTrigger], BatchState] = {
    (BatchState.CUT, BatchTrigger.SENT): BatchState.IN_FLIGHT,
    (BatchState.CUT, BatchTrigger.PUT_BACK): BatchState.RETRY,  # a part of one that was split
    (BatchState.IN_FLIGHT, BatchTrigger.ANSWERED): BatchState.ANSWERED,
    (BatchState.IN_FLIGHT, BatchTrigger.COMPLETED): BatchState.ABANDONED,
    (BatchState.ANSWERED, BatchTrigger.COMPLETED): BatchState.DONE,
    (BatchState.ANSWERED, BatchTrigger.PUT_BACK): BatchState.RETRY,
    (BatchState.RETRY, BatchTrigger.SENT): BatchState.IN_FLIGHT,
    (BatchState.RETRY, BatchTrigger.COMPLETED): BatchState.DONE,
    (BatchState.ABANDONED, BatchTrigger.ANSWERED): BatchState.DONE,
}
