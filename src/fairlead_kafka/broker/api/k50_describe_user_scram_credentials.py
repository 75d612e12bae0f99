"""DescribeUserScramCredentials (50): which users have passwords for SCRAM, and how often these were
hashed (KIP-554).

Version 0. No user named: all of them. Salts and keys are not answered. Needs DESCRIBE on the
cluster (CLUSTER_AUTHORIZATION_FAILED).
"""

from __future__ import annotations

from fairlead_kafka.base.acls import AclOperation
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import cut_short
from fairlead_kafka.broker.api.common import reason, repeated
from fairlead_kafka.broker.api.rights import cluster_refusal
from fairlead_kafka.broker.controller.credentials import SCRAM_MECHANISMS
from fairlead_kafka.broker.dispatch import serves
from fairlead_kafka.broker.requester import Reply, Requester
from fairlead_kafka.broker.services import Services
from fairlead_kafka.wire import ApiKey, Request
from fairlead_kafka.wire.messages import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)

_Result = DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult
_Info = DescribeUserScramCredentialsResponse.CredentialInfo

_NUMBERS = {name: number for number, name in SCRAM_MECHANISMS.items()}


@serves(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, versions=(0, 0))
def describe_user_scram_credentials(
    broker: Services, request: Request[DescribeUserScramCredentialsRequest], session: Requester, reply: Reply
) -> None:
    """Serve DescribeUserScramCredentials: answer with mechanism and iterations of each user's
    credentials."""
    refused = cluster_refusal(session, AclOperation.DESCRIBE)
    if refused is not None:
        nobody = _Result(
            user="", error_code=refused.code, error_message=reason(refused), credential_infos=[]
        )  # as Kafka's request has it
        reply(
            DescribeUserScramCredentialsResponse(
                throttle_time_ms=0, error_code=refused.code, error_message=reason(refused), results=[nobody]
            )
        )
        return
    kept = broker.controller.image.scram_credentials
    by_user: dict[str, list[_Info]] = {}
    for (mechanism, user), credential in sorted(
        kept.items(), key=lambda item: (item[0][1], _NUMBERS[item[0][0]])
    ):
        info = _Info(mechanism=_NUMBERS[mechanism], iterations=credential.iterations)
        by_user.setdefault(user, []).append(info)
    named = [one.name for one in request.message.users or ()]
    twice = repeated(named)
    rows = [_row(user, by_user.get(user), user in twice) for user in dict.fromkeys(named or by_user)]
    reply(
        DescribeUserScramCredentialsResponse(
            throttle_time_ms=0, error_code=ErrorCode.NONE, error_message=None, results=rows
        )
    )


def _row(user: str, infos: list[_Info] | None, twice: bool) -> _Result:
    if not twice and infos is not None:
        return _Result(user=user, error_code=ErrorCode.NONE, error_message=None, credential_infos=infos)
    code, text = ErrorCode.RESOURCE_NOT_FOUND, "Attempt to describe a user credential that does not exist"
    if twice:
        code = ErrorCode.DUPLICATE_RESOURCE
        text = "Cannot describe SCRAM credentials for the same user twice in a single request"
    return _Result(
        user=user, error_code=code, error_message=cut_short(f"{text}: {user}"), credential_infos=[]
    )
