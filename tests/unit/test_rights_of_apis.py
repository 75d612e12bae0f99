"""Every API asks for the rights that Kafka's asks for, and hides what Kafka's hides: answers as
Apache Kafka 4.3.1 gave them.

The answers in the data file are held against a living Apache Kafka by
`tests/conformance/test_rights_apache_kafka.py`.
"""

from __future__ import annotations

from typing import Any

import pytest

from fairlead_kafka.broker.dispatch import REGISTRY
from fairlead_kafka.wire import ApiKey
from tests.support.rights.recorded import recorded
from tests.support.rights.worlds import CASES, Ours, answers

_NEEDS_NO_RIGHT = {
    ApiKey.SASL_HANDSHAKE,
    ApiKey.SASL_AUTHENTICATE,
    ApiKey.API_VERSIONS,
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,
    ApiKey.PUSH_TELEMETRY,
}


@pytest.fixture(scope="module")
def ours() -> dict[str, Any]:
    return answers(Ours())


@pytest.mark.parametrize("name", [case.name for case in CASES])
def test_the_answer_is_that_of_apache_kafka(ours: dict[str, Any], name: str) -> None:
    assert ours[name] == recorded()[name]


def test_every_case_is_recorded_under_a_name_of_its_own() -> None:
    assert len({case.name for case in CASES}) == len(CASES)
    assert set(recorded()) == {case.name for case in CASES}


def test_there_are_cases_of_every_api_that_needs_rights() -> None:
    assert {case.api_key for case in CASES} | _NEEDS_NO_RIGHT >= set(REGISTRY)
