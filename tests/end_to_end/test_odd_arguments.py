"""Whatever passes the door, however odd: the call may fail, and the client goes on working."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import fairlead_kafka
from fairlead_kafka.base import checked
from fairlead_kafka.base.within import Seconds

TOPIC = "events"
T0 = fairlead_kafka.TopicPartition(TOPIC, 0)
CALL_S = 0.02
"""Odd calls get so long: a topic that is not there is waited for until then."""
PATIENCE_S = 60
EXAMPLES = 15
PHASES = [Phase.generate]
"""A client that was ended stays so: there is nothing to shrink."""
TEXTS = [
    "other",
    "",
    "\0",
    "a\0b",
    ".",
    "..",
    "a/b",
    "ü",
    "\ud800",
    "x" * 300,
    "x" * 40_000,
    "__consumer_offsets",
    "9" * 30,
]
NUMBERS = [
    0,
    1,
    -1,
    -2,
    -3,
    7,
    4096,
    2**31 - 1,
    2**31,
    -(2**31),
    2**63 - 1,
    2**63,
    -(2**63),
    2**80,
    np.int64(0),
]
UNTESTED = {"close", "connect"}


def values(kind: Any) -> st.SearchStrategy[Any]:
    """Odd values of a type that the door lets through, or nearly."""
    origin, inner = get_origin(kind), get_args(kind)
    if kind is Seconds:
        return st.sampled_from([0, CALL_S, 1e-9])
    if origin is Annotated:
        return st.sampled_from([each for each in NUMBERS if inner[1].least <= each <= inner[1].most])
    if origin in (Union, UnionType):
        return st.one_of(*map(values, inner))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return st.dictionaries(*map(values, inner), max_size=2)
    if isinstance(origin, type) and issubclass(origin, Iterable):
        return st.lists(values(inner[0]), max_size=2)
    if origin is re.Pattern:
        return st.sampled_from([re.compile(each) for each in ("", ".*", "(?!)", "\0")])
    if isinstance(kind, type) and issubclass(kind, Enum):
        return st.sampled_from(list(kind))
    if hasattr(kind, "_fields") or hasattr(kind, "__dataclass_fields__"):
        return st.builds(kind, *map(values, checked._kinds_of_fields(kind).values()))
    plain: dict[Any, st.SearchStrategy[Any]] = {
        str: st.sampled_from(TEXTS),
        int: st.sampled_from(NUMBERS),
        float: st.sampled_from([0.0, -1.5, 1e300]),
        bool: st.booleans(),
        NoneType: st.none(),
        bytes: st.sampled_from([b"", b"salt"]),
        fairlead_kafka.Secret: st.sampled_from([fairlead_kafka.Secret(each) for each in TEXTS]),
        fairlead_kafka.RebalanceListener: st.builds(fairlead_kafka.RebalanceListener),
    }
    return plain[kind]


def arguments(api: type, name: str) -> st.SearchStrategy[dict[str, Any]]:
    method = inspect.unwrap(getattr(api, name))
    kinds = {each: checked._resolved(method, each) for each in list(inspect.signature(method).parameters)[1:]}
    return st.fixed_dictionaries(
        {
            each: st.sampled_from([0, CALL_S, 1e-9]) if each == "timeout_s" else values(kind)
            for each, kind in kinds.items()
        }
    )


def methods(api: type) -> list[str]:
    return [
        name
        for name, method in vars(api).items()
        if inspect.isfunction(method) and name[0] != "_" and name not in UNTESTED
    ]


def attempt(call: Callable[..., Any], **given: Any) -> None:
    """Nothing but our own errors comes out; what gives tables is read."""
    with suppress(fairlead_kafka.FairleadError):
        made = call(**given)
        if inspect.isgenerator(made):
            for _ in range(3):
                next(made, None)


@pytest.fixture(scope="module")
def cluster() -> Iterator[fairlead_kafka.Cluster]:
    with fairlead_kafka.Cluster(brokers=1, config={"auto.create.topics.enable": False}) as cluster:
        cluster.create_topic(TOPIC, partitions=2)
        cluster.create_topic("other")  # some calls are about it, and one deletes it
        with fairlead_kafka.Producer({"bootstrap.servers": cluster.bootstrap_servers}) as producer:
            producer.send(TOPIC, b"there", partition=0).result(PATIENCE_S)
        yield cluster


@pytest.fixture(scope="module")
def admin(cluster: fairlead_kafka.Cluster) -> Iterator[fairlead_kafka.Admin]:
    with fairlead_kafka.Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin:
        yield admin


@pytest.fixture(scope="module")
def consumer(cluster: fairlead_kafka.Cluster) -> Iterator[fairlead_kafka.Consumer]:
    config = {
        "bootstrap.servers": cluster.bootstrap_servers,
        "group.id": "g",
        "enable.auto.commit": False,
        "fetch.max.wait.ms": 5,
    }
    with fairlead_kafka.Consumer(config) as consumer:
        yield consumer


@pytest.fixture(scope="module")
def producer(cluster: fairlead_kafka.Cluster) -> Iterator[fairlead_kafka.Producer]:
    with fairlead_kafka.Producer(
        {"bootstrap.servers": cluster.bootstrap_servers, "max.block.ms": 20}
    ) as producer:
        producer.partitions_for(TOPIC, PATIENCE_S)  # what follows finds its metadata there
        yield producer


@pytest.fixture(scope="module")
def transactional(cluster: fairlead_kafka.Cluster) -> Iterator[fairlead_kafka.Producer]:
    with fairlead_kafka.Producer(
        {"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": "t", "max.block.ms": 100}
    ) as producer:
        producer.init_transactions(PATIENCE_S)
        producer.partitions_for(TOPIC, PATIENCE_S)
        yield producer


@pytest.mark.filterwarnings(
    "ignore:Generating overly large repr"
)  # of long texts, where one of two types is drawn
@pytest.mark.parametrize("name", methods(fairlead_kafka.Admin))
def test_an_admin_client_goes_on(admin: fairlead_kafka.Admin, name: str) -> None:
    @settings(max_examples=EXAMPLES, phases=PHASES)
    @given(arguments(fairlead_kafka.Admin, name))
    def goes_on(given: dict[str, Any]) -> None:
        attempt(getattr(admin, name), **given)
        admin.describe_cluster(PATIENCE_S)

    goes_on()


@pytest.mark.parametrize("name", methods(fairlead_kafka.Consumer))
def test_a_consumer_goes_on(consumer: fairlead_kafka.Consumer, name: str) -> None:
    @settings(max_examples=EXAMPLES, phases=PHASES)
    @given(arguments(fairlead_kafka.Consumer, name), st.booleans())
    def goes_on(given: dict[str, Any], assigned: bool) -> None:
        consumer.assign([T0] if assigned else [])
        attempt(getattr(consumer, name), **given)
        attempt(consumer.poll, timeout_s=CALL_S)
        attempt(consumer.commit, timeout_s=CALL_S)
        consumer.unsubscribe()
        consumer.assign([T0])
        consumer.resume([T0])
        consumer.seek_to_beginning()
        assert consumer.position(T0, PATIENCE_S) == 0

    goes_on()


@pytest.mark.parametrize("name", [each for each in methods(fairlead_kafka.Producer) if each != "send_table"])
def test_a_producer_goes_on(producer: fairlead_kafka.Producer, name: str) -> None:
    sends = st.fixed_dictionaries(
        {
            "topic": st.sampled_from(TEXTS),
            "value": st.sampled_from([None, b"", b"x" * 2_000_000]),
            "key": st.sampled_from([None, b"", b"\0"]),
            "headers": st.sampled_from([None, [], [("", None)], {"\ud800": b""}, [("h" * 40_000, b"")]]),
            "partition": st.sampled_from([None, *NUMBERS]),
            "timestamp_ms": st.sampled_from([None, *NUMBERS]),
        }
    )

    @settings(max_examples=EXAMPLES * (10 if name == "send" else 1), phases=PHASES)
    @given(sends if name == "send" else arguments(fairlead_kafka.Producer, name))
    def goes_on(given: dict[str, Any]) -> None:
        attempt(getattr(producer, name), **given)
        producer.send(TOPIC, b"", partition=1).result(PATIENCE_S)

    goes_on()


@pytest.mark.parametrize("name", ["send_offsets_to_transaction", "commit_transaction", "abort_transaction"])
def test_a_transactional_producer_goes_on(transactional: fairlead_kafka.Producer, name: str) -> None:
    @settings(max_examples=EXAMPLES, phases=PHASES)
    @given(arguments(fairlead_kafka.Producer, name))
    def goes_on(given: dict[str, Any]) -> None:
        attempt(transactional.begin_transaction)
        attempt(getattr(transactional, name), **given)
        if name == "commit_transaction":  # which may not have been waited for
            attempt(transactional.commit_transaction, timeout_s=PATIENCE_S)
        attempt(transactional.abort_transaction, timeout_s=PATIENCE_S)
        transactional.begin_transaction()
        sent = transactional.send(TOPIC, b"", partition=1)
        transactional.commit_transaction(PATIENCE_S)
        sent.result(PATIENCE_S)

    goes_on()
