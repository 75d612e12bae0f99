"""Admin calls against a small cluster in virtual time: what they ask, wait for, retry and raise."""

from __future__ import annotations

import logging
import pickle
import uuid
from collections.abc import Iterator

import pytest

from fairlead_kafka.admin import ConfigChange, ConfigResource, NewPartitions, NewTopic, configs, topics
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import (
    BrokerError,
    FairleadError,
    ItemsFailed,
    TimedOut,
    UnsupportedVersion,
    UsageError,
)
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.client.admin import Admin
from fairlead_kafka.core.partition_offsets import EARLIEST, LATEST, OffsetAndTimestamp
from fairlead_kafka.core.script import Pause, Scripts
from fairlead_kafka.wire import ApiKey, Message
from tests.support.client_rig import Rig


@pytest.fixture
def rig() -> Rig:
    return Rig(nodes=2)


@pytest.fixture
def admin(rig: Rig) -> Iterator[Admin]:
    with rig.admin() as made:
        yield made


def test_a_topic_is_created_as_asked_for(rig: Rig, admin: Admin) -> None:
    created = admin.create_topics(
        [NewTopic("a", 3, configs={"retention.ms": "5"}), NewTopic("b", assignments=[[1, 2], [2, 1]])]
    )
    assert created == {name: rig.cluster.topics[name].topic_id for name in ("a", "b")}
    assert (len(rig.cluster.topics["a"].logs), rig.cluster.topics["a"].configs) == (3, {"retention.ms": "5"})
    asked = rig.cluster.asked(ApiKey.CREATE_TOPICS)[0].message.topics
    assert (asked[0].num_partitions, asked[0].replication_factor, asked[0].assignments) == (3, -1, [])
    assert (asked[1].num_partitions, asked[1].replication_factor) == (-1, -1)
    assert [(item.partition_index, item.broker_ids) for item in asked[1].assignments] == [
        (0, [1, 2]),
        (1, [2, 1]),
    ]


def test_configs_may_be_numbers_and_are_sent_as_text(rig: Rig, admin: Admin) -> None:
    admin.create_topics(
        [NewTopic("a", 1, configs={"retention.ms": 5, "min.cleanable.dirty.ratio": 0.5, "preallocate": True})]
    )
    assert rig.cluster.topics["a"].configs == {
        "retention.ms": "5",
        "min.cleanable.dirty.ratio": "0.5",
        "preallocate": "true",
    }
    admin.alter_configs(
        {ConfigResource.topic("a"): [ConfigChange.set("retention.ms", 6), ConfigChange.delete("preallocate")]}
    )
    (resource,) = rig.cluster.asked(ApiKey.INCREMENTAL_ALTER_CONFIGS)[0].message.resources
    assert [(each.name, each.value) for each in resource.configs] == [
        ("retention.ms", "6"),
        ("preallocate", None),
    ]


def test_assignments_may_be_given_by_the_numbers_of_partitions(rig: Rig, admin: Admin) -> None:
    admin.create_topics([NewTopic("a", assignments={1: [2, 1], 0: (1, 2)})])
    (asked,) = rig.cluster.asked(ApiKey.CREATE_TOPICS)[0].message.topics
    assert {item.partition_index: item.broker_ids for item in asked.assignments} == {0: [1, 2], 1: [2, 1]}


@pytest.mark.parametrize(
    ("topic", "says"),
    [
        (
            NewTopic("a", assignments=[0, 1]),
            r"topics\[0\].assignments\[0\] must be a list of whole numbers, not 0",
        ),  # type: ignore[list-item]
        (
            NewTopic("a", assignments={"x": [0]}),
            r"topics\[0\].assignments: key 'x' must be a whole number, not 'x'",
        ),  # type: ignore[dict-item]
        (
            NewTopic("a", partitions="3"),
            r"topics\[0\].partitions must be a whole number, not '3'; write \[NewTopic\(\"a\"",
        ),  # type: ignore[arg-type]
        (
            NewTopic("a", partitions=2**31),
            r"topics\[0\].partitions must be a whole number of 32 bits, not 2147483648",
        ),
        (
            NewTopic("a", configs={"retention.ms": None}),
            r"configs\['retention.ms'\] must be a text or a number or True or False, not None",
        ),  # type: ignore[dict-item]
    ],
)
def test_what_cannot_be_sent_is_told_at_once_and_the_client_goes_on(
    rig: Rig, admin: Admin, topic: NewTopic, says: str
) -> None:
    with pytest.raises(FairleadError, match=says):
        admin.create_topics([topic])
    assert rig.cluster.asked(ApiKey.CREATE_TOPICS) == []
    assert list(admin.create_topics([NewTopic("b", 1)])) == ["b"]


def test_a_defect_ends_the_client_and_nobody_waits_for_it_for_ever(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)

    def crash(_scripts: Scripts, _now_ns: int) -> None:
        raise ZeroDivisionError("a defect")

    with Admin({"bootstrap.servers": "127.0.0.1:1"}) as admin:
        monkeypatch.setattr(Scripts, "advance", crash)
        with pytest.raises(ZeroDivisionError, match="a defect"):
            admin.list_topics()
        with pytest.raises(UsageError, match="takes no operations any more, it failed earlier"):
            admin.list_topics()


def test_creating_returns_only_when_every_partition_has_a_leader(rig: Rig, admin: Admin) -> None:
    rig.cluster.no_leader_answers = 3
    admin.create_topics([NewTopic("a", 2)])
    assert rig.cluster.no_leader_answers == 0


def test_creating_says_what_was_missing_when_time_runs_out(rig: Rig, admin: Admin) -> None:
    rig.cluster.no_leader_answers = 10_000
    with pytest.raises(
        TimedOut,
        match=r"creating topics a: not done .* topic a is created, and 2 of its 2 partitions have no leader "
        r"yet",
    ):
        admin.create_topics([NewTopic("a", 2)], timeout_s=3)


def test_validating_creates_nothing_and_waits_for_nothing(rig: Rig, admin: Admin) -> None:
    assert list(admin.create_topics([NewTopic("a", 2)], validate_only=True)) == ["a"]
    assert rig.cluster.topics == {}


def test_one_error_names_every_item_that_failed_and_holds_the_others(rig: Rig, admin: Admin) -> None:
    rig.cluster.topic("old")
    rig.cluster.errors[ApiKey.CREATE_TOPICS, "bad"] += [ErrorCode.POLICY_VIOLATION]
    with pytest.raises(ItemsFailed) as caught:
        admin.create_topics([NewTopic("old"), NewTopic("bad"), NewTopic("good")])
    error = caught.value
    assert (error.code, error.name) == (ErrorCode.TOPIC_ALREADY_EXISTS, "TOPIC_ALREADY_EXISTS")
    assert {name: failed.code for name, failed in error.errors.items()} == {"old": 36, "bad": 44}
    assert error.results == {"good": rig.cluster.topics["good"].topic_id}
    assert "create_topics failed for 2 of 3" in str(error)
    assert all(word in str(error) for word in ("old", "bad", "it is so"))
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_a_request_follows_the_controller(rig: Rig, admin: Admin) -> None:
    admin.describe_cluster()
    rig.cluster.controller = 2
    admin.create_topics([NewTopic("a")])
    assert [
        node_id for node_id, request in rig.cluster.requests if request.api_key == ApiKey.CREATE_TOPICS
    ] == [1, 2]


def test_what_passes_is_tried_again_for_the_items_concerned_alone(rig: Rig, admin: Admin) -> None:
    rig.cluster.errors[ApiKey.CREATE_TOPICS, "slow"] += [ErrorCode.THROTTLING_QUOTA_EXCEEDED] * 2
    assert list(admin.create_topics([NewTopic("quick"), NewTopic("slow")])) == ["quick", "slow"]
    assert [
        [topic.name for topic in request.message.topics]
        for request in rig.cluster.asked(ApiKey.CREATE_TOPICS)
    ] == [
        ["quick", "slow"],
        ["slow"],
        ["slow"],
    ]


def test_an_answer_that_got_lost_is_not_hidden(rig: Rig, admin: Admin) -> None:
    admin.describe_cluster()
    node = rig.cluster.nodes[0]
    serve = node.answers[ApiKey.CREATE_TOPICS]

    def once(request: object) -> object:
        node.answers[ApiKey.CREATE_TOPICS] = serve
        answer = serve(request)  # type: ignore[arg-type]
        node.hang_up()
        return answer

    node.answers[ApiKey.CREATE_TOPICS] = once  # type: ignore[assignment]
    with pytest.raises(
        ItemsFailed, match=r"TOPIC_ALREADY_EXISTS.*an earlier request may have been carried out"
    ):
        admin.create_topics([NewTopic("a")])


@pytest.mark.parametrize("version", [1, 5, 6])
def test_deleting_returns_when_the_topics_are_gone(rig: Rig, admin: Admin, version: int) -> None:
    rig.cluster.versions[ApiKey.DELETE_TOPICS] = (version, version)
    rig.cluster.topic("a")
    rig.cluster.topic("b")
    assert admin.delete_topics(["a"]) == {"a": None}
    assert list(rig.cluster.topics) == ["b"]
    admin.create_topics([NewTopic("a")])


def test_a_missing_topic_is_told_at_once(rig: Rig, admin: Admin) -> None:
    begun_ns = rig.host.now_ns()
    with pytest.raises(BrokerError) as caught:
        admin.delete_topics(["nope"])
    assert caught.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    with pytest.raises(ItemsFailed, match="describe_topics failed for 1 of 1: nope"):
        admin.describe_topics(["nope"])
    assert rig.host.now_ns() - begun_ns < 1_000_000_000


def test_topics_grow(rig: Rig, admin: Admin) -> None:
    rig.cluster.topic("a", 1)
    admin.create_partitions({"a": NewPartitions(3, assignments=[[1], [2]])})
    assert len(rig.cluster.topics["a"].logs) == 3
    asked = rig.cluster.asked(ApiKey.CREATE_PARTITIONS)[0].message.topics[0]
    assert (asked.count, [item.broker_ids for item in asked.assignments]) == (3, [[1], [2]])


def test_topics_and_cluster_are_described(rig: Rig, admin: Admin) -> None:
    for name in ("b", "a", "__internal"):
        rig.cluster.topic(name, 2)
    assert list(admin.list_topics()) == ["a", "b"]
    assert list(admin.list_topics(include_internal=True)) == ["__internal", "a", "b"]
    described = admin.describe_topics(["b", "a"])
    assert list(described) == ["b", "a"]
    assert described["a"].topic_id == uuid.UUID(int=2)
    assert [(item.partition, item.leader, item.replicas, item.isr) for item in described["a"].partitions] == [
        (0, 1, (1,), (1,)),
        (1, 2, (2,), (2,)),
    ]
    cluster = admin.describe_cluster()
    assert (cluster.cluster_id, [str(node) for node in cluster.nodes]) == (
        "fake",
        ["node1:9092 (id 1)", "node2:9092 (id 2)"],
    )
    assert cluster.controller == cluster.nodes[0]
    assert admin.describe_topics([]) == {}


def test_configs_are_described_where_they_live_and_changed_one_by_one(rig: Rig, admin: Admin) -> None:
    rig.cluster.topic("a").configs = {"keep": "1", "drop": "2", "list": "x"}
    topic = ConfigResource.topic("a")
    admin.alter_configs(
        {
            topic: [
                ConfigChange.set("new", "3"),
                ConfigChange.delete("drop"),
                ConfigChange.append("list", "y"),
                ConfigChange.append("list", "z"),
            ]
        }
    )
    admin.alter_configs({topic: [ConfigChange.subtract("list", "y")]})
    described = admin.describe_configs([topic, ConfigResource.broker(2), ConfigResource.broker(1)])
    assert {name: entry.value for name, entry in described[topic].items()} == {
        "keep": "1",
        "new": "3",
        "list": "x,z",
    }
    assert described[topic]["keep"].is_default is False
    # A broker tells its own configs: each was asked itself.
    assert [described[ConfigResource.broker(n)]["node.id"].value for n in (2, 1)] == ["2", "1"]


def test_answers_about_partitions_that_nobody_named_do_not_count(
    rig: Rig, admin: Admin, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.cluster.topic("t")
    of = TopicPartition("t", 0)
    monkeypatch.setattr("fairlead_kafka.admin.offsets._read", lambda answer: {TopicPartition("other", 5): 3})
    with pytest.raises(TimedOut, match="left out partitions"):
        admin.delete_records({of: 0}, timeout_s=1)


def test_a_kind_of_resource_that_nobody_knows_is_no_answer_to_what_was_asked() -> None:
    for script in (
        configs.describe_configs([ConfigResource.topic("t")]),
        configs.alter_configs({ConfigResource.topic("t"): [ConfigChange.set("a", "1")]}, validate_only=False),
    ):
        next(script)
        row = Message(resource_type=99, resource_name="t", error_code=0, error_message=None, configs=[])
        pause = script.send([Message(results=[row], responses=[row])])
        assert isinstance(pause, Pause)
        assert "the answer left out" in str(pause.problem)


@pytest.mark.parametrize("error_code", [ErrorCode.NONE, ErrorCode.TOPIC_AUTHORIZATION_FAILED])
def test_a_topic_that_an_answer_leaves_out_is_asked_for_again_whatever_else_is_in_it(error_code: int) -> None:
    script = topics.describe_topics(["t"], include_authorized_operations=False)
    next(script)
    other = Message(
        name="other", error_code=error_code, topic_id=uuid.UUID(int=1), is_internal=False, partitions=[]
    )
    pause = script.send([Message(error_code=0, topics=[other])])
    assert isinstance(pause, Pause)
    assert "the answer left out 't'" in str(pause.problem)


def test_offsets_are_listed_and_records_deleted_at_their_leaders(rig: Rig, admin: Admin) -> None:
    rig.cluster.topic("a", 2)
    for number in range(2):
        rig.cluster.write("a", number, [b"x"] * 10)
    first, second = TopicPartition("a", 0), TopicPartition("a", 1)
    assert admin.delete_records({first: 4, second: -1}) == {first: 4, second: 10}
    assert admin.list_offsets({first: EARLIEST, second: EARLIEST}) == {
        first: OffsetAndTimestamp(4, -1, 0),
        second: OffsetAndTimestamp(10, -1, 0),
    }
    assert admin.list_offsets({first: 1_006, second: 9_999}) == {
        first: OffsetAndTimestamp(6, 1_006, 0),
        second: None,
    }
    rig.cluster.move("a", 0, leader=2)
    assert admin.delete_records({first: 5}) == {first: 5}
    rig.cluster.errors[ApiKey.LIST_OFFSETS, first] += [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
    with pytest.raises(ItemsFailed) as caught:
        admin.list_offsets({first: LATEST, second: LATEST})
    assert (list(caught.value.errors), list(caught.value.results)) == ([first], [second])
    assert admin._calls.host.machine.network.metadata.topics() == []  # type: ignore[attr-defined]
    assert not admin._calls.host.machine._wanted  # type: ignore[attr-defined]


def test_calls_that_cannot_be_are_refused(rig: Rig, admin: Admin) -> None:
    with pytest.raises(UsageError, match=r'not .topic.; write \["topic"\]'):
        admin.delete_topics("topic")
    with pytest.raises(UsageError, match="named twice: a"):
        admin.create_topics([NewTopic("a"), NewTopic("a")])
    with pytest.raises(
        UsageError, match="list_topics: timeout_s must be a number of 0 or more or None, not -1"
    ):
        admin.list_topics(timeout_s=-1)
    rig.cluster.versions.pop(ApiKey.CREATE_PARTITIONS)
    rig.cluster.nodes[0].hang_up()
    rig.host.advance(10)
    with pytest.raises(UnsupportedVersion, match="CREATE_PARTITIONS"):
        admin.create_partitions({"a": NewPartitions(2)})


def test_a_closed_client_refuses_and_ends_what_is_under_way(rig: Rig) -> None:
    admin = rig.admin()
    steps = admin._calls.topics.list_topics(False, None)
    wait = next(steps)
    admin.close()
    assert isinstance(wait.completion.error(), UsageError)
    with pytest.raises(UsageError, match="closed"):
        admin.list_topics()
    admin.close()
