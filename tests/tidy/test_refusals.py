"""What the broker serves and what it refuses is all of Kafka, each API and each version once, and
each refusal has a reason."""

from __future__ import annotations

import importlib
import pkgutil
import re

import pytest

import fairlead_kafka.broker.api
from fairlead_kafka.base.codes import TABLE
from fairlead_kafka.broker.dispatch import REGISTRY
from fairlead_kafka.broker.refusals import KAFKA_VERSIONS, REFUSED_APIS, REFUSED_OPTIONS, REFUSED_VERSIONS
from fairlead_kafka.wire import ApiKey

API_FILES = {
    int(found[1]): module.name
    for module in pkgutil.iter_modules(fairlead_kafka.broker.api.__path__)
    if (found := re.fullmatch(r"k(\d\d)_\w+", module.name))
}


def test_every_api_is_served_or_refused_and_none_is_both() -> None:
    assert set(REGISTRY) | set(REFUSED_APIS) == set(ApiKey)
    assert not set(REGISTRY) & set(REFUSED_APIS)


def test_every_refusal_says_why() -> None:
    assert all(reason for reason in REFUSED_APIS.values())
    assert all(row.reason for row in REFUSED_VERSIONS)
    assert all(row.reason and row.option and row.error_code in TABLE for row in REFUSED_OPTIONS)
    assert all(row.api_key in REGISTRY for row in REFUSED_OPTIONS)


@pytest.mark.parametrize("api_key", sorted(KAFKA_VERSIONS), ids=lambda api_key: api_key.name)
def test_versions_served_and_refused_are_those_of_kafka(api_key: ApiKey) -> None:
    served = list(range(REGISTRY[api_key].low, REGISTRY[api_key].high + 1))
    refused = [
        version
        for row in REFUSED_VERSIONS
        if row.api_key == api_key
        for version in range(row.low, row.high + 1)
    ]
    low, high = KAFKA_VERSIONS[api_key]
    assert sorted(served + refused) == list(range(low, high + 1))


def test_kafkas_versions_are_known_for_every_api_served() -> None:
    assert set(KAFKA_VERSIONS) == set(REGISTRY)


def test_each_api_has_a_file_of_its_number_whose_header_tells_its_versions() -> None:
    assert set(API_FILES) == {int(api_key) for api_key in REGISTRY}
    for number, name in API_FILES.items():
        api_key = ApiKey(number)
        assert name == f"k{number:02d}_{api_key.name.lower()}"
        header = importlib.import_module(f"fairlead_kafka.broker.api.{name}").__doc__ or ""
        api = REGISTRY[api_key]
        span = f"Version {api.low}" if api.low == api.high else f"Versions {api.low}-{api.high}"
        assert re.search(rf"{span}\b", header), f"{name}: the header should say {span!r}"
