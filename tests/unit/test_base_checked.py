"""Types are checked at the door: every public method says what it takes, and how to write it."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple
from unittest.mock import AsyncMock, Mock, create_autospec

import numpy as np
import pytest

import fairlead_kafka
from fairlead_kafka import NewTopic, UsageError
from fairlead_kafka.base.checked import SHOWN_MAX_LENGTH, checked
from fairlead_kafka.base.within import Int32, Offset, Seconds
from fairlead_kafka.client.handles import AsyncTableAck, TableAck

APIS = [
    fairlead_kafka.Producer,
    fairlead_kafka.AsyncProducer,
    fairlead_kafka.Consumer,
    fairlead_kafka.AsyncConsumer,
    fairlead_kafka.Admin,
    fairlead_kafka.AsyncAdmin,
    fairlead_kafka.Cluster,
    TableAck,
    AsyncTableAck,
]
OWN_CHECKS = {"send", "send_table"}
"""They tell of records, and are called for each."""


class Nothing:
    """Of no type that any parameter has."""


def parameters() -> list[tuple[type, str, str]]:
    found = []
    for api in APIS:
        for name, method in vars(api).items():
            if (
                inspect.isfunction(method)
                and (name == "__init__" or not name.startswith("_"))
                and name not in OWN_CHECKS
            ):
                annotated = inspect.signature(method).parameters
                found += [
                    (api, name, each) for each in list(annotated)[1:] if annotated[each].annotation != "Any"
                ]
    return found


@pytest.mark.parametrize(
    ("api", "method", "parameter"), parameters(), ids=lambda part: getattr(part, "__name__", part)
)
def test_every_parameter_of_every_public_method_says_what_it_takes(
    api: type, method: str, parameter: str
) -> None:
    called = api.__name__ if method == "__init__" else method
    with pytest.raises(
        UsageError, match=rf"^{called}: {parameter} must be .*, not (<tests.unit.test_base_checked.)?Nothing"
    ):
        run(getattr(api, method)(None, **{parameter: Nothing()}))


def run(made: object) -> None:
    """Whatever a call gives: an awaitable is awaited, an asynchronous generator begun."""
    if inspect.iscoroutine(made):
        asyncio.run(made)
    elif inspect.isasyncgen(made):
        asyncio.run(anext(made))  # type: ignore[arg-type]


def test_methods_stay_of_their_kind_so_that_mocks_can_be_awaited() -> None:
    assert inspect.iscoroutinefunction(fairlead_kafka.AsyncConsumer.poll)
    assert inspect.isasyncgenfunction(fairlead_kafka.AsyncConsumer.read_range)
    assert not inspect.iscoroutinefunction(fairlead_kafka.Consumer.poll)
    assert isinstance(
        create_autospec(fairlead_kafka.AsyncConsumer).poll, AsyncMock
    ) or inspect.iscoroutinefunction(create_autospec(fairlead_kafka.AsyncConsumer).poll)


def test_a_listener_may_be_anything_that_has_its_methods() -> None:
    consumer = fairlead_kafka.Consumer({"bootstrap.servers": "127.0.0.1:1", "group.id": "g"})
    consumer.subscribe(["orders"], Mock())
    consumer.close()


@pytest.mark.parametrize(
    ("kind", "write"),
    [("client-metrics", "ResourceType.CLIENT_METRICS"), ("topics", '[ConfigResource.topic("clicks")]')],
)
def test_a_text_for_a_member_of_an_enum_is_told_the_member(kind: str, write: str) -> None:
    said = f"resources[0].type must be ResourceType, not {kind!r}; write {write}"
    with pytest.raises(UsageError) as wrong:
        fairlead_kafka.Admin.describe_configs(None, [(kind, "clicks")])  # type: ignore[arg-type,list-item]
    assert str(wrong.value) == f"describe_configs: {said}"


def test_a_config_is_not_shown() -> None:
    with pytest.raises(UsageError) as wrong:
        Example([("sasl.password", "secret")])  # type: ignore[arg-type]
    assert "secret" not in str(wrong.value)


class Pair(NamedTuple):
    first: str
    second: int


@checked("free")
class Example:
    """Takes one of each kind."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.config = config

    def take(
        self,
        value: int = 0,
        share: float | None = None,
        name: str = "",
        on: bool = False,
        call: Callable[[], int] = int,
    ) -> str:
        """All the plain ones."""
        return f"{value} {share} {name} {on} {call()}"

    def several(
        self, names: Iterable[str] = (), pairs: Sequence[Pair] = (), by_pair: Mapping[Pair, int] | None = None
    ) -> int:
        """All those that hold others."""
        return len(list(names)) + len(pairs) + len(by_pair or {})

    def bounded(
        self,
        offset: Offset = 0,
        small: Int32 = 0,
        timeout_s: Seconds | None = None,
        end: Literal["start", "end"] = "end",
    ) -> str:
        """Numbers with bounds, and one of some texts."""
        return f"{offset} {small} {timeout_s} {end}"

    def topics(self, topics: Iterable[NewTopic], unknown: Missing = None) -> int:  # type: ignore[name-defined]  # noqa: F821
        """One of ours, and one whose type is not there at run time."""
        return len(list(topics))

    def free(self, value: int) -> int:
        """Checks for itself."""
        return value

    def _own(self, value: int) -> int:
        return value


def test_what_fits_is_taken() -> None:
    example = Example({})
    assert example.take(1, 0.5, "a", True, lambda: 7) == "1 0.5 a True 7"
    assert example.take(np.int64(1), np.float32(0.5)) == "1 0.5  False 0"  # type: ignore[arg-type]
    assert example.bounded(np.int64(5), timeout_s=0) == "5 0 0 end"  # type: ignore[arg-type]
    assert example.take(share=1) == "0 1  False 0"
    assert example.several(["a"], [Pair("a", 1)], {Pair("b", 2): 2}) == 3
    assert example.several(each for each in "ab") == 2
    assert example.several({"a": 1}, (("a", 1),)) == 2  # type: ignore[arg-type]
    assert example.topics([NewTopic("a")], unknown=object()) == 1
    assert example.free("x") == "x"  # type: ignore[arg-type, comparison-overlap]
    assert example._own("x") == "x"  # type: ignore[arg-type, comparison-overlap]


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda it: it.take("1"), "take: value must be a whole number, not '1'"),
        (lambda it: it.take(True), "take: value must be a whole number, not True"),
        (lambda it: it.take(1.0), "take: value must be a whole number, not 1.0"),
        (lambda it: it.take(share="1"), "take: share must be a number or None, not '1'"),
        (lambda it: it.take(name=b"a"), "take: name must be a text, not b'a'"),
        (lambda it: it.take(on=1), "take: on must be True or False, not 1"),
        (lambda it: it.take(call=3), "take: call must be Callable, not 3"),
        (lambda it: it.bounded("1"), "bounded: offset must be a whole number, not '1'"),
        (
            lambda it: it.bounded(-1),
            "bounded: offset must be a whole number from 0 to 9223372036854775807, not -1",
        ),
        (
            lambda it: it.bounded(small=2**31),
            "bounded: small must be a whole number of 32 bits, not 2147483648",
        ),
        (
            lambda it: it.bounded(timeout_s=-1),
            "bounded: timeout_s must be a number of 0 or more or None, not -1",
        ),
        (lambda it: it.bounded(end="middle"), "bounded: end must be 'start' or 'end', not 'middle'"),
        (
            lambda it: it.several(pairs=[("a", 1), ("b", "2")]),
            "several: pairs[1].second must be a whole number, not '2'",
        ),
        (lambda it: it.several(pairs=[("a",)]), "several: pairs[0] must be Pair, not ('a',)"),
        (
            lambda it: it.several(by_pair={Pair("a", 1): "1"}),
            "several: by_pair[Pair(first='a', second=1)] must be a whole number, not '1'",
        ),
        (lambda it: it.several("a"), "several: names must be a list of texts, not 'a'; write [\"a\"]"),
        (lambda it: it.several([1]), 'several: names[0] must be a text, not 1; write ["orders"]'),
        (
            lambda it: it.several(by_pair={"a": 1}),
            "several: by_pair: key 'a' must be Pair, not 'a'",
        ),
        (
            lambda it: it.topics(["a"]),
            "topics: topics[0] must be NewTopic, not 'a'; write [NewTopic(\"a\", partitions=3)]",
        ),
        (
            lambda it: Example("localhost:1"),
            "Example: config must be a mapping, not 'localhost:1'; write Example({\"bootstrap.servers\": "
            '"localhost:1"})',
        ),
    ],
)
def test_what_does_not_fit_is_told_with_the_right_call(call: Callable[[Example], object], text: str) -> None:
    with pytest.raises(UsageError) as wrong:
        call(Example({}))
    assert str(wrong.value) == text


def test_a_long_value_is_cut() -> None:
    with pytest.raises(UsageError) as wrong:
        Example({}).take(name=["x" * 1000])  # type: ignore[arg-type]
    assert len(str(wrong.value)) < SHOWN_MAX_LENGTH + 50


def test_what_is_missing_is_told_by_python_itself() -> None:
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'topics'"):
        Example({}).topics()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unexpected keyword argument 'nmae'"):
        Example({}).take(nmae="a")  # type: ignore[call-arg]


def test_signatures_and_docstrings_stay() -> None:
    assert str(inspect.signature(Example.free)) == "(self, value: 'int') -> 'int'"
    assert list(inspect.signature(fairlead_kafka.Consumer.poll).parameters) == [
        "self",
        "timeout_s",
        "max_records",
    ]
    assert fairlead_kafka.Consumer.poll.__doc__
