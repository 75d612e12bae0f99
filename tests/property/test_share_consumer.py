"""A share consumer whose brokers fail, lose sessions, move partitions and let locks end at random:
what it accepts is what its application was given, and in the end nothing is left."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.client.share_consumer import ShareConsumer
from fairlead_kafka.consumer.share import AcknowledgeType
from fairlead_kafka.wire import ApiKey
from tests.support.fake_share_group import ENDS, GROUP
from tests.support.share_rig import T0, T1, Sharing

LOCK_MS = 2_000
KINDS = [AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT, AcknowledgeType.RENEW]
_OF_SESSIONS = (
    ErrorCode.SHARE_SESSION_NOT_FOUND,
    ErrorCode.INVALID_SHARE_SESSION_EPOCH,
    ErrorCode.SHARE_SESSION_LIMIT_REACHED,
    ErrorCode.UNKNOWN_SERVER_ERROR,
)
_OF_PARTITIONS = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.KAFKA_STORAGE_ERROR,
)
_OF_ACKNOWLEDGEMENTS = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.INVALID_RECORD_STATE,
    ErrorCode.UNKNOWN_SERVER_ERROR,
)
_OF_HEARTBEATS = (
    ErrorCode.FENCED_MEMBER_EPOCH,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)
_PARTITIONS = st.sampled_from([T0, T1])
STEPS = st.one_of(
    st.tuples(st.just("poll"), st.lists(st.sampled_from(KINDS), min_size=1, max_size=5)),
    st.tuples(st.just("commit"), st.just(None)),
    st.tuples(st.just("write"), st.tuples(_PARTITIONS, st.integers(1, 4))),
    st.tuples(st.just("advance"), st.integers(1, 3 * LOCK_MS)),
    st.tuples(st.just("hang up"), st.integers(1, 2)),
    st.tuples(st.just("move"), st.tuples(_PARTITIONS, st.integers(1, 2))),
    st.tuples(
        st.just("fail"),
        st.tuples(
            st.sampled_from([ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE]), st.sampled_from(_OF_SESSIONS)
        ),
    ),
    st.tuples(st.just("fail partition"), st.tuples(_PARTITIONS, st.sampled_from(_OF_PARTITIONS))),
    st.tuples(st.just("fail acks"), st.tuples(_PARTITIONS, st.sampled_from(_OF_ACKNOWLEDGEMENTS))),
    st.tuples(st.just("fail heartbeat"), st.sampled_from(_OF_HEARTBEATS)),
)
"""What happens; a poll has the types by which its records are acknowledged, in turn."""


class Application:
    """Polls, acknowledges, and remembers which deliveries it was given and what it said to them."""

    def __init__(self, rig: Sharing) -> None:
        self.rig = rig
        self.member: ShareConsumer = rig.member("explicit", max_poll_records=5)
        self.given: set[tuple[object, int, int]] = set()
        self.said: dict[tuple[object, int, int], set[str]] = {}

    def poll(self, kinds: list[AcknowledgeType], timeout_s: float = 0.1) -> int:
        """How many records came."""
        try:
            records = self.member.poll(timeout_s)
        except BrokerError:
            return 0
        for number, record in enumerate(records):
            kind = kinds[number % len(kinds)]
            self.member.acknowledge(record, kind)
            place = T0 if record.partition == 0 else T1
            delivery = (place, record.offset, record.delivery_count)
            if delivery in self.given:
                assert "renew" in self.said[delivery], f"{delivery} came twice"
            self.given.add(delivery)
            self.said.setdefault(delivery, set()).add(kind.name.lower())
        return len(records)

    def do(self, step: tuple[str, object]) -> None:
        what, how = step
        rig, cluster = self.rig, self.rig.cluster
        match what, how:
            case "poll", list() as kinds:
                self.poll(kinds)
            case "commit", _:
                self.member.commit(1)
            case "write", (partition, count):
                cluster.write("t", partition.partition, [b"x"] * count)
            case "advance", int() as milliseconds:
                rig.host.advance(milliseconds)
            case "hang up", int() as node_id:
                rig.group.hang_up(node_id)
            case "move", (partition, node_id):
                rig.group.move(partition, node_id)
            case "fail", (api_key, code):
                cluster.errors[api_key, GROUP].append(code)
            case "fail partition", (partition, code):
                cluster.errors[ApiKey.SHARE_FETCH, partition].append(code)
            case "fail acks", (partition, code):
                cluster.errors["acks", partition].append(code)  # type: ignore[index]
            case "fail heartbeat", code:
                cluster.errors[ApiKey.SHARE_GROUP_HEARTBEAT, GROUP].append(code)


def check(application: Application) -> None:
    """What brokers were told is what the application said to the delivery that they were told it
    of, and each delivery ended once at most."""
    ended: set[tuple[object, int, int]] = set()
    for what, partition, offset, count in application.rig.group.history:
        delivery = (partition, offset, count)
        if what in ("accept", "reject"):
            assert what in application.said.get(delivery, ()), f"{what} of {delivery} was never said"
        if what == "release" and delivery in application.given:
            assert what in application.said[delivery], (
                f"{delivery} was released, and {application.said[delivery]}"
            )
        if what in (*ENDS.values(), "expired", "freed") and what != "renew":
            assert delivery not in ended, f"{delivery} ended twice"
            ended.add(delivery)
        if what == "acquired":
            assert (partition, offset, count - 1) in ended or count == 1, f"{delivery} before the last ended"


@settings(max_examples=60, deadline=None)
@given(st.lists(STEPS, max_size=25))
def test_nothing_is_accepted_that_was_not_given_and_in_the_end_all_is(
    steps: list[tuple[str, object]],
) -> None:
    rig = Sharing(nodes=2, partitions=2, lock_ms=LOCK_MS)
    application = Application(rig)
    for step in steps:
        application.do(step)
    rig.cluster.errors.clear()
    quiet = 0
    for _ in range(400):
        quiet = 0 if application.poll([AcknowledgeType.ACCEPT], 0.3) else quiet + 1
        if quiet > 3 and set(rig.group.state(T0) + rig.group.state(T1)) == {"d"}:
            break
    check(application)
    assert set(rig.group.state(T0) + rig.group.state(T1)) == {"d"}, "everything is done with in the end"
    application.member.close()
    assert rig.group.sessions == {}
    assert rig.group.members == {}
