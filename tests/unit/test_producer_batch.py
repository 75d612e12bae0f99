"""The states of a batch: every pair that the table lacks is refused, and what the states mean
follows from the table."""

from __future__ import annotations

from itertools import product
from typing import cast

import pytest

from fairlead_kafka.base.errors import UsageError
from fairlead_kafka.producer.batch_states import TRANSITIONS, BatchState, BatchTrigger
from fairlead_kafka.producer.queues import Batch, PartitionQueue


def batch(state: BatchState = BatchState.CUT) -> Batch:
    """One of no records and no queue, in this state."""
    made = Batch(cast(PartitionQueue, None), [], 0, 0, bound_bytes=0)
    made.state = state
    return made


@pytest.mark.parametrize(("state", "trigger"), list(product(BatchState, BatchTrigger)))
def test_a_trigger_does_what_the_table_says_and_nothing_else(
    state: BatchState, trigger: BatchTrigger
) -> None:
    one = batch(state)
    if (state, trigger) in TRANSITIONS:
        one.fire(trigger)
        assert one.state is TRANSITIONS[state, trigger]
    else:
        with pytest.raises(UsageError, match=f"a batch that is {state.name} cannot be {trigger.name}"):
            one.fire(trigger)
        assert one.state is state


def test_every_state_is_reached_from_the_first_and_only_done_is_the_end() -> None:
    reached = [BatchState.CUT]
    for state in reached:
        reached += [
            after for (before, _), after in TRANSITIONS.items() if before is state and after not in reached
        ]
    assert set(reached) == set(BatchState)
    assert set(BatchState) - {before for before, _ in TRANSITIONS} == {BatchState.DONE}


def test_records_are_settled_once_on_every_way() -> None:
    """No way through the table has SETTLED twice, and none ends without it: a record is told of
    once."""
    ways: list[tuple[BatchState, int]] = [(BatchState.CUT, 0)]
    for state, completed in ways:
        for (before, trigger), after in TRANSITIONS.items():
            way = (after, completed + (trigger is BatchTrigger.COMPLETED))
            if before is state and way not in ways:
                ways.append(way)
    assert max(completed for _, completed in ways) == 1
    assert [completed for state, completed in ways if state is BatchState.DONE] == [1]
    assert all(batch(state).done == (completed == 1) for state, completed in ways)


def test_a_request_is_out_in_two_states() -> None:
    """Only what is in flight can be answered."""
    answerable = {before for before, trigger in TRANSITIONS if trigger is BatchTrigger.ANSWERED}
    assert answerable == {state for state in BatchState if batch(state).in_flight}
