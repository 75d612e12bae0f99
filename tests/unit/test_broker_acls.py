"""ACLs on a broker: created, told and deleted in every version, kept over restarts, and heeded at
once by whoever is connected."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from fairlead_kafka.base.acls import AclFilter, AclOperation, AclPatternType, AclPermission, AclResourceType
from fairlead_kafka.base.checks import CheckFailed
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.limits import ACL_DECISIONS_KEPT_MAX
from fairlead_kafka.base.principal import Principal
from fairlead_kafka.broker.authorizer import Authorizer, host_of
from fairlead_kafka.broker.dispatch import REGISTRY
from fairlead_kafka.wire import ApiKey, Message, PrivateApi
from tests.support.broker_driver import Driver, batch, fetch_fields, produce, produce_fields
from tests.support.controllers import make_controller
from tests.support.rights import GROUP, OPEN, SECRET, binding
from tests.support.rights.worlds import CONFIG, Ours, creation, give

ALICE = Principal("User", "alice")
ANY = {"resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1, "permission_type": 1}
TOPIC, READ = AclResourceType.TOPIC, AclOperation.READ


def versions(api_key: ApiKey) -> range:
    return range(REGISTRY[api_key].low, REGISTRY[api_key].high + 1)


def world(*rights: str, **config: Any) -> Ours:
    ours = Ours(**config)
    ours.driver.controller.create_topic(OPEN)
    ours.driver.controller.create_topic(SECRET)
    give(ours, *rights)
    return ours


# --- The APIs


@pytest.mark.parametrize("version", versions(ApiKey.CREATE_ACLS))
def test_acls_are_created_told_and_deleted(version: int) -> None:
    ours = world()
    acl = binding("READ TOPIC o*")
    for _again in range(2):  # what is there already stays as it is
        (created,) = ours.admin(ApiKey.CREATE_ACLS, version, creations=[creation(acl)]).results
        assert created.error_code == ErrorCode.NONE
    (told,) = ours.admin(ApiKey.DESCRIBE_ACLS, version, **ANY).resources
    assert (told.resource_type, told.resource_name, told.pattern_type) == (2, "o", 4)
    assert [(row.principal, row.host, row.operation, row.permission_type) for row in told.acls] == [
        ("User:alice", "*", 3, 3)
    ]
    (deleted,) = ours.admin(ApiKey.DELETE_ACLS, version, filters=[Message(**ANY)]).filter_results
    assert [(row.resource_name, row.principal, row.error_code) for row in deleted.matching_acls] == [
        ("o", "User:alice", ErrorCode.NONE)
    ]
    assert ours.admin(ApiKey.DESCRIBE_ACLS, version, **ANY).resources == []


@pytest.mark.parametrize("version", versions(ApiKey.CREATE_ACLS))
def test_without_an_authorizer_there_are_no_acls(version: int) -> None:
    client = Driver().connect()
    described = client.ask(ApiKey.DESCRIBE_ACLS, version, **ANY)
    created = client.ask(ApiKey.CREATE_ACLS, version, creations=[creation(binding("READ TOPIC o*"))] * 2)
    deleted = client.ask(ApiKey.DELETE_ACLS, version, filters=[Message(**ANY)])
    rows = [described, *created.results, *deleted.filter_results]
    assert [row.error_code for row in rows] == [ErrorCode.SECURITY_DISABLED] * 4
    assert all("No Authorizer is configured" in row.error_message for row in rows)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"resource_type": 1}, "one type, not ANY"),
        ({"resource_type": 99}, "one type, not UNKNOWN"),
        ({"resource_type": 4}, "the only resource of type CLUSTER is 'kafka-cluster', not 'open'"),
        ({"resource_name": ""}, "needs a resource's name"),
        ({"resource_pattern_type": 1}, "LITERAL or PREFIXED, not ANY"),
        ({"resource_pattern_type": 2}, "LITERAL or PREFIXED, not MATCH"),
        ({"operation": 0}, "one operation, or ALL, not UNKNOWN"),
        ({"operation": 1}, "one operation, or ALL, not ANY"),
        ({"permission_type": 1}, "allowed or denied, not ANY"),
        ({"principal": "alice"}, "written Type:name, such as User:alice, got 'alice'"),
    ],
)
def test_an_acl_that_cannot_be_is_refused_and_the_others_are_not(changes: dict[str, Any], said: str) -> None:
    ours = world()
    wrong = Message(**vars(creation(binding("READ TOPIC open"))) | changes)
    rows = ours.admin(ApiKey.CREATE_ACLS, 3, creations=[wrong, creation(binding("WRITE TOPIC open"))]).results
    assert [row.error_code for row in rows] == [ErrorCode.INVALID_REQUEST, ErrorCode.NONE]
    assert said in rows[0].error_message
    assert list(ours.driver.controller.image.acls) == [binding("WRITE TOPIC open")]


@pytest.mark.parametrize("field", ANY)
def test_a_filter_with_what_is_not_known_is_refused(field: str) -> None:
    ours = world("READ TOPIC open")
    assert ours.admin(ApiKey.DESCRIBE_ACLS, 3, **ANY | {field: 99}).error_code == ErrorCode.INVALID_REQUEST
    filters = [Message(**ANY | {field: 0}), Message(**ANY)]
    refused, deleted = ours.admin(ApiKey.DELETE_ACLS, 3, filters=filters).filter_results
    assert (refused.error_code, deleted.error_code, len(deleted.matching_acls)) == (
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NONE,
        1,
    )


# --- What is kept


def test_acls_outlive_the_controller_by_its_log_and_by_a_snapshot() -> None:
    log: list[bytes] = []
    controller = make_controller(log=log)
    acls = [binding(right) for right in ("READ TOPIC open", "WRITE TOPIC o*", "DENY ALL GROUP group")]
    assert controller.create_acls([*acls, acls[0]]) == [None] * 4
    controller.delete_acls([AclFilter(operation=AclOperation.WRITE)])
    kept = {acls[0]: None, acls[2]: None}
    assert controller.image.acls == kept
    assert make_controller(replay=b"".join(log)).image.acls == kept
    assert make_controller(replay=controller.snapshot()).image.acls == kept


def test_a_decision_that_changes_nothing_writes_nothing() -> None:
    log: list[bytes] = []
    controller = make_controller(log=log)
    controller.create_acls([binding("READ TOPIC open")])
    written = len(log)
    controller.create_acls(
        [binding("READ TOPIC open"), binding("READ TOPIC open")._replace(principal="nobody")]
    )
    controller.delete_acls([AclFilter(principal="User:bob"), AclFilter(pattern_type=AclPatternType.UNKNOWN)])
    assert len(log) == written


def test_a_broker_that_starts_again_heeds_the_acls_there_are() -> None:
    ours = world("READ TOPIC open")
    ours.driver.stop()
    ours.driver.start()
    client = ours.driver.connect()
    ours.driver.broker.clients.sessions[client.connection].principal = ALICE
    answer = client.ask(ApiKey.FETCH, 12, **fetch_fields({(OPEN, 0): 0, (SECRET, 0): 0}))
    assert [topic.partitions[0].error_code for topic in answer.responses] == [
        ErrorCode.NONE,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ]


# --- Who is heeded


def test_a_fetch_session_hears_at_once_of_a_right_that_is_taken_away_and_of_one_that_is_given() -> None:
    ours = world("READ TOPIC open")
    fields = fetch_fields({(OPEN, 0): 0}, session_epoch=0)
    session_id = ours.alice(ApiKey.FETCH, 12, **fields).session_id
    quiet = {"session_id": session_id, "topics": []}
    assert ours.alice(ApiKey.FETCH, 12, **fields | quiet | {"session_epoch": 1}).responses == []
    give(ours)
    for epoch in (2, 3):
        (told,) = ours.alice(ApiKey.FETCH, 12, **fields | quiet | {"session_epoch": epoch}).responses
        assert told.partitions[0].error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    give(ours, "READ TOPIC *")
    (told,) = ours.alice(ApiKey.FETCH, 12, **fields | quiet | {"session_epoch": 4}).responses
    assert told.partitions[0].error_code == ErrorCode.NONE


def test_a_fetch_that_waits_gives_nothing_any_more_to_who_may_not_read() -> None:
    ours = world("READ TOPIC open")
    ours.client.send(ApiKey.FETCH, 12, **fetch_fields({(OPEN, 0): 0}, max_wait_ms=500))
    assert not ours.client.arrived
    give(ours)
    produce(ours.driver.connect(), batch([b"secret"]), OPEN)
    (told,) = ours.client.arrived[-1].responses
    (row,) = told.partitions
    assert (row.error_code, len(row.records)) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, 0)


def test_producing_without_an_answer_ends_the_connection_of_who_may_not_write() -> None:
    ours = world("WRITE TOPIC open")
    for topic in (OPEN, SECRET):
        ours.client.send(ApiKey.PRODUCE, 9, **produce_fields({(topic, 0): batch([b"x"])}, acks=0))
        ours.client.drop_expectation()
        assert ours.client.closed is (topic == SECRET)


def test_nothing_is_written_of_a_request_in_the_name_of_a_transaction_that_is_anothers() -> None:
    ours = world("WRITE TOPIC *")
    of_transaction = batch([b"x"], transactional=True, producer_id=1, producer_epoch=0, base_sequence=0)
    fields = produce_fields({(OPEN, 0): batch([b"x"]), (SECRET, 0): of_transaction}) | {
        "transactional_id": "theirs"
    }
    rows = [topic.partition_responses[0] for topic in ours.alice(ApiKey.PRODUCE, 9, **fields).responses]
    assert [row.error_code for row in rows] == [ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED] * 2
    answer = ours.admin(ApiKey.FETCH, 12, **fetch_fields({(OPEN, 0): 0}))
    assert answer.responses[0].partitions[0].high_watermark == 0


def test_who_is_no_broker_is_not_answered_as_one() -> None:
    ours = world("ALL TOPIC *")
    ours.client.send(PrivateApi.REPLICATE, 0, body=[b"anything"])
    assert ours.client.closed


def test_a_topic_that_may_be_created_is_created_by_asking_for_it() -> None:
    ours = world("CREATE TOPIC new*", "DESCRIBE TOPIC *")
    asked = [Message(name=name) for name in ("new-1", "other")]
    answer = ours.alice(ApiKey.METADATA, 9, topics=asked, allow_auto_topic_creation=True)
    assert [(topic.name, topic.error_code) for topic in answer.topics] == [
        ("new-1", ErrorCode.NONE),
        ("other", ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    ]
    assert set(ours.driver.controller.image.topics) == {OPEN, SECRET, "new-1"}


def test_a_user_of_the_whole_cluster_creates_and_deletes_any_topic() -> None:
    ours = world("ALL CLUSTER")
    asked = [Message(name="new", num_partitions=1, replication_factor=1, assignments=[], configs=[])]
    (created,) = ours.alice(
        ApiKey.CREATE_TOPICS, 7, topics=asked, timeout_ms=1_000, validate_only=False
    ).topics
    assert (created.error_code, created.topic_config_error_code) == (
        ErrorCode.NONE,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    )
    (deleted,) = ours.alice(ApiKey.DELETE_TOPICS, 5, topic_names=["new"], timeout_ms=1_000).responses
    assert deleted.error_code == ErrorCode.NONE


def test_everyone_may_use_what_no_acl_is_about_if_the_config_says_so() -> None:
    ours = world("DENY WRITE TOPIC secret", allow_everyone_if_no_acl_found="true")
    answer = ours.alice(
        ApiKey.PRODUCE, 9, **produce_fields({(OPEN, 0): batch([b"x"]), (SECRET, 0): batch([b"x"])})
    )
    assert [topic.partition_responses[0].error_code for topic in answer.responses] == [
        ErrorCode.NONE,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ]


def test_operations_without_an_authorizer_are_all_that_there_are() -> None:
    driver = Driver({"offsets.topic.num.partitions": 1, "group.initial.rebalance.delay.ms": 0})
    driver.controller.create_topic(OPEN)
    client = driver.connect()
    flags = {"include_topic_authorized_operations": True, "include_cluster_authorized_operations": True}
    answer = client.ask(
        ApiKey.METADATA, 8, topics=[Message(name=OPEN)], allow_auto_topic_creation=False, **flags
    )
    client.ask(ApiKey.FIND_COORDINATOR, 3, key_type=0, key=GROUP)
    (group,) = client.ask(
        ApiKey.DESCRIBE_GROUPS, 5, groups=[GROUP], include_authorized_operations=True
    ).groups
    assert (
        answer.topics[0].topic_authorized_operations,
        answer.cluster_authorized_operations,
        group.authorized_operations,
    ) == (
        3576,
        8096,
        3400,
    )


# --- The authorizer itself


def test_what_is_refused_is_logged_and_what_is_only_filtered_is_not(caplog: pytest.LogCaptureFixture) -> None:
    authorizer = Authorizer([])
    with caplog.at_level(logging.INFO, "fairlead_kafka.authorizer"):
        assert not authorizer.allows(ALICE, "1.2.3.4", READ, TOPIC, SECRET, quiet=True)
        assert not caplog.messages
        assert not authorizer.allows(ALICE, "1.2.3.4", READ, TOPIC, SECRET)
    assert caplog.messages == ["User:alice from host 1.2.3.4 may not READ TOPIC:secret"]


@pytest.mark.parametrize(
    ("peer", "host"),
    [
        ("10.0.0.1:9092", "10.0.0.1"),
        ("[::1]:9092", "::1"),
        ("::1:9092", "::1"),
        ("fe80::1%eth0:9092", "fe80::1"),
        ("::ffff:10.0.0.1:9092", "10.0.0.1"),
        ("driver:1", "driver"),
    ],
)
def test_a_host_has_one_spelling(peer: str, host: str) -> None:
    assert host_of(peer) == host


def test_an_acl_may_spell_a_host_as_java_does() -> None:
    acl = binding("READ TOPIC open")._replace(host="0:0:0:0:0:0:0:1")
    authorizer = Authorizer([acl])
    assert authorizer.allows(ALICE, host_of("::1:5000"), READ, TOPIC, OPEN)
    assert not authorizer.allows(ALICE, host_of("::2:5000"), READ, TOPIC, OPEN)


def test_what_was_decided_is_kept_up_to_a_bound() -> None:
    authorizer = Authorizer([binding("READ TOPIC *")])
    for number in range(ACL_DECISIONS_KEPT_MAX + 1):
        assert authorizer.allows(ALICE, "h", READ, TOPIC, f"t-{number}")
    assert len(authorizer._decided) == 1


def test_what_is_indexed_is_held_against_the_image() -> None:
    acl = binding("READ TOPIC open")
    authorizer = Authorizer([acl])
    authorizer.check([acl])
    with pytest.raises(CheckFailed, match="the ACLs that are indexed"):
        authorizer.check([acl, acl._replace(permission=AclPermission.DENY)])
    authorizer.changed([acl], [acl._replace(host="nowhere")])  # there already, and not there
    authorizer.check([acl])


def test_without_a_class_there_is_no_authorizer() -> None:
    assert Driver().broker.authorizer is None
    assert Driver(CONFIG).broker.authorizer is not None
