"""A member of a KIP-848 group, whose coordinator assigns, fences and fails at random: it never
reads what the coordinator has reason to give to another, and in the end reads what it should."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.wire import Message, Request
from tests.support.epoch_rig import HEARTBEAT, Coordinated

PARTITIONS = 3
_PASSING = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.FENCED_MEMBER_EPOCH,
    ErrorCode.UNKNOWN_MEMBER_ID,
)
STEPS = st.one_of(
    st.tuples(st.just("assign"), st.sets(st.integers(0, PARTITIONS - 1))),
    st.tuples(st.just("advance"), st.integers(1, 1_500)),
    st.tuples(st.just("poll"), st.integers(1, 3)),
    st.tuples(st.just("fail"), st.sampled_from(_PASSING)),
    st.tuples(st.just("move"), st.integers(1, 2)),
    st.tuples(st.just("hang up"), st.integers(0, 1)),
    st.tuples(st.just("subscribe"), st.sampled_from([("t",), ("t", "u")])),
)


class CountedMemory:
    """What the member may read by what the coordinator told it, and heard from it.

    A partition that was assigned is the member's until it reports without it, once it is no part of
    the target any more; after a fence nothing is.
    """

    def __init__(self, rig: Coordinated) -> None:
        self.rig = rig
        self.held: set[TopicPartition] = set()
        self._serve = {node.node_id: node.answers[HEARTBEAT] for node in rig.cluster.nodes}
        for node in rig.cluster.nodes:
            node.serve(HEARTBEAT, lambda request, node_id=node.node_id: self._heartbeat(node_id, request))

    def _target(self) -> set[TopicPartition]:
        return {
            TopicPartition(topic, number)
            for topic, numbers in self.rig.coordinator.target.items()
            for number in numbers
        }

    def _heartbeat(self, node_id: int, request: Request) -> Message:
        answer: Message = self._serve[node_id](request)
        message = request.message
        if answer.error_code in (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID):
            return answer  # whoever was fenced reads on until it hears of it: nothing else can be asked of it
        if not answer.error_code and message.topic_partitions is not None:
            self.held &= self._target() | set(self.rig.coordinator.owned or ())
        if answer.assignment is not None:
            self.held |= self._target()
        return answer


@settings(max_examples=150, deadline=None)
@given(steps=st.lists(STEPS, max_size=25), target=st.sets(st.integers(0, PARTITIONS - 1)))
def test_whatever_happens_a_member_reads_only_what_is_its_own(
    steps: list[tuple[str, object]], target: set[int]
) -> None:
    rig = Coordinated()
    rig.cluster.topic("u", 1)
    account = CountedMemory(rig)
    member = rig.member(max_poll_interval_ms=10_000, enable_auto_commit=False)
    machine = rig.opener.machine
    for step, value in steps:
        if step == "assign" and isinstance(value, set):
            rig.coordinator.assign(t=sorted(value))
        elif step == "advance" and isinstance(value, int):
            rig.host.advance(value)
        elif step == "poll" and isinstance(value, int):
            for _ in range(value):
                member.poll(0.01)
        elif step == "fail" and isinstance(value, int):
            rig.coordinator.fail(HEARTBEAT, value)
        elif step == "move" and isinstance(value, int):
            rig.coordinator.node_id = value
        elif step == "hang up" and isinstance(value, int):
            rig.cluster.nodes[value].hang_up()
        elif step == "subscribe" and isinstance(value, tuple):
            member.subscribe(value, rig.heard)
        assert set(machine.assigned()) <= account.held, (step, value)
    rig.converge(member, t=sorted(target))
    wanted = [TopicPartition("t", number) for number in sorted(target)]
    assert sorted(member.assignment()) == sorted(machine.assigned()) == wanted
    gained: set[TopicPartition] = set()
    for sign, partitions in rig.heard.log:
        assert not gained & set(partitions) if sign == "+" else set(partitions) <= gained
        gained = gained | set(partitions) if sign == "+" else gained - set(partitions)
    assert gained == set(wanted)
    member.close()
