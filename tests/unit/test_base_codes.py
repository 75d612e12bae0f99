"""The table of error codes and the exceptions made from it."""

from __future__ import annotations

import pytest

from fairlead_kafka.base import codes, errors
from fairlead_kafka.base.codes import ErrorCode, Policy


def test_names_and_rows_agree() -> None:
    named = {name: code for name, code in vars(ErrorCode).items() if name.isupper()}
    assert {row.name: row.code for row in codes.TABLE.values()} == named


@pytest.mark.parametrize(
    ("code", "policy"),
    [
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, Policy.RETRY | Policy.REFRESH),
        (ErrorCode.NOT_COORDINATOR, Policy.RETRY | Policy.REFIND),
        (ErrorCode.MESSAGE_TOO_LARGE, Policy.NOTHING),
        (ErrorCode.PRODUCER_FENCED, Policy.FATAL),
        (ErrorCode.NOT_ENOUGH_REPLICAS, Policy.RETRY),
    ],
)
def test_policies_are_kafkas(code: int, policy: Policy) -> None:
    assert codes.policy(code).policy == policy


def test_an_unknown_code_is_not_retried() -> None:
    assert not codes.policy(9_999).retriable
    assert "9999" in codes.policy(9_999).name


def test_a_broker_error_says_code_name_and_context() -> None:
    error = errors.BrokerError(ErrorCode.TOPIC_ALREADY_EXISTS, "topic access")
    assert str(error) == "TOPIC_ALREADY_EXISTS (36): topic access"
    assert not error.retriable
    assert errors.BrokerError(ErrorCode.REQUEST_TIMED_OUT).retriable


def test_a_decode_error_names_the_offset() -> None:
    assert str(errors.DecodeError("length runs past the end", 17)) == "length runs past the end (at byte 17)"


def test_time_outs_and_connection_failures_are_the_builtin_kinds_too() -> None:
    assert issubclass(errors.BufferExhausted, TimeoutError)
    assert issubclass(errors.ConnectionFailed, ConnectionError)
    assert issubclass(errors.ConfigError, ValueError)
