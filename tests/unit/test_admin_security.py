"""Admin calls about rights, users and quotas: what they ask, read, try again and refuse.
(`tests/conformance` has the real Kafka.)"""

from __future__ import annotations

import base64
import hashlib
import hmac
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import pytest

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
    ClientQuotaFilter,
    ClientQuotaFilterComponent,
    ItemsFailed,
    ScramCredentialInfo,
    ScramMechanism,
    Secret,
    UsageError,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from fairlead_kafka.admin import acls, quotas, users
from fairlead_kafka.admin.acl_items import operations_of
from fairlead_kafka.admin.quota_items import ClientQuotaMatch
from fairlead_kafka.admin.scripts import AdminScript
from fairlead_kafka.admin.user_items import salted_password
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.core.script import Ask, Pause
from fairlead_kafka.wire import Message
from tests.support.client_rig import Rig

SHA_256, SHA_512 = ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512
READ = AclBinding(
    AclResourceType.TOPIC, "t", AclPatternType.LITERAL, "User:a", "*", AclOperation.READ, AclPermission.ALLOW
)
WRITE = READ._replace(operation=AclOperation.WRITE)
ALICE, BOB = ClientQuotaEntity({"user": "alice"}), ClientQuotaEntity({"user": "bob"})


class Talk:
    """A script, answered by hand: `answer` is the next answer to all that it asked last; `result`
    is what it came to."""

    def __init__(self, script: AdminScript[Any]) -> None:
        self._script = script
        self.result: Any = None
        self.asked = self._go(None)

    def answer(self, *answers: Any) -> None:
        """Answer, and go on after the pause that may follow."""
        self.asked = self._go(list(answers))

    def _go(self, sent: Any) -> list[Message]:
        try:
            step = self._script.send(sent)
            while isinstance(step, Pause):
                step = next(self._script)
        except StopIteration as end:
            self.result = end.value
            return []
        assert all(isinstance(each, Ask) for each in step)
        return [each.message for each in step]


def row(error_code: int = 0, error_message: str | None = None, **more: Any) -> Message:
    return Message(error_code=error_code, error_message=error_message, **more)


def told(binding: AclBinding, **more: Any) -> Message:
    fields = {
        "resource_type": int(binding.resource_type),
        "resource_name": binding.resource_name,
        "pattern_type": int(binding.pattern_type),
        "principal": binding.principal,
        "host": binding.host,
        "operation": int(binding.operation),
        "permission_type": int(binding.permission),
    }
    return row(**{**fields, **more})


def test_answers_about_entries_are_by_their_order_and_only_open_ones_are_asked_again() -> None:
    talk = Talk(acls.create_acls([READ, WRITE, READ]))
    assert [each.operation for each in talk.asked[0].creations] == [AclOperation.READ, AclOperation.WRITE]
    talk.answer(Message(results=[row(ErrorCode.NOT_CONTROLLER), row()]))
    assert [each.operation for each in talk.asked[0].creations] == [AclOperation.READ]
    talk.answer(Message(results=[]))  # an answer that says nothing
    with pytest.raises(
        ItemsFailed,
        match=r"Allow User:a Read on topic t: CLUSTER_AUTHORIZATION_FAILED .*right to Alter on the cluster",
    ) as caught:
        talk.answer(Message(results=[row(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)]))
    assert caught.value.results == {WRITE: None}
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_what_was_deleted_is_told_by_filter_and_one_entry_that_stays_is_an_error() -> None:
    one, other = AclFilter(AclResourceType.TOPIC), AclFilter(AclResourceType.GROUP)
    talk = Talk(acls.delete_acls([one, other]))
    failed = told(READ, error_code=ErrorCode.UNKNOWN_SERVER_ERROR, error_message="it stays")
    with pytest.raises(ItemsFailed, match="it stays") as caught:
        talk.answer(
            Message(
                filter_results=[
                    row(matching_acls=[told(WRITE), told(READ)]),
                    row(matching_acls=[told(WRITE), failed]),
                ]
            )
        )
    assert caught.value.results == {one: [READ, WRITE]}
    assert list(caught.value.errors) == [other]


def test_what_is_newer_than_this_client_is_unknown_and_does_no_harm() -> None:
    talk = Talk(acls.describe_acls(AclFilter()))
    entry = Message(principal="User:a", host="*", operation=99, permission_type=99)
    talk.answer(row(resources=[Message(resource_type=99, resource_name="n", pattern_type=99, acls=[entry])]))
    unknown = (
        AclResourceType.UNKNOWN,
        "n",
        AclPatternType.UNKNOWN,
        "User:a",
        "*",
        AclOperation.UNKNOWN,
        AclPermission.UNKNOWN,
    )
    assert talk.result == [AclBinding(*unknown)]
    assert operations_of(1 << 3 | 1 << 30 | 1 << 1) == frozenset({AclOperation.READ})
    assert operations_of(-(2**31)) is None
    talk = Talk(users.describe_user_scram_credentials([]))
    talk.answer(row(results=[row(user="a", credential_infos=[Message(mechanism=9, iterations=1)])]))
    assert talk.result == {"a": [ScramCredentialInfo(ScramMechanism.UNKNOWN, 1)]}


def test_a_single_request_fails_as_a_plain_error_and_what_passes_is_tried_again() -> None:
    talk = Talk(acls.describe_acls(AclFilter()))
    talk.answer(row(ErrorCode.REQUEST_TIMED_OUT, resources=[]))
    with pytest.raises(BrokerError, match="no authorizer") as caught:
        talk.answer(row(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.", resources=[]))
    assert not isinstance(caught.value, ItemsFailed)
    assert "No Authorizer is configured." in str(caught.value)


def test_users_who_are_named_are_settled_one_by_one() -> None:
    talk = Talk(users.describe_user_scram_credentials(["a", "b"]))
    talk.answer(
        row(results=[row(user="a", credential_infos=[]), row(user="somebody else", credential_infos=[])])
    )
    assert [each.name for each in talk.asked[0].users] == ["a", "b"]
    with pytest.raises(ItemsFailed) as caught:
        talk.answer(row(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, results=[]))
    assert "b: CLUSTER_AUTHORIZATION_FAILED" in str(caught.value)
    assert caught.value.results == {"a": []}


def salted(user: str, mechanism: ScramMechanism) -> Any:
    return salted_password(
        UserScramCredentialUpsertion(user, ScramCredentialInfo(mechanism, 4096), "secret"), b"salt"
    )


def test_one_alteration_of_a_user_goes_into_a_request_and_none_after_one_that_failed() -> None:
    wanted = [
        salted("a", SHA_256),
        salted("b", SHA_256),
        salted("a", SHA_512),
        UserScramCredentialDeletion("b", SHA_512),
    ]
    talk = Talk(users.alter_user_scram_credentials(wanted))
    (first,) = talk.asked
    assert [(each.name, each.mechanism, each.iterations, each.salt) for each in first.upsertions] == [
        ("a", 1, 4096, b"salt"),
        ("b", 1, 4096, b"salt"),
    ]
    assert "secret" not in repr(first)
    assert repr(first).count("[hidden]") == 2
    talk.answer(
        Message(
            results=[row(user="a"), row(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations", user="b")]
        )
    )
    assert [(each.name, each.mechanism) for each in talk.asked[0].upsertions] == [("a", 2)]
    assert talk.asked[0].deletions == []
    with pytest.raises(ItemsFailed, match=r"b: UNACCEPTABLE_CREDENTIAL .*Too few iterations") as caught:
        talk.answer(Message(results=[row(user="a")]))
    assert caught.value.results == {"a": None}


def test_a_password_is_hashed_as_the_standards_have_it() -> None:
    """The example of RFC 7677, whose client proves with this what it says there."""
    one = UserScramCredentialUpsertion("user", ScramCredentialInfo(SHA_256, 4096), "pencil")
    password = salted_password(one, base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")).salted
    key = hmac.digest(password, b"Client Key", "sha256")
    auth = (
        b"n=user,r=rOprNGfwEbeRWgbNEkqO,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,"
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    )
    signature = hmac.digest(hashlib.sha256(key).digest(), auth, "sha256")
    proof = bytes(a ^ b for a, b in zip(key, signature, strict=True))
    assert base64.b64encode(proof) == b"dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="


def test_quotas_are_settled_by_their_entity_whatever_the_order_of_its_parts() -> None:
    both = ClientQuotaEntity({"user": "alice", "client-id": None})
    talk = Talk(
        quotas.alter_client_quotas(
            {both: {"request_percentage": None}, BOB: {"producer_byte_rate": 5}}, validate_only=True
        )
    )
    (asked,) = talk.asked
    assert [[(op.key, op.value, op.remove) for op in entry.ops] for entry in asked.entries] == [
        [("request_percentage", 0.0, True)],
        [("producer_byte_rate", 5.0, False)],
    ]
    assert asked.validate_only
    parts = [
        Message(entity_type="client-id", entity_name=None),
        Message(entity_type="user", entity_name="alice"),
    ]
    with pytest.raises(
        ItemsFailed, match=r"user bob: CLUSTER_AUTHORIZATION_FAILED .*AlterConfigs on the cluster"
    ) as caught:
        talk.answer(
            Message(
                entries=[
                    row(entity=parts),
                    row(
                        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
                        entity=[Message(entity_type="user", entity_name="bob")],
                    ),
                ]
            )
        )
    assert caught.value.results == {both: None}
    assert str(both) == "user alice, client-id (default)"


def test_a_failed_description_of_quotas_has_no_entries_to_read() -> None:
    talk = Talk(quotas.describe_client_quotas(ClientQuotaFilter()))
    with pytest.raises(BrokerError, match="DescribeConfigs on the cluster"):
        talk.answer(row(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, entries=None))


@pytest.fixture
def admin() -> Iterator[Admin]:
    with Rig().admin() as made:
        yield made


def upsertion(
    user: str = "a", password: str | Secret = "secret", **more: Any
) -> UserScramCredentialUpsertion:
    return UserScramCredentialUpsertion(
        user, more.pop("info", ScramCredentialInfo(SHA_256)), password, **more
    )


OF = ClientQuotaFilterComponent
WRONG: list[tuple[Callable[[Admin], Any], str]] = [
    (
        lambda admin: admin.create_acls(["t"]),
        r"bindings\[0\] must be AclBinding, not 't'; write \[AclBinding\(AclResourceType.TOPIC, ",
    ),  # type: ignore[list-item]
    (
        lambda admin: admin.create_acls([READ._replace(operation=3)]),
        r"bindings\[0\].operation must be AclOperation, not 3; write",
    ),  # type: ignore[arg-type]
    (
        lambda admin: admin.create_acls([READ, READ._replace(operation=AclOperation.ANY)]),
        r"bindings\[1\]: operation ANY is for filters",
    ),
    (
        lambda admin: admin.create_acls([READ._replace(pattern_type=AclPatternType.MATCH)]),
        "pattern_type MATCH is for filters",
    ),
    (lambda admin: admin.create_acls([READ._replace(resource_name="")]), "resource_name is empty"),
    (
        lambda admin: admin.create_acls([READ._replace(principal="alice")]),
        "a principal is written Type:name, such as User:alice, got 'alice'",
    ),
    (
        lambda admin: admin.create_acls([READ._replace(operation=AclOperation.CLUSTER_ACTION)]),
        "a topic has no operation ClusterAction; it has All,",
    ),
    (
        lambda admin: admin.create_acls([READ._replace(resource_type=AclResourceType.CLUSTER)]),
        "CLUSTER is 'kafka-cluster', not 't'",
    ),
    (
        lambda admin: admin.describe_acls("t"),
        r"filter must be AclFilter, not 't'; write AclFilter\(AclResourceType.TOPIC",
    ),  # type: ignore[arg-type]
    (
        lambda admin: admin.delete_acls([AclFilter(operation=AclOperation.UNKNOWN)]),
        r"filters\[0\]: operation is UNKNOWN",
    ),
    (
        lambda admin: admin.describe_user_scram_credentials("alice"),
        r"must be a list of texts, not 'alice'; write \[\"alice\"\]",
    ),
    (lambda admin: admin.describe_user_scram_credentials(["a", "a"]), "named twice: a"),
    (lambda admin: admin.alter_user_scram_credentials([upsertion("")]), r"alterations\[0\]: user is empty"),
    (lambda admin: admin.alter_user_scram_credentials([upsertion(password="")]), "password is empty"),
    (
        lambda admin: admin.alter_user_scram_credentials([upsertion(password="a\ud800")]),
        "password is not valid text",
    ),
    (lambda admin: admin.alter_user_scram_credentials([upsertion(salt=b"")]), "salt is empty"),
    (
        lambda admin: admin.alter_user_scram_credentials([upsertion(), upsertion()]),
        "named twice: SCRAM-SHA-256 of a",
    ),
    (
        lambda admin: admin.alter_user_scram_credentials([upsertion(info=ScramCredentialInfo(SHA_256, 100))]),
        r"alterations\[0\].info.iterations must be a whole number from 4096 to 16384, not 100",
    ),
    (
        lambda admin: admin.alter_user_scram_credentials(
            [UserScramCredentialDeletion("a", ScramMechanism.UNKNOWN)]
        ),
        "mechanism is UNKNOWN; it must be SCRAM_SHA_256 or SCRAM_SHA_512",
    ),
    (
        lambda admin: admin.alter_client_quotas({"user": 1}),
        r"key 'user' must be ClientQuotaEntity, not 'user'; write",
    ),  # type: ignore[dict-item]
    (
        lambda admin: admin.alter_client_quotas({ClientQuotaEntity({"usr": "a"}): {}}),
        "'usr' has no quotas; did you mean 'user'?",
    ),
    (lambda admin: admin.alter_client_quotas({ClientQuotaEntity({}): {}}), "a quota is for {'user': name}"),
    (
        lambda admin: admin.alter_client_quotas({ClientQuotaEntity({"user": "a", "ip": None}): {}}),
        "a quota is for {'user': name}",
    ),
    (
        lambda admin: admin.alter_client_quotas({ClientQuotaEntity({"user": ""}): {}}),
        "the name of 'user' is empty; None is the default",
    ),
    (
        lambda admin: admin.alter_client_quotas({ALICE: {"request_percentage": float("nan")}}),
        "of user alice must be a number above 0",
    ),
    (
        lambda admin: admin.alter_client_quotas({ALICE: {"request_percentage": 0}}),
        "must be a number above 0, or None to take it back, not 0",
    ),
    (
        lambda admin: admin.describe_client_quotas(
            ClientQuotaFilter([OF.of_entity_type("user"), OF.of_entity("user", "a")])
        ),
        "one component for each type, not user, user",
    ),
    (
        lambda admin: admin.describe_client_quotas(ClientQuotaFilter([OF("user", ClientQuotaMatch.EXACT)])),
        "has a name if it means this one",
    ),
]


@pytest.mark.parametrize(("call", "says"), WRONG, ids=lambda each: each if isinstance(each, str) else "")
def test_what_no_broker_takes_is_told_at_the_door(
    admin: Admin, call: Callable[[Admin], Any], says: str
) -> None:
    with pytest.raises(UsageError, match=says):
        call(admin)


def test_a_password_may_not_be_bytes_and_is_equal_as_text_or_secret() -> None:
    with pytest.raises(UsageError, match=r"password must be a text or a Secret$"):
        upsertion(password=b"x")  # type: ignore[arg-type]
    assert upsertion(password="x") == upsertion(password=Secret("x"))
    assert "password=[hidden]" in repr(upsertion(password="x"))
