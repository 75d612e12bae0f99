"""Rights on Apache Kafka, given, listed and taken back by our admin client, judged by
confluent-kafka and Kafka's own tools."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import fairlead_kafka
from fairlead_kafka import (
    AclBinding,
    AclFilter,
    AclOperation,
    AclPatternType,
    AclPermission,
    AclResourceType,
    Admin,
    BrokerError,
    ClientQuotaEntity,
    NewTopic,
    ScramMechanism,
    UserScramCredentialDeletion,
)
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.testing.certificates import PASSWORD
from tests.support.java_tools import JavaTools
from tests.support.log_ins import for_librdkafka, logging_in
from tests.support.secured_kafka import USER, SecuredKafka
from tests.support.waiting import PATIENCE_S, until

confluent_kafka = pytest.importorskip("confluent_kafka")
confluent_admin = pytest.importorskip("confluent_kafka.admin")


SHA_256, SHA_512 = ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512
TOPIC, GROUP, CLUSTER = AclResourceType.TOPIC, AclResourceType.GROUP, AclResourceType.CLUSTER
LITERAL, PREFIXED = AclPatternType.LITERAL, AclPatternType.PREFIXED


@pytest.fixture(scope="module")
def admin(secured_admin: Admin) -> Admin:
    return secured_admin


@pytest.fixture(scope="module")
def confluent(secured: SecuredKafka) -> Any:
    return confluent_admin.AdminClient({"bootstrap.servers": secured.plaintext})


def allow(
    kind: AclResourceType, name: str, operation: AclOperation, who: str = "User:somebody", **more: Any
) -> AclBinding:
    return AclBinding(kind, name, LITERAL, who, "*", operation, AclPermission.ALLOW)._replace(**more)


BINDINGS = sorted(
    [
        allow(TOPIC, "orders", AclOperation.READ),
        allow(TOPIC, "orders", AclOperation.READ, pattern_type=PREFIXED),
        allow(TOPIC, "*", AclOperation.DESCRIBE, "User:*"),
        allow(TOPIC, "other", AclOperation.WRITE, host="10.0.0.1", permission=AclPermission.DENY),
        allow(GROUP, "readers", AclOperation.ALL),
        allow(CLUSTER, "kafka-cluster", AclOperation.DESCRIBE_CONFIGS),
        allow(AclResourceType.TRANSACTIONAL_ID, "ids-", AclOperation.TWO_PHASE_COMMIT, pattern_type=PREFIXED),
        allow(AclResourceType.DELEGATION_TOKEN, "token", AclOperation.DESCRIBE),
        allow(AclResourceType.USER, "User:x", AclOperation.CREATE_TOKENS),
    ]
)
"""Of every kind of resource one."""
KNOWN_TO_LIBRDKAFKA = [
    one
    for one in BINDINGS
    if one.resource_type <= AclResourceType.TRANSACTIONAL_ID
    and one.operation <= AclOperation.IDEMPOTENT_WRITE
]
"""It has no numbers for the others."""
FILTERS = [
    AclFilter(),
    AclFilter(TOPIC),
    AclFilter(TOPIC, "orders", LITERAL),
    AclFilter(TOPIC, "orders", AclPatternType.ANY),
    AclFilter(TOPIC, "orders-eu", AclPatternType.MATCH),
    AclFilter(TOPIC, "orders", PREFIXED),
    AclFilter(principal="User:*"),
    AclFilter(host="10.0.0.1"),
    AclFilter(operation=AclOperation.ALL),
    AclFilter(permission=AclPermission.DENY),
    AclFilter(GROUP, "nobody has rights on this"),
]


def theirs(one: AclBinding | AclFilter) -> Any:
    """The same for confluent-kafka, whose enums have the same numbers."""
    made = confluent_admin.AclBinding if isinstance(one, AclBinding) else confluent_admin.AclBindingFilter
    return made(
        confluent_admin.ResourceType(int(one.resource_type)),
        one.resource_name,
        confluent_admin.ResourcePatternType(int(one.pattern_type)),
        one.principal,
        one.host,
        confluent_admin.AclOperation(int(one.operation)),
        confluent_admin.AclPermissionType(int(one.permission)),
    )


@pytest.mark.usefixtures("no_rights_after")
def test_what_we_add_is_what_confluent_kafka_is_told_and_the_other_way_round(
    admin: Admin, confluent: Any
) -> None:
    assert admin.create_acls(KNOWN_TO_LIBRDKAFKA) == dict.fromkeys(KNOWN_TO_LIBRDKAFKA)
    assert admin.create_acls(KNOWN_TO_LIBRDKAFKA[:1]) == {KNOWN_TO_LIBRDKAFKA[0]: None}
    until(lambda: len(admin.describe_acls()) == len(KNOWN_TO_LIBRDKAFKA))
    assert admin.describe_acls() == KNOWN_TO_LIBRDKAFKA
    for wanted in FILTERS:
        assert sorted(map(theirs, admin.describe_acls(wanted))) == sorted(
            confluent.describe_acls(theirs(wanted)).result(PATIENCE_S)
        ), wanted
    gone = admin.delete_acls([AclFilter(TOPIC, "orders"), AclFilter(GROUP, "nobody has rights on this")])
    assert list(map(len, gone.values())) == [2, 0]
    until(
        lambda: (
            len(confluent.describe_acls(theirs(AclFilter())).result(PATIENCE_S))
            == len(KNOWN_TO_LIBRDKAFKA) - 2
        )
    )
    (created,) = confluent.create_acls([theirs(KNOWN_TO_LIBRDKAFKA[0])]).values()
    created.result(PATIENCE_S)
    until(lambda: KNOWN_TO_LIBRDKAFKA[0] in admin.describe_acls())
    assert admin.delete_acls([AclFilter(*KNOWN_TO_LIBRDKAFKA[0])]) == {
        AclFilter(*KNOWN_TO_LIBRDKAFKA[0]): [KNOWN_TO_LIBRDKAFKA[0]]
    }


@pytest.mark.usefixtures("no_rights_after")
def test_every_kind_of_resource_is_listed_by_kafka_s_own_tool(
    admin: Admin, secured: SecuredKafka, tools: JavaTools
) -> None:
    admin.create_acls(BINDINGS)
    until(lambda: admin.describe_acls() == BINDINGS)
    listed = tools.run("acls", "--bootstrap-server", secured.plaintext, "--list")
    for one in BINDINGS:
        resource = (
            f"resourceType={one.resource_type.name}, name={one.resource_name}, "
            f"patternType={one.pattern_type.name}"
        )
        entry = (
            f"principal={one.principal}, host={one.host}, operation={one.operation.name}, "
            f"permissionType={one.permission.name}"
        )
        assert resource in listed
        assert entry in listed


@pytest.mark.usefixtures("no_rights_after")
def test_rights_are_heeded_by_brokers(admin: Admin, secured: SecuredKafka) -> None:
    admin.create_topics([NewTopic("denied", partitions=1)])
    denial = allow(TOPIC, "denied", AclOperation.WRITE, f"User:{USER}", permission=AclPermission.DENY)
    admin.create_acls([denial])
    settings = logging_in(secured, USER, PASSWORD, SHA_256)

    def said() -> str:
        with fairlead_kafka.Producer(settings) as producer:
            try:
                return str(producer.send("denied", b"x").result(PATIENCE_S))
            except BrokerError as error:
                return str(error)

    until(lambda: "the user of this client needs the right to Write on the topic" in said())
    admin.delete_acls([AclFilter(TOPIC, "denied")])
    until(lambda: "RecordMetadata" in said())


def calls_of(admin: Admin) -> list[tuple[str, Callable[[], Any]]]:
    alice = ClientQuotaEntity({"user": USER})
    return [
        ("Describe", admin.describe_acls),
        ("Alter", lambda: admin.create_acls(BINDINGS[:1])),
        ("Alter", lambda: admin.delete_acls([AclFilter(TOPIC, "x")])),
        ("Describe", admin.describe_user_scram_credentials),
        ("Alter", lambda: admin.alter_user_scram_credentials([UserScramCredentialDeletion(USER, SHA_512)])),
        ("DescribeConfigs", admin.describe_client_quotas),
        ("AlterConfigs", lambda: admin.alter_client_quotas({alice: {"producer_byte_rate": 1e9}})),
    ]


@pytest.mark.usefixtures("no_rights_after")
def test_a_missing_right_is_named(admin: Admin, secured: SecuredKafka) -> None:
    admin.create_acls(
        [allow(CLUSTER, "kafka-cluster", AclOperation.ALL, "User:nobody")]
    )  # from now on nobody else may
    until(admin.describe_acls)
    with Admin(logging_in(secured, USER, PASSWORD, SHA_256)) as hers:
        for operation, call in calls_of(hers):
            with pytest.raises(BrokerError, match=f"needs the right to {operation} on the cluster") as caught:
                call()
            assert caught.value.code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def test_a_cluster_without_an_authorizer_says_which_setting_makes_one(apache_kafka: str) -> None:
    with Admin({"bootstrap.servers": apache_kafka}) as admin:
        for _operation, call in calls_of(admin)[:3]:
            with pytest.raises(
                BrokerError, match=r"has no authorizer, .*: set authorizer.class.name .*StandardAuthorizer"
            ) as caught:
                call()
            assert caught.value.code == ErrorCode.SECURITY_DISABLED


@pytest.mark.usefixtures("no_rights_after")
def test_descriptions_say_what_their_user_may_do(admin: Admin, secured: SecuredKafka, confluent: Any) -> None:
    settings = logging_in(secured, USER, PASSWORD, SHA_256)
    admin.create_topics([NewTopic("mine", partitions=1)])
    admin.alter_group_offsets("mine", {fairlead_kafka.TopicPartition("mine", 0): 0})
    who = f"User:{USER}"
    admin.create_acls(
        [
            allow(TOPIC, "mine", AclOperation.READ, who),
            allow(GROUP, "mine", AclOperation.DELETE, who),
            allow(CLUSTER, "kafka-cluster", AclOperation.ALTER, who),
        ]
    )
    until(lambda: len(admin.describe_acls()) == 3)
    with Admin(settings) as hers:
        found = [
            hers.describe_topics(["mine"], include_authorized_operations=True)["mine"].authorized_operations,
            hers.describe_groups(["mine"], include_authorized_operations=True)["mine"].authorized_operations,
            hers.describe_cluster(include_authorized_operations=True).authorized_operations,
        ]
        assert hers.describe_topics(["mine"])["mine"].authorized_operations is None
        assert hers.describe_groups(["mine"])["mine"].authorized_operations is None
        assert hers.describe_cluster().authorized_operations is None
        whole = hers.describe_cluster(include_authorized_operations=True)
        assert (whole.cluster_id, whole.nodes) == (
            hers.describe_cluster().cluster_id,
            hers.describe_cluster().nodes,
        )
    assert [set(one or ()) for one in found] == [
        {AclOperation.READ, AclOperation.DESCRIBE},
        {AclOperation.DELETE, AclOperation.DESCRIBE},
        {AclOperation.ALTER, AclOperation.DESCRIBE},
    ]
    librdkafka = confluent_admin.AdminClient(for_librdkafka(settings))
    topics = confluent_kafka.TopicCollection(["mine"])
    described = [
        librdkafka.describe_topics(topics, include_authorized_operations=True)["mine"].result(PATIENCE_S),
        librdkafka.describe_consumer_groups(["mine"], include_authorized_operations=True)["mine"].result(
            PATIENCE_S
        ),
        librdkafka.describe_cluster(include_authorized_operations=True).result(PATIENCE_S),
    ]
    assert [{int(each.value) for each in one.authorized_operations} for one in described] == [
        set(map(int, one or ())) for one in found
    ]
