"""SCRAM users and quotas of Apache Kafka, set and told by our admin client, judged by
confluent-kafka and Kafka's own tools."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

import fairlead_kafka
from fairlead_kafka import (
    Admin,
    ClientQuotaEntity,
    ClientQuotaFilter,
    ClientQuotaFilterComponent,
    ItemsFailed,
    ScramCredentialInfo,
    ScramMechanism,
    Secret,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from fairlead_kafka.base.codes import ErrorCode
from tests.support.java_tools import JavaTools
from tests.support.log_ins import logs_in
from tests.support.secured_kafka import USER, SecuredKafka
from tests.support.waiting import PATIENCE_S, until

confluent_kafka = pytest.importorskip("confluent_kafka")
confluent_admin = pytest.importorskip("confluent_kafka.admin")

NEVER_SHOWN = "a-p4ssw0rd-th4t-n0b0dy-s33s"
SHA_256, SHA_512 = ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512


@pytest.fixture(scope="module")
def admin(secured_admin: Admin) -> Admin:
    return secured_admin


@pytest.fixture(scope="module")
def confluent(secured: SecuredKafka) -> Any:
    return confluent_admin.AdminClient({"bootstrap.servers": secured.plaintext})


@pytest.mark.parametrize(
    ("user", "password", "info", "salt"),
    [
        ("carol", "secret", ScramCredentialInfo(SHA_256), None),
        ("dave", Secret("pass, word=with signs"), ScramCredentialInfo(SHA_512, 4096), b"salt of mine"),
        ("name=with,signs", "Zwölf Boxkämpfer", ScramCredentialInfo(SHA_256, 16_384), None),
    ],
)
def test_a_user_whose_password_we_set_logs_in_until_we_take_it_back(
    secured: SecuredKafka,
    admin: Admin,
    confluent: Any,
    tools: JavaTools,
    user: str,
    password: str | Secret,
    info: ScramCredentialInfo,
    salt: bytes | None,
) -> None:
    text = password.reveal() if isinstance(password, Secret) else password
    assert admin.alter_user_scram_credentials([UserScramCredentialUpsertion(user, info, password, salt)]) == {
        user: None
    }
    until(lambda: user in admin.describe_user_scram_credentials())
    assert admin.describe_user_scram_credentials([user]) == {user: [info]}
    told = confluent.describe_user_scram_credentials([user])[user].result(PATIENCE_S)
    assert [(one.mechanism.value, one.iterations) for one in told.scram_credential_infos] == [info]
    said = tools.run(
        "configs",
        "--bootstrap-server",
        secured.plaintext,
        "--describe",
        "--entity-type",
        "users",
        "--entity-name",
        user,
    )
    assert f"{info.mechanism.mechanism}=iterations={info.iterations}" in said
    assert logs_in(secured, user, text, info.mechanism)
    assert not logs_in(secured, user, f"{text}!", info.mechanism)
    assert admin.alter_user_scram_credentials([UserScramCredentialDeletion(user, info.mechanism)]) == {
        user: None
    }
    until(lambda: user not in admin.describe_user_scram_credentials())
    assert not logs_in(secured, user, text, info.mechanism)


def test_both_mechanisms_of_a_user_are_set_in_one_call_and_beside_an_event_loop(
    secured: SecuredKafka, admin: Admin
) -> None:
    both = [ScramCredentialInfo(SHA_256), ScramCredentialInfo(SHA_512)]

    async def set_them() -> dict[str, None]:
        async with fairlead_kafka.AsyncAdmin({"bootstrap.servers": secured.plaintext}) as made:
            return await made.alter_user_scram_credentials(
                [UserScramCredentialUpsertion("erin", info, "secret") for info in both]
            )

    assert asyncio.run(set_them()) == {"erin": None}
    until(lambda: "erin" in admin.describe_user_scram_credentials())
    until(lambda: admin.describe_user_scram_credentials(["erin"]) == {"erin": both})
    assert logs_in(secured, "erin", "secret", SHA_256)
    assert logs_in(secured, "erin", "secret", SHA_512)
    with pytest.raises(ItemsFailed) as caught:
        admin.alter_user_scram_credentials(
            [UserScramCredentialDeletion("erin", SHA_256), UserScramCredentialDeletion("nobody", SHA_256)]
        )
    assert {user: error.code for user, error in caught.value.errors.items()} == {
        "nobody": ErrorCode.RESOURCE_NOT_FOUND
    }
    assert caught.value.results == {"erin": None}
    with pytest.raises(ItemsFailed, match="nobody") as caught:
        admin.describe_user_scram_credentials([USER, "nobody"])
    assert list(caught.value.results) == [USER]


def test_a_password_that_others_set_is_described(secured: SecuredKafka, admin: Admin, confluent: Any) -> None:
    info = confluent_admin.ScramCredentialInfo(confluent_admin.ScramMechanism.SCRAM_SHA_512, 5000)
    confluent.alter_user_scram_credentials(
        [confluent_admin.UserScramCredentialUpsertion("frank", info, b"x")]
    )["frank"].result(PATIENCE_S)
    until(lambda: "frank" in admin.describe_user_scram_credentials())
    assert admin.describe_user_scram_credentials(["frank"]) == {"frank": [ScramCredentialInfo(SHA_512, 5000)]}
    assert logs_in(secured, "frank", "x", SHA_512)


def test_a_password_is_never_shown(
    secured: SecuredKafka, admin: Admin, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    shown: list[str] = []
    for user, given in [("", NEVER_SHOWN), ("grace", f"{NEVER_SHOWN}\ud800"), ("grace", NEVER_SHOWN)]:
        upsertion = UserScramCredentialUpsertion(user, ScramCredentialInfo(SHA_256), given)
        shown += [repr(upsertion), str(upsertion), f"{upsertion}"]
        try:
            admin.alter_user_scram_credentials([upsertion, upsertion] if user == "" else [upsertion])
        except fairlead_kafka.FairleadError as error:
            shown += [repr(error), str(error), repr(error.__context__)]
    odd: list[Any] = [NEVER_SHOWN, [NEVER_SHOWN], [("grace", SHA_256, NEVER_SHOWN)], {"grace": NEVER_SHOWN}]
    for wrong in odd:
        with pytest.raises(fairlead_kafka.UsageError) as caught:
            admin.alter_user_scram_credentials(wrong)
        shown.append(str(caught.value))
    with pytest.raises(fairlead_kafka.UsageError) as caught:
        UserScramCredentialUpsertion("grace", ScramCredentialInfo(SHA_256), NEVER_SHOWN.encode())  # type: ignore[arg-type]
    shown.append(str(caught.value))
    assert NEVER_SHOWN not in "".join(shown) + caplog.text
    assert len(shown) >= 14


ALICE, ANY_CLIENT_OF_HERS = (
    ClientQuotaEntity({"user": USER}),
    ClientQuotaEntity({"user": USER, "client-id": None}),
)
QUOTAS: dict[ClientQuotaEntity, dict[str, float]] = {
    ALICE: {"producer_byte_rate": 1_048_576.0, "consumer_byte_rate": 2_097_152.0},
    ANY_CLIENT_OF_HERS: {"request_percentage": 12.5},
    ClientQuotaEntity({"user": None}): {"controller_mutation_rate": 0.5},
    ClientQuotaEntity({"client-id": "batch"}): {"producer_byte_rate": 1.0},
    ClientQuotaEntity({"ip": "127.0.0.9"}): {"connection_creation_rate": 10.0},
    ClientQuotaEntity({"ip": None}): {"connection_creation_rate": 1000.0},
}


def test_quotas_that_we_set_are_what_kafka_s_own_tool_is_told(
    secured: SecuredKafka, admin: Admin, tools: JavaTools
) -> None:
    def described(*entity: str) -> str:
        return tools.run("configs", "--bootstrap-server", secured.plaintext, "--describe", *entity)

    of = ClientQuotaFilterComponent
    assert admin.alter_client_quotas(QUOTAS, validate_only=True) == dict.fromkeys(QUOTAS)
    assert admin.alter_client_quotas(QUOTAS) == dict.fromkeys(QUOTAS)
    until(lambda: len(admin.describe_client_quotas()) == len(QUOTAS))
    assert admin.describe_client_quotas() == QUOTAS
    hers = admin.describe_client_quotas(ClientQuotaFilter([of.of_entity("user", USER)]))
    assert hers.keys() == {ALICE, ANY_CLIENT_OF_HERS}
    assert admin.describe_client_quotas(
        ClientQuotaFilter([of.of_entity("user", USER)], strict=True)
    ).keys() == {ALICE}
    assert admin.describe_client_quotas(ClientQuotaFilter([of.of_default_entity("ip")])).keys() == {
        ClientQuotaEntity({"ip": None})
    }
    assert len(admin.describe_client_quotas(ClientQuotaFilter([of.of_entity_type("ip")]))) == 2
    said = described("--entity-type", "users", "--entity-name", USER)
    assert "producer_byte_rate=1048576.0" in said
    assert "consumer_byte_rate=2097152.0" in said
    assert "request_percentage=12.5" in described(
        "--entity-type", "users", "--entity-name", USER, "--entity-type", "clients", "--entity-default"
    )
    assert "controller_mutation_rate=0.5" in described("--entity-type", "users", "--entity-default")
    assert "producer_byte_rate=1.0" in described("--entity-type", "clients", "--entity-name", "batch")
    assert "connection_creation_rate=10.0" in described("--entity-type", "ips", "--entity-name", "127.0.0.9")
    by_tool = (
        "--alter",
        "--entity-type",
        "clients",
        "--entity-name",
        "batch",
        "--add-config",
        "request_percentage=7",
    )
    tools.run("configs", "--bootstrap-server", secured.plaintext, *by_tool)
    batch = ClientQuotaEntity({"client-id": "batch"})
    until(
        lambda: (
            admin.describe_client_quotas()[batch] == {"producer_byte_rate": 1.0, "request_percentage": 7.0}
        )
    )
    admin.alter_client_quotas(
        {entity: dict.fromkeys(own) for entity, own in admin.describe_client_quotas().items()}
    )
    until(lambda: not admin.describe_client_quotas())
    assert "byte_rate" not in described("--entity-type", "users", "--entity-name", USER)


def test_a_quota_that_the_broker_refuses_is_told_by_its_entity(admin: Admin) -> None:
    with pytest.raises(
        ItemsFailed, match=r"user alice: INVALID_REQUEST .*Invalid configuration key no_such_rate"
    ) as caught:
        admin.alter_client_quotas(
            {ALICE: {"no_such_rate": 1}, ClientQuotaEntity({"user": "x"}): {"consumer_byte_rate": 1.5}}
        )
    assert len(caught.value.errors) == 2
