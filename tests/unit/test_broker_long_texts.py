"""A broker's words fit its answers, however long the names that it was asked about are."""

from __future__ import annotations

from itertools import product, starmap
from typing import Any, NamedTuple
from uuid import UUID

import pytest

from fairlead_kafka.base.config_broker_security import STANDARD_AUTHORIZER
from fairlead_kafka.base.errors import cut_short
from fairlead_kafka.base.limits import ERROR_TEXT_MAX_LENGTH, STRING_MAX_BYTES
from fairlead_kafka.broker.dispatch import REGISTRY
from fairlead_kafka.wire import ApiKey, Message
from fairlead_kafka.wire.schema import Field, Structure
from fairlead_kafka.wire.schemas import REQUEST, load_schema
from tests.support.broker_driver import Driver

LONG = "é" * (STRING_MAX_BYTES // 2)
DIGITS = "9" * STRING_MAX_BYTES
NUMBERS = (1, 2, 4, 9)
"""Types of resources, keys, levels and epochs among them, known and unknown."""
DENIED = {"authorizer.class.name": STANDARD_AUTHORIZER}
"""Nobody has a right to anything."""


class Filling(NamedTuple):
    """What the fields of a request are filled with: `count` the same elements in each list, and
    with `bare` null where it may be."""

    text: str
    number: int
    count: int
    bare: bool


def _value(field: Field, filling: Filling) -> Any:
    if field.nullable and filling.bare:
        return None
    return [_element(field, filling)] * filling.count if field.array else _element(field, filling)


def _element(field: Field, filling: Filling) -> Any:
    if field.structure is not None:
        return _message(field.structure, filling)
    number = filling.number
    others = {"string": filling.text, "bool": False, "uuid": UUID(int=number), "bytes": b"", "records": b""}
    return others.get(field.kind, number)


def _message(structure: Structure, filling: Filling) -> Message:
    return Message(**{field.name: _value(field, filling) for field in structure.fields})


@pytest.mark.parametrize(
    ("config", "texts"), [({}, (LONG, DIGITS)), (DENIED, (LONG,))], ids=["anybody", "denied"]
)
@pytest.mark.parametrize("api_key", REGISTRY, ids=lambda api_key: api_key.name)
def test_the_longest_names_are_answered(
    api_key: ApiKey, config: dict[str, Any], texts: tuple[str, ...]
) -> None:
    driver = Driver(config)
    driver.advance(50)
    api = REGISTRY[api_key]
    fillings = starmap(Filling, product(texts, NUMBERS, (1, 2), (False, True)))
    asked = [(filling, api.high) for filling in fillings]
    # What is said of a name does not depend on the version; how it is asked, and told, does.
    older = starmap(Filling, product(texts, NUMBERS[:1], (2,), (False, True)))
    asked += product(older, range(api.low, api.high))
    for filling, version in asked:
        body = load_schema(api_key, version, REQUEST).body
        driver.connect().send(api_key, version, **_message(body, filling).__dict__)
        driver.advance(1)
        assert driver.broker.guard.errors == 0, (version, filling)


def test_a_text_keeps_its_beginning() -> None:
    assert cut_short("a" * ERROR_TEXT_MAX_LENGTH) == "a" * ERROR_TEXT_MAX_LENGTH
    assert cut_short("ab" + "c" * ERROR_TEXT_MAX_LENGTH) == "ab" + "c" * (ERROR_TEXT_MAX_LENGTH - 6) + " ..."
