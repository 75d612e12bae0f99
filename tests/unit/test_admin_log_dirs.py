"""The script of `describe_log_dirs`, answered by hand: what it asks whom, and what it makes of
trouble."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

from fairlead_kafka.admin import LogDirDescription, ReplicaLog, describe_log_dirs
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError, ConnectionFailed
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.core.script import Pause
from fairlead_kafka.wire import ApiKey, Message

OF = TopicPartition("t", 1)


def answer(size_bytes: int, code: int = 0, directory_code: int = 0, **sizes: int) -> Message:
    partition = Message(partition_index=1, partition_size=size_bytes, offset_lag=0, is_future_key=False)
    told = {"total_bytes": -1, "usable_bytes": -1, **sizes}
    row = Message(
        error_code=directory_code, log_dir="/d", topics=[Message(name="t", partitions=[partition])], **told
    )
    return Message(throttle_time_ms=0, error_code=code, results=[] if code else [row])


def ended(script: Generator[Any, Any, Any], answers: list[Any]) -> Any:
    with pytest.raises(StopIteration) as caught:
        script.send(answers)
    return caught.value.value


def test_brokers_named_are_asked_together_and_about_those_partitions() -> None:
    script = describe_log_dirs([2, 1], [OF, TopicPartition("t", 2)])
    asks = script.send(None)
    assert [(ask.api_key, ask.node_id) for ask in asks] == [
        (ApiKey.DESCRIBE_LOG_DIRS, 1),
        (ApiKey.DESCRIBE_LOG_DIRS, 2),
    ]
    assert [(topic.topic, topic.partitions) for topic in asks[0].message.topics] == [("t", [1, 2])]
    found = ended(script, [answer(5, total_bytes=100, usable_bytes=-1), answer(7)])
    assert found == {
        1: {"/d": LogDirDescription({OF: ReplicaLog(5, 0, False)}, None, 100, None)},
        2: {"/d": LogDirDescription({OF: ReplicaLog(7, 0, False)}, None, None, None)},
    }


def test_without_names_all_live_brokers_are_asked_about_everything() -> None:
    script = describe_log_dirs([], None)
    assert script.send(None)[0].api_key == ApiKey.METADATA
    (ask,) = script.send([Message(error_code=0, brokers=[Message(node_id=4)])])
    assert (ask.node_id, ask.message.topics) == (4, None)
    assert list(ended(script, [answer(1)])) == [4]


def test_who_does_not_answer_is_asked_again_and_a_refusal_is_final() -> None:
    script = describe_log_dirs([1, 2], None)
    script.send(None)
    assert isinstance(script.send([answer(1), ConnectionFailed("gone")]), Pause)
    (again,) = script.send(None)
    assert again.node_id == 2
    assert isinstance(script.send([answer(0, ErrorCode.COORDINATOR_NOT_AVAILABLE)]), Pause)
    script.send(None)
    with pytest.raises(BrokerError, match="log directories of broker 2"):
        script.send([answer(0, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)])


def test_a_directory_that_is_offline_is_told_beside_the_others() -> None:
    script = describe_log_dirs([1], None)
    script.send(None)
    (directory,) = ended(script, [answer(1, directory_code=ErrorCode.KAFKA_STORAGE_ERROR)])[1].values()
    assert isinstance(directory.error, BrokerError)
    assert directory.error.code == ErrorCode.KAFKA_STORAGE_ERROR
