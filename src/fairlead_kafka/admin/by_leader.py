"""Frame of admin calls that send requests to the leaders of partitions, and send again if a leader
moves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from fairlead_kafka.admin.scripts import AdminScript, Outcome, Refused, retriable
from fairlead_kafka.base.codes import ErrorCode, policy
from fairlead_kafka.base.errors import BrokerError, ItemsFailed, UnsupportedVersion
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.core.connection import R
from fairlead_kafka.core.metadata import Metadata
from fairlead_kafka.core.partition_offsets import by_leader
from fairlead_kafka.core.script import Ask, Pause, ask_all
from fairlead_kafka.wire import ApiKey, RequestMessage

T = TypeVar("T")


def per_leader(
    what: str,
    metadata: Metadata,
    partitions: list[TopicPartition],
    api_key: ApiKey,
    request: Callable[[list[TopicPartition]], RequestMessage[R]],
    read: Callable[[R], Mapping[TopicPartition, Outcome[T]]],
) -> AdminScript[dict[TopicPartition, T]]:
    """A script: ask each partition's leader, by one request for each leader, and ask again as long
    as the errors are retriable.

    `request` makes the request about some partitions, `read` takes an answer apart. Gives
    {partition: result}. ItemsFailed names the partitions that failed, once all are answered;
    UnsupportedVersion if a broker does not have the API.
    """
    results: dict[TopicPartition, T] = {}
    errors: dict[TopicPartition, BrokerError] = {}
    while len(results) + len(errors) < len(partitions):
        left = [one for one in partitions if one not in results and one not in errors]
        groups, problems = by_leader(metadata, left)
        errors |= {of: problem for of, problem in problems.items() if not problem.retriable}
        trouble: Exception | None = None
        asks = [Ask(api_key, request(group), leader) for leader, group in groups.items()]
        answers = (yield from ask_all(asks)) if asks else []
        for group, answer in zip(groups.values(), answers, strict=True):
            if isinstance(answer, UnsupportedVersion):
                raise answer
            rows = {} if isinstance(answer, Exception) else read(answer)
            missing = Refused(ErrorCode.UNKNOWN_SERVER_ERROR, "the answer left it out")
            for partition in group:
                row = rows.get(partition, missing)
                if isinstance(answer, Exception):
                    trouble = answer
                elif isinstance(row, Refused):
                    error = BrokerError(row.code, row.message or policy(row.code).meaning)
                    if retriable(row.code) or row.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                        trouble = error
                    else:
                        errors[partition] = error
                else:
                    results[partition] = row.result
        waiting = [problem for problem in problems.values() if problem.retriable]
        if trouble is not None:
            yield Pause(trouble, refresh=True)
        elif waiting:
            yield Pause(waiting[0], until_metadata=True)
    if errors:
        raise ItemsFailed(what, {of: errors[of] for of in partitions if of in errors}, results)
    return {of: results[of] for of in partitions}
