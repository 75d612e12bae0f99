"""SCRAM users: describe, set and take back their passwords. Source: KIP-554."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fairlead_kafka.admin.scripts import AdminScript, Settled, about_one, explained, per_item
from fairlead_kafka.admin.user_items import SaltedPassword, ScramCredentialInfo, ScramMechanism, UserScramCredentialDeletion
from fairlead_kafka.base.errors import BrokerError, ItemsFailed
from fairlead_kafka.core.network import CONTROLLER
from fairlead_kafka.core.script import Ask
from fairlead_kafka.wire import ApiKey, Message

Alteration = SaltedPassword | UserScramCredentialDeletion


def describe_user_scram_credentials(users: Sequence[str]) -> AdminScript[dict[str, list[ScramCredentialInfo]]]:
    """{user: its credentials} by name; none named: of all. ItemsFailed names those that have none."""
    ask = Ask(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, Message(users=[Message(name=name) for name in users]))

    def read_all(answer: Message) -> Settled:
        found = {row.user: _infos(row) for row in answer.results}
        return Settled(answer.error_code, explained(answer.error_code, answer.error_message, "Describe"), dict(sorted(found.items())))

    def read(answer: Message) -> list[tuple[str, Settled]]:
        whole = read_all(answer)
        if whole.code:
            return [(user, whole) for user in users]
        return [(row.user, Settled(row.error_code, row.error_message, _infos(row))) for row in answer.results]

    if not users:
        return about_one("describe_user_scram_credentials", ask, read_all)
    return per_item("describe_user_scram_credentials", dict.fromkeys(users), lambda _: [ask], read)


def alter_user_scram_credentials(alterations: Sequence[Alteration]) -> AdminScript[dict[str, None]]:
    """Set and take back passwords, each user's in order; a user whose first alteration fails is given no second one.

    Brokers take one alteration of a user in a request, and answer by its name: further ones have requests of their own.
    """
    waiting: dict[str, list[Alteration]] = {}
    for one in alterations:
        waiting.setdefault(one.user, []).append(one)
    errors: dict[str, BrokerError] = {}
    done: dict[str, None] = {}
    while turn := {user: own.pop(0) for user, own in waiting.items() if own and user not in errors}:
        try:
            done |= yield from per_item("alter_user_scram_credentials", turn, _ask, _read)
        except ItemsFailed as failed:
            errors |= failed.errors
            done |= failed.results
    if errors:
        raise ItemsFailed("alter_user_scram_credentials", errors, {user: None for user in done if user not in errors})
    return done


def _ask(items: dict[str, Any]) -> list[Ask]:
    deletions = [
        Message(name=one.user, mechanism=int(one.mechanism)) for one in items.values() if isinstance(one, UserScramCredentialDeletion)
    ]
    upsertions = [
        Message(name=one.user, mechanism=int(one.mechanism), iterations=int(one.info.iterations), salt=one.salt, salted_password=one.salted)
        for one in items.values()
        if isinstance(one, SaltedPassword)
    ]
    return [Ask(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, Message(deletions=deletions, upsertions=upsertions), CONTROLLER)]


def _read(answer: Message) -> list[tuple[str, Settled]]:
    return [(row.user, Settled(row.error_code, explained(row.error_code, row.error_message, "Alter"))) for row in answer.results]


def _infos(row: Message) -> list[ScramCredentialInfo]:
    known = ScramMechanism.__members__.values()
    return sorted(
        ScramCredentialInfo(ScramMechanism(one.mechanism) if one.mechanism in known else ScramMechanism.UNKNOWN, one.iterations)
        for one in row.credential_infos
    )
