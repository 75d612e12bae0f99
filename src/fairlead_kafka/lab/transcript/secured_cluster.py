"""The cluster, its configs, ACLs and passwords, requested with rights and without."""

from __future__ import annotations

from collections.abc import Callable

from fairlead_kafka.lab.transcript import feature_steps, quota_steps, resource_steps
from fairlead_kafka.lab.transcript.acl_steps import acl, filtered
from fairlead_kafka.lab.transcript.holders import Holder
from fairlead_kafka.lab.transcript.secured_cases import TRIO, Case, Make, Rows, about
from fairlead_kafka.lab.transcript.steps import FieldValue, Seen, Step, ask
from fairlead_kafka.wire import ApiKey, Message
from fairlead_kafka.wire.messages import (
    AlterUserScramCredentialsRequest,
    DeleteAclsRequest,
    DescribeUserScramCredentialsRequest,
)

_DeleteAclsFilter = DeleteAclsRequest.DeleteAclsFilter
_TOPIC, _BROKER = 2, 4
_SET = 0


def _resources(kind: int = _TOPIC, *names_instead: str, **more: FieldValue) -> Rows:
    def rows(names: list[str], _seen: Seen) -> list[Message]:
        return [Message(resource_type=kind, resource_name=name, **more) for name in names_instead or names]

    return rows


def _describe(name: str, rows: Rows) -> Make:
    return about(name, ApiKey.DESCRIBE_CONFIGS, (1, 4), "resources", rows, TRIO)


def _alter(name: str, rows: Rows, **more: FieldValue) -> Make:
    return about(name, ApiKey.INCREMENTAL_ALTER_CONFIGS, (1,), "resources", rows, TRIO, **more)


def _replace(name: str, rows: Rows, **more: FieldValue) -> Make:
    return about(name, ApiKey.ALTER_CONFIGS, (2,), "resources", rows, TRIO, **more)


_TOPICS_OWN, _BROKERS_OWN = (
    {"name": name, "value": "86400000"} for name in ("retention.ms", "log.retention.ms")
)
_RETENTION, _BROKERS = ([Message(**one, config_operation=_SET)] for one in (_TOPICS_OWN, _BROKERS_OWN))
_RETENTION_ALONE, _BROKERS_ALONE = ([Message(**one)] for one in (_TOPICS_OWN, _BROKERS_OWN))

CONFIGS: list[Case] = [
    Case(
        _describe("topics' configs", _resources(configuration_keys=["retention.ms"])),
        "topic cluster",
        "topic-describe-configs",
    ),
    Case(
        _describe("brokers' configs", _resources(_BROKER, "0", "", configuration_keys=["log.retention.ms"])),
        "topic cluster",
        "cluster-describe-configs",
    ),
    Case(
        _alter("topics' configs changed", _resources(configs=_RETENTION)),
        "topic cluster",
        "topic-alter-configs",
    ),
    Case(
        _alter("topics' configs, validated only", _resources(configs=_RETENTION), validate_only=True),
        "topic",
        "topic-alter-configs",
    ),
    Case(
        _alter(
            "brokers' configs changed", _resources(_BROKER, "0", "", configs=_BROKERS), validate_only=True
        ),
        "topic cluster",
        "cluster-alter-configs",
    ),
    Case(
        _replace("topics' configs replaced", _resources(configs=_RETENTION_ALONE)),
        "topic cluster",
        "topic-alter-configs",
    ),
    Case(
        _replace(
            "brokers' configs replaced", _resources(_BROKER, "0", configs=_BROKERS_ALONE), validate_only=True
        ),
        "topic cluster",
        "cluster-alter-configs",
    ),
]


def _other(holder: Holder) -> str:
    """The principal to which the user gives rights in its requests; it sends none itself."""
    return f"User:friend of {holder.user}"


def _acls_described(holder: Holder) -> Step:
    return ask("ACLs described", ApiKey.DESCRIBE_ACLS, (1, 3), **filtered(principal=f"User:{holder.user}"))


def _acl_made(holder: Holder) -> Step:
    rows = [acl(holder.own(), _other(holder)), acl("", _other(holder))]
    return ask("ACLs made", ApiKey.CREATE_ACLS, (1, 3), creations=rows)


def _acl_deleted(holder: Holder) -> Step:
    # Kafka's controller has made the ACL when it says so; deleting asks the same controller.
    rows = [
        _DeleteAclsFilter(**filtered(principal=_other(holder))),
        _DeleteAclsFilter(**filtered(principal="User:stranger")),
    ]
    return ask("ACLs deleted", ApiKey.DELETE_ACLS, (1, 3), filters=rows)


def _versions(_holder: Holder) -> Step:
    return ask(
        "what is served",
        ApiKey.API_VERSIONS,
        (3,),
        client_software_name="transcript",
        client_software_version="1",
    )


def _cluster(_holder: Holder) -> Step:
    return ask("described", ApiKey.DESCRIBE_CLUSTER, (0, 2), include_cluster_authorized_operations=True)


def _plain_cluster(_holder: Holder) -> Step:
    return ask("described without operations", ApiKey.DESCRIBE_CLUSTER, (1,))


def _passwords(_holder: Holder) -> Step:
    return ask(
        "passwords described",
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
        (0,),
        users=[DescribeUserScramCredentialsRequest.UserName(name="nobody at all")],
    )


def _password_made(holder: Holder) -> Step:
    made = AlterUserScramCredentialsRequest.ScramCredentialUpsertion(
        name=f"guest of {holder.user}", mechanism=2, iterations=4096, salt=b"salt", salted_password=b"x" * 64
    )
    unmade = AlterUserScramCredentialsRequest.ScramCredentialDeletion(name="nobody at all", mechanism=1)
    return ask(
        "passwords altered", ApiKey.ALTER_USER_SCRAM_CREDENTIALS, (0,), deletions=[unmade], upsertions=[made]
    )


def _token(_holder: Holder) -> Step:
    return ask("a token after the log-in", ApiKey.SASL_AUTHENTICATE, (0, 2), auth_bytes=b"")


def _quotas_described(_holder: Holder) -> Step:
    return quota_steps.described("quotas described", ("user", 0, "nobody at all"))


def _quotas_altered(holder: Holder) -> Step:
    return quota_steps.altered(
        "quotas altered", ("request_percentage", 1000.0), entity=(("user", f"guest of {holder.user}"),)
    )


def _levels(_holder: Holder) -> Step:
    return feature_steps.updated(
        "levels altered",
        ("transaction.version", 0, feature_steps.SAFE_DOWNGRADE),
        versions=(1, 2),
        validate_only=True,
    )


def _quorum(_holder: Holder) -> Step:
    return resource_steps.quorum("the quorum", "__cluster_metadata", 0)


def _resources_listed(_holder: Holder) -> Step:
    return resource_steps.listed("resources listed", (16,), (0, 1))


def _moved(_holder: Holder) -> Step:
    return resource_steps.moved("moved to a folder that is not there", "/nowhere", "nobody's", 0)


def _always(step: Step) -> Callable[[Holder], Step]:
    return lambda _holder: step


CLUSTER: list[Case] = [
    Case(_versions, "", ""),
    Case(_cluster, "cluster", "cluster-describe"),
    Case(_plain_cluster, "cluster", "cluster-describe"),
    Case(_acls_described, "cluster", "cluster-describe"),
    Case(_acl_made, "cluster", "cluster-alter"),
    Case(_acl_deleted, "cluster", "cluster-alter"),
    Case(_passwords, "cluster", "cluster-describe"),
    Case(_password_made, "cluster", "cluster-alter"),
    Case(_quotas_described, "cluster", "cluster-describe-configs"),
    Case(_quotas_altered, "cluster", "cluster-alter-configs"),
    Case(_levels, "cluster", "cluster-alter"),
    Case(_quorum, "cluster", "cluster-describe"),
    Case(_resources_listed, "cluster", "cluster-describe-configs"),
    Case(_moved, "cluster", "cluster-alter"),
    *(Case(_always(step), "", "") for step in resource_steps.TOKENS),
    Case(_token, "", ""),
]
