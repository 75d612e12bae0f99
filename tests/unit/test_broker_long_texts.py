"""A broker's words fit its answers, however long the names that it was asked about are."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead_kafka.base.limits import ERROR_TEXT_MAX_LENGTH, STRING_MAX_BYTES
from fairlead_kafka.broker.api.common import cut_short
from fairlead_kafka.wire import ApiKey, Message
from tests.support.broker_driver import Driver

LONG = "é" * (STRING_MAX_BYTES // 2)
DIGITS = "9" * STRING_MAX_BYTES
NEW_TOPIC = Message(name=LONG, num_partitions=1, replication_factor=1, assignments=[], configs=[])
CONFIG = Message(name=LONG, config_operation=0, value="1")


@pytest.mark.parametrize(
    ("api_key", "version", "fields"),
    [
        (ApiKey.CREATE_TOPICS, 3, {"topics": [NEW_TOPIC], "timeout_ms": 100, "validate_only": False}),
        (ApiKey.DESCRIBE_PRODUCERS, 0, {"topics": [Message(name=LONG, partition_indexes=[0])]}),
        (ApiKey.DESCRIBE_GROUPS, 6, {"groups": [LONG], "include_authorized_operations": False}),
        (
            ApiKey.CREATE_PARTITIONS,
            1,
            {
                "topics": [Message(name=LONG, count=2, assignments=None)],
                "timeout_ms": 1,
                "validate_only": False,
            },
        ),
        (
            ApiKey.INCREMENTAL_ALTER_CONFIGS,
            1,
            {"resources": [Message(resource_type=4, resource_name="0", configs=[CONFIG])]},
        ),
        (
            ApiKey.INCREMENTAL_ALTER_CONFIGS,
            1,
            {"resources": [Message(resource_type=2, resource_name=LONG, configs=[CONFIG])]},
        ),
        (
            ApiKey.DESCRIBE_CONFIGS,
            4,
            {"resources": [Message(resource_type=2, resource_name=LONG, configuration_keys=None)]},
        ),
        (
            ApiKey.ALTER_CONFIGS,
            2,
            {
                "resources": [Message(resource_type=4, resource_name=DIGITS, configs=[])],
                "validate_only": False,
            },
        ),
        (
            ApiKey.DESCRIBE_CONFIGS,
            4,
            {"resources": [Message(resource_type=4, resource_name=DIGITS, configuration_keys=None)]},
        ),
        (ApiKey.FIND_COORDINATOR, 3, {"key": LONG, "key_type": 9}),
    ],
)
def test_the_longest_names_are_answered(api_key: ApiKey, version: int, fields: dict[str, Any]) -> None:
    driver = Driver()
    driver.advance(50)
    client = driver.connect()
    client.ask(api_key, version, **fields)
    assert not client.closed


def test_a_text_keeps_its_beginning() -> None:
    assert cut_short("a" * ERROR_TEXT_MAX_LENGTH) == "a" * ERROR_TEXT_MAX_LENGTH
    assert cut_short("ab" + "c" * ERROR_TEXT_MAX_LENGTH) == "ab" + "c" * (ERROR_TEXT_MAX_LENGTH - 6) + " ..."
