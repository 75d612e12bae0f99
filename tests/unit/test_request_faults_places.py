"""Where an error belongs in an answer: derived for every API and version that brokers serve, and
kept here as a table, so that a change of the schemas is seen."""

from __future__ import annotations

from uuid import UUID

import pytest

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.broker.dispatch import REGISTRY
from fairlead_kafka.testing.error_places import Kind, Taken, divide, joined, layout, parts, reader
from fairlead_kafka.wire import (
    ApiKey,
    ApiMessage,
    Message,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from fairlead_kafka.wire.schema import Field, Structure
from fairlead_kafka.wire.schemas import REQUEST, load_schema

ERROR = ErrorCode.UNKNOWN_SERVER_ERROR
NO_PLACE = {(ApiKey.DESCRIBE_LOG_DIRS, 1), (ApiKey.DESCRIBE_LOG_DIRS, 2)}
"""APIs and versions whose answer has no place for an error of the request."""
PLACES: dict[ApiKey, str] = {
    ApiKey.PRODUCE: "responses.partition_responses",
    ApiKey.FETCH: "responses.partitions",
    ApiKey.LIST_OFFSETS: "topics.partitions",
    ApiKey.METADATA: "topics",
    ApiKey.OFFSET_COMMIT: "topics.partitions",
    ApiKey.OFFSET_FETCH: "topics.partitions groups.topics.partitions",
    ApiKey.FIND_COORDINATOR: ". coordinators",
    ApiKey.LEAVE_GROUP: ". members",
    ApiKey.DESCRIBE_GROUPS: "groups",
    ApiKey.CREATE_TOPICS: "topics",
    ApiKey.DELETE_TOPICS: "responses",
    ApiKey.DELETE_RECORDS: "topics.partitions",
    ApiKey.OFFSET_FOR_LEADER_EPOCH: "topics.partitions",
    ApiKey.ADD_PARTITIONS_TO_TXN: "results_by_topic_v3_and_below.results_by_partition "
    "results_by_transaction.topic_results.results_by_partition",
    ApiKey.WRITE_TXN_MARKERS: "markers.topics.partitions",
    ApiKey.TXN_OFFSET_COMMIT: "topics.partitions",
    ApiKey.CREATE_ACLS: "results",
    ApiKey.DELETE_ACLS: "filter_results",
    ApiKey.DESCRIBE_CONFIGS: "results",
    ApiKey.ALTER_CONFIGS: "responses",
    ApiKey.ALTER_REPLICA_LOG_DIRS: "results.partitions",
    ApiKey.CREATE_PARTITIONS: "results",
    ApiKey.DELETE_GROUPS: "results",
    ApiKey.ELECT_LEADERS: "replica_election_results.partition_result",
    ApiKey.INCREMENTAL_ALTER_CONFIGS: "responses",
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: "responses.partitions",
    ApiKey.OFFSET_DELETE: "topics.partitions",
    ApiKey.ALTER_CLIENT_QUOTAS: "entries",
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: "results",
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: "results",
    ApiKey.DESCRIBE_QUORUM: "topics.partitions",
    ApiKey.UPDATE_FEATURES: "results .",
    ApiKey.DESCRIBE_PRODUCERS: "topics.partitions",
    ApiKey.DESCRIBE_TRANSACTIONS: "transaction_states",
    ApiKey.CONSUMER_GROUP_DESCRIBE: "groups",
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: "topics",
    ApiKey.SHARE_GROUP_DESCRIBE: "groups",
    ApiKey.SHARE_FETCH: "responses.partitions",
    ApiKey.SHARE_ACKNOWLEDGE: "responses.partitions",
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: "results.partitions",
    ApiKey.READ_SHARE_GROUP_STATE: "results.partitions",
    ApiKey.WRITE_SHARE_GROUP_STATE: "results.partitions",
    ApiKey.DELETE_SHARE_GROUP_STATE: "results.partitions",
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: "results.partitions",
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: "groups.topics.partitions",
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: "responses.partitions",
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: "responses",
}
"""Where an error is found, over all versions; APIs that are not here have it in the whole
answer."""
SERVED = [(key, version) for key, api in REGISTRY.items() for version in range(api.low, api.high + 1)]


def example(structure: Structure, number: int = 1) -> Message:
    """A message with one element in each array."""
    return Message(**{field.name: example_of(field, number) for field in structure.fields})


def example_of(field: Field, number: int) -> object:
    if field.structure is not None:
        one: object = example(field.structure, number)
    else:
        one = {"string": f"s{number}", "uuid": UUID(int=number), "bool": False, "float64": 1.0}.get(
            field.kind, b"" if field.kind in ("bytes", "records") else number
        )
    return [one] if field.array else one


def asked(key: ApiKey, version: int, message: ApiMessage) -> ApiMessage:
    """The message as a broker decodes it."""
    (frame,) = [b"".join(encode_request(key, version, 1, "c", message))[4:]]
    return decode_request(memoryview(frame)).message


def errors_at(message: object, path: str = ".") -> list[tuple[str, int]]:
    """Error codes that are set, by the arrays that lead to them."""
    if isinstance(message, list):
        return [found for one in message for found in errors_at(one, path)]
    if not isinstance(message, ApiMessage):
        return []
    found = []
    for name, value in message.__dict__.items():
        if name in ("error_code", "partition_error_code") and value:
            found.append((path, value))
        found += errors_at(value, name if path == "." else f"{path}.{name}")
    return found


@pytest.mark.parametrize(("key", "version"), SERVED, ids=lambda each: getattr(each, "name", each))
def test_an_error_is_found_where_a_client_looks(key: ApiKey, version: int) -> None:
    request = asked(key, version, example(load_schema(key, version, REQUEST).body))
    shape = layout(key, version)
    taken = Taken(lambda _names: True, ERROR, "on purpose", whole=False)
    division = divide(shape, request, taken, reader(request, str))
    if (key, version) in NO_PLACE:
        assert division.errors is None
        assert not shape.answers_errors
        return
    assert division.errors is not None
    assert division.rest is None or not errors_at(division.rest)
    frame = b"".join(encode_response(key, version, 1, division.errors))[4:]
    found = errors_at(decode_response(key, version, memoryview(frame)))
    assert {code for _, code in found} == {ERROR}
    assert {path for path, _ in found} <= set(PLACES.get(key, ".").split()), found


def test_every_place_of_the_table_is_one_of_some_version() -> None:
    for key, told in PLACES.items():
        found = set()
        for version in range(REGISTRY[key].low, REGISTRY[key].high + 1):
            request = asked(key, version, example(load_schema(key, version, REQUEST).body))
            taken = Taken(lambda _names: True, ERROR, None, whole=False)
            found |= {
                path
                for path, _ in errors_at(
                    divide(layout(key, version), request, taken, reader(request, str)).errors
                )
            }
        assert found == set(told.split()), key.name


def produce(*partitions: tuple[str, int]) -> ApiMessage:
    topics: dict[str, list[Message]] = {}
    for name, index in partitions:
        topics.setdefault(name, []).append(Message(index=index, records=b""))
    data = [Message(name=name, partition_data=found) for name, found in topics.items()]
    return asked(ApiKey.PRODUCE, 9, Message(acks=-1, topic_data=data))


def test_what_is_not_taken_is_left_to_be_served_and_the_answers_are_one() -> None:
    request = produce(("a", 0), ("a", 1), ("b", 0))
    shape = layout(ApiKey.PRODUCE, 9)
    taken = Taken(lambda names: names == {Kind.TOPIC: "a", Kind.PARTITION: 1}, ERROR, "full", whole=False)
    errors, rest = divide(shape, request, taken, reader(request, str))
    assert rest is not None
    assert errors is not None
    left = [{**names} for names in parts(shape, rest, reader(rest, str))]
    assert left == [{Kind.TOPIC: "a", Kind.PARTITION: 0}, {Kind.TOPIC: "b", Kind.PARTITION: 0}]
    served = Message(
        responses=[
            Message(name=name, partition_responses=[Message(index=0, error_code=0, base_offset=7)])
            for name in ("a", "b")
        ]
    )
    answer = joined(shape, served, errors)
    assert isinstance(answer, Message)
    rows = [
        (topic.name, row.index, row.error_code, row.base_offset)
        for topic in answer.responses
        for row in topic.partition_responses
    ]
    assert rows == [("a", 0, 0, 7), ("a", 1, ERROR, -1), ("b", 0, 0, 7)]
    assert len(served.responses[0].partition_responses) == 1  # what the handler made is not changed


@pytest.mark.parametrize(("key_type", "kind"), [(0, Kind.GROUP), (1, Kind.TRANSACTIONAL_ID)])
@pytest.mark.parametrize("version", [1, 4])
def test_a_coordinator_s_key_is_a_group_or_a_transactional_id(
    version: int, key_type: int, kind: Kind
) -> None:
    fields = {"key": "k"} if version < 4 else {"coordinator_keys": ["k"]}
    request = asked(ApiKey.FIND_COORDINATOR, version, Message(key_type=key_type, **fields))
    found = list(parts(layout(ApiKey.FIND_COORDINATOR, version), request, reader(request, str)))
    assert found == [{kind: "k"}]


def test_a_group_s_error_goes_to_the_group_and_a_partition_s_to_the_partition() -> None:
    topics = [Message(name="t", partition_indexes=[3])]
    request = asked(
        ApiKey.OFFSET_FETCH, 8, Message(groups=[Message(group_id="g", topics=topics)], require_stable=False)
    )
    shape = layout(ApiKey.OFFSET_FETCH, 8)
    whole = divide(
        shape, request, Taken(lambda _: True, ERROR, None, whole=True), reader(request, str)
    ).errors
    assert errors_at(whole) == [("groups", ERROR)]
    one = divide(shape, request, Taken(lambda _: True, ERROR, None, whole=False), reader(request, str)).errors
    assert errors_at(one) == [("groups.topics.partitions", ERROR)]


def test_topics_are_known_by_their_ids() -> None:
    request = asked(
        ApiKey.FETCH,
        13,
        Message(topics=[Message(topic_id=UUID(int=5), partitions=[Message(partition=2)])]),
    )
    names = {UUID(int=5): "orders"}
    found = list(parts(layout(ApiKey.FETCH, 13), request, reader(request, names.get)))
    assert found == [{Kind.TOPIC: "orders", Kind.PARTITION: 2}]
