"""AlterUserScramCredentials (51): passwords for SCRAM are set, changed and deleted (KIP-554).

Version 0. The client sends the salted password; what is kept of it can tell whether a client knows
the password, and cannot log in. Of one user all changes are made or none. Needs ALTER on the
cluster (CLUSTER_AUTHORIZATION_FAILED for every user).
"""

from __future__ import annotations

from fairlead_kafka.base.acls import AclOperation
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.broker.api.common import one_each, reason
from fairlead_kafka.broker.api.rights import cluster_refusal
from fairlead_kafka.broker.controller import AlterScramCredentials, ScramAlteration, ScramCredential
from fairlead_kafka.broker.controller.credentials import SCRAM_MECHANISMS, credential_of
from fairlead_kafka.broker.dispatch import serves
from fairlead_kafka.broker.requester import Reply, Requester
from fairlead_kafka.broker.services import Services
from fairlead_kafka.wire import ApiKey, Request
from fairlead_kafka.wire.messages import AlterUserScramCredentialsRequest, AlterUserScramCredentialsResponse

_Row = AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult


@serves(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, versions=(0, 0))
def alter_user_scram_credentials(
    broker: Services, request: Request[AlterUserScramCredentialsRequest], session: Requester, reply: Reply
) -> None:
    """Serve AlterUserScramCredentials: set and delete SCRAM credentials of users."""
    message = request.message
    alterations = [ScramAlteration(one.name, one.mechanism, None) for one in message.deletions]
    alterations += [ScramAlteration(one.name, one.mechanism, _credential(one)) for one in message.upsertions]

    def decided(results: list[BrokerError | None] | None, error: BrokerError | None) -> None:
        by_user: dict[str, BrokerError | None] = {}
        for each, result in zip(alterations, one_each(results, error, len(alterations)), strict=True):
            by_user[each.user] = by_user.get(each.user) or result
        reply(
            AlterUserScramCredentialsResponse(
                throttle_time_ms=0, results=[_row(user, one) for user, one in by_user.items()]
            )
        )

    refused = cluster_refusal(session, AclOperation.ALTER)
    if refused is not None:
        decided(None, refused)
    elif alterations:
        broker.controller.decide(AlterScramCredentials(alterations), decided)
    else:
        reply(AlterUserScramCredentialsResponse(throttle_time_ms=0, results=[]))


def _credential(one: AlterUserScramCredentialsRequest.ScramCredentialUpsertion) -> ScramCredential:
    mechanism = SCRAM_MECHANISMS.get(
        one.mechanism, SCRAM_MECHANISMS[1]
    )  # an unknown one is refused by the controller, by its number
    return credential_of(mechanism, bytes(one.salted_password), bytes(one.salt), one.iterations)


def _row(user: str, error: BrokerError | None) -> _Row:
    if error is None:
        return _Row(user=user, error_code=ErrorCode.NONE, error_message=None)
    return _Row(user=user, error_code=error.code, error_message=reason(error))
