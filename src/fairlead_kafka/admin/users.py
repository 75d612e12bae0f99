"""SCRAM users: describe, set and delete their passwords. Source: KIP-554."""

from __future__ import annotations

from collections.abc import Sequence

from fairlead_kafka.admin.scripts import (
    AdminScript,
    Outcome,
    Refused,
    about_one,
    explained,
    outcome_of,
    per_item,
)
from fairlead_kafka.admin.user_items import (
    SaltedPassword,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
)
from fairlead_kafka.base.errors import BrokerError, ItemsFailed
from fairlead_kafka.core.network import CONTROLLER
from fairlead_kafka.core.script import Ask
from fairlead_kafka.wire import ApiKey
from fairlead_kafka.wire.messages import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)

Alteration = SaltedPassword | UserScramCredentialDeletion


def describe_user_scram_credentials(
    users: Sequence[str],
) -> AdminScript[dict[str, list[ScramCredentialInfo]]]:
    """Describe SCRAM passwords: {user: mechanism and iterations of each}, by name.

    `users` empty: of all. ItemsFailed names those that have none.
    """
    names = [DescribeUserScramCredentialsRequest.UserName(name=name) for name in users]
    ask = Ask(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, DescribeUserScramCredentialsRequest(users=names))

    def read_all(
        answer: DescribeUserScramCredentialsResponse,
    ) -> Outcome[dict[str, list[ScramCredentialInfo]]]:
        found = {row.user: _infos(row) for row in answer.results}
        return outcome_of(
            answer.error_code,
            explained(answer.error_code, answer.error_message, "Describe"),
            dict(sorted(found.items())),
        )

    def read(
        answer: DescribeUserScramCredentialsResponse,
    ) -> list[tuple[str, Outcome[list[ScramCredentialInfo]]]]:
        whole = read_all(answer)
        if isinstance(whole, Refused):
            return [(user, whole) for user in users]
        return [
            (row.user, outcome_of(row.error_code, row.error_message, _infos(row))) for row in answer.results
        ]

    if not users:
        return about_one("describe_user_scram_credentials", ask, read_all)
    return per_item("describe_user_scram_credentials", dict.fromkeys(users), lambda _: [ask], read)


def alter_user_scram_credentials(alterations: Sequence[Alteration]) -> AdminScript[dict[str, None]]:
    """Set and delete passwords, each user's in order.

    After an alteration that fails, further ones of the same user are not tried. ItemsFailed names
    the users that failed. Brokers take one alteration of a user in a request, and answer by its
    name: further ones have requests of their own.
    """
    waiting: dict[str, list[Alteration]] = {}
    for one in alterations:
        waiting.setdefault(one.user, []).append(one)
    errors: dict[str, BrokerError] = {}
    done: dict[str, None] = {}
    while batch := {user: own.pop(0) for user, own in waiting.items() if own and user not in errors}:
        try:
            done |= yield from per_item("alter_user_scram_credentials", batch, _ask, _read)
        except ItemsFailed as failed:
            errors |= failed.errors
            done |= failed.results
    if errors:
        raise ItemsFailed(
            "alter_user_scram_credentials", errors, {user: None for user in done if user not in errors}
        )
    return done


def _ask(items: dict[str, Alteration]) -> list[Ask[AlterUserScramCredentialsResponse]]:
    deletions = [
        AlterUserScramCredentialsRequest.ScramCredentialDeletion(name=one.user, mechanism=int(one.mechanism))
        for one in items.values()
        if isinstance(one, UserScramCredentialDeletion)
    ]
    upsertions = [
        AlterUserScramCredentialsRequest.ScramCredentialUpsertion(
            name=one.user,
            mechanism=int(one.mechanism),
            iterations=int(one.info.iterations),
            salt=one.salt,
            salted_password=one.salted,
        )
        for one in items.values()
        if isinstance(one, SaltedPassword)
    ]
    message = AlterUserScramCredentialsRequest(deletions=deletions, upsertions=upsertions)
    return [Ask(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, message, CONTROLLER)]


def _read(answer: AlterUserScramCredentialsResponse) -> list[tuple[str, Outcome[None]]]:
    return [
        (row.user, outcome_of(row.error_code, explained(row.error_code, row.error_message, "Alter"), None))
        for row in answer.results
    ]


def _infos(
    row: DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult,
) -> list[ScramCredentialInfo]:
    known = ScramMechanism.__members__.values()
    return sorted(
        ScramCredentialInfo(
            ScramMechanism(one.mechanism) if one.mechanism in known else ScramMechanism.UNKNOWN,
            one.iterations,
        )
        for one in row.credential_infos
    )
