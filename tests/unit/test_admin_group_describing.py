"""Descriptions of groups of both protocols, against brokers in memory."""

from __future__ import annotations

import uuid

import pytest

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import ItemsFailed
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.wire import ApiKey, Message, Request
from tests.support.client_rig import Rig
from tests.support.fake_fetch_broker import PORT

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


class Described(Rig):
    """A cluster that has a classic group "old", a KIP-848 group "new", and "secret", which it does
    not tell of."""

    def __init__(self) -> None:
        super().__init__()
        node = self.cluster.nodes[0]
        self.cluster.versions |= {
            ApiKey.FIND_COORDINATOR: (0, 4),
            ApiKey.DESCRIBE_GROUPS: (0, 5),
            ApiKey.CONSUMER_GROUP_DESCRIBE: (0, 1),
        }
        node.serve(ApiKey.FIND_COORDINATOR, self._find)
        node.serve(ApiKey.DESCRIBE_GROUPS, self._classic)
        node.serve(ApiKey.CONSUMER_GROUP_DESCRIBE, self._consumer)

    def _find(self, request: Request) -> Message:
        rows = [
            Message(key=key, node_id=1, host="node1", port=PORT, error_code=0, error_message=None)
            for key in request.message.coordinator_keys
        ]
        return Message(throttle_time_ms=0, coordinators=rows)

    def _classic(self, request: Request) -> Message:
        rows = []
        for name in request.message.groups:
            secret = ErrorCode.GROUP_AUTHORIZATION_FAILED if name == "secret" else 0
            state, protocol = ("Stable", "range") if name == "old" else ("Dead", "")
            row = Message(
                error_code=secret,
                group_id=name,
                group_state=state,
                protocol_type="consumer",
                protocol_data=protocol,
                members=[],
                authorized_operations=-(2**31),
            )
            rows.append(row)
        return Message(throttle_time_ms=0, groups=rows)

    def _consumer(self, request: Request) -> Message:
        def assignment(*numbers: int) -> Message:
            topic = Message(topic_id=uuid.UUID(int=1), topic_name="t", partitions=list(numbers))
            return Message(topic_partitions=[topic])

        member = Message(
            member_id="m",
            instance_id="one",
            rack_id=None,
            member_epoch=4,
            client_id="c",
            client_host="/h",
            subscribed_topic_names=["t"],
            subscribed_topic_regex=None,
            assignment=assignment(0),
            target_assignment=assignment(0, 1),
            member_type=1,
        )
        rows = []
        for name in request.message.group_ids:
            row = Message(
                error_code=0 if name == "new" else ErrorCode.GROUP_ID_NOT_FOUND,
                error_message=None if name == "new" else "no such group",
                group_id=name,
                group_state="Reconciling" if name == "new" else "",
                group_epoch=5,
                assignment_epoch=5,
                assignor_name="uniform",
                members=[member] if name == "new" else [],
                authorized_operations=-(2**31),
            )
            rows.append(row)
        return Message(throttle_time_ms=0, groups=rows)


@pytest.fixture
def rig() -> Described:
    return Described()


def test_groups_of_both_protocols_are_described_in_one_call(rig: Described) -> None:
    with rig.admin() as admin:
        found = admin.describe_groups(["new", "old"])
    assert list(found) == ["new", "old"]
    old, new = found["old"], found["new"]
    assert (old.type, old.protocol, old.epoch, old.target_assignment_epoch) == (
        "classic",
        "range",
        None,
        None,
    )
    assert (new.type, new.state, new.protocol) == ("consumer", "Reconciling", "uniform")
    assert (new.epoch, new.target_assignment_epoch) == (5, 5)
    (member,) = new.members
    assert (member.member_id, member.instance_id, member.host) == ("m", "one", "/h")
    assert (member.epoch, member.assignment, member.target_assignment) == (4, (T0,), (T0, T1))
    assert member.upgraded is True


def test_groups_that_are_missing_or_secret_are_named_and_the_others_told(rig: Described) -> None:
    with rig.admin() as admin, pytest.raises(ItemsFailed) as failed:
        admin.describe_groups(["none", "old", "secret", "new"])
    assert {name: error.code for name, error in failed.value.errors.items()} == {
        "none": ErrorCode.GROUP_ID_NOT_FOUND,
        "secret": ErrorCode.GROUP_AUTHORIZATION_FAILED,
    }
    assert set(failed.value.results) == {"old", "new"}


def test_brokers_without_the_newer_protocol_have_no_such_groups(rig: Described) -> None:
    del rig.cluster.versions[ApiKey.CONSUMER_GROUP_DESCRIBE]
    with rig.admin() as admin:
        assert admin.describe_groups(["old"])["old"].state == "Stable"
        with pytest.raises(ItemsFailed, match="GROUP_ID_NOT_FOUND"):
            admin.describe_groups(["new"])
