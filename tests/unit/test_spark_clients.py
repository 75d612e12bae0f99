"""The clients of Spark's tasks: what a job sets goes over what tasks are given, and only a worker
of Spark's is set up as one."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping
from typing import Any
from unittest.mock import MagicMock

import pytest

from fairlead_kafka.spark import clients


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Mapping[str, str]]]:
    """The settings of each client that is made; no client is, and what stands in for one was
    connected."""
    settings: list[Mapping[str, str]] = []

    def client(given: Mapping[str, str]) -> Any:
        settings.append(given)
        return MagicMock()

    monkeypatch.setattr(clients, "Consumer", client)
    monkeypatch.setattr(clients, "Producer", client)
    gc.unfreeze()
    monkeypatch.setattr(clients, "keep_freed_memory", lambda: True)
    yield settings
    gc.unfreeze()


def test_what_a_job_sets_goes_over_what_tasks_are_given(made: list[Mapping[str, str]]) -> None:
    with clients.task_consumer({"fetch.max.bytes": "1"}):
        pass
    with clients.task_producer({"linger.ms": "7"}):
        pass
    assert made == [
        {**clients.READ_SETTINGS, "fetch.max.bytes": "1"},
        {**clients.WRITE_SETTINGS, "linger.ms": "7"},
    ]


def test_outside_a_worker_the_collector_is_left_alone(made: list[Mapping[str, str]]) -> None:
    before = gc.get_freeze_count()
    with clients.task_consumer({}):
        pass
    assert gc.get_freeze_count() == before


def test_in_a_worker_what_is_loaded_is_put_out_of_the_collectors_sight_once(
    made: list[Mapping[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients.TaskContext, "get", lambda: object())
    with clients.task_consumer({}):
        pass
    frozen = gc.get_freeze_count()
    kept: list[Any] = [[number] for number in range(1000)]
    with clients.task_producer({}):
        pass
    assert frozen > 1000
    assert gc.get_freeze_count() <= frozen, f"{len(kept)} new objects must not be frozen"
