"""Plans of reassignments: the replicas that partitions are to have, in the file format of Kafka's
own tool.

    {"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [1, 2, 3]}]}
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from fairlead_kafka.base.errors import ConfigError, UsageError
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.base.json_types import integer_at, integer_list_at, json_object, objects_at, text_at

Plan = Mapping[TopicPartition, tuple[int, ...]]
"""Replicas by partition, the preferred leader first."""
VERSION = 1


def read_plan(path: Path) -> dict[TopicPartition, tuple[int, ...]]:
    """The plan in a file: {partition: node ids of its replicas}. ConfigError says what is wrong in
    it."""
    try:
        found = json_object(path.read_text(encoding="utf-8"))
        if found.get("version", VERSION) != VERSION:
            raise ValueError(f"version {found['version']} is not known, only {VERSION}")
        plan: dict[TopicPartition, tuple[int, ...]] = {}
        for row in objects_at(found, "partitions"):
            of = TopicPartition(text_at(row, "topic"), integer_at(row, "partition"))
            replicas = tuple(integer_list_at(row, "replicas"))
            if of in plan:
                raise ValueError(f"{of} is there twice")
            if not replicas or len(set(replicas)) != len(replicas):
                raise ValueError(f"{of} must have replicas, each on another broker, not {list(replicas)}")
            if any(each != "any" for each in _texts(row.get("log_dirs", ()))):
                raise ValueError(f'{of} names log_dirs; only "any" can be asked for')
            plan[of] = replicas
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    except KeyError as error:
        raise ConfigError(f"{path}: no plan: {error} is missing") from None
    except ValueError as error:
        raise ConfigError(f"{path}: no plan: {error}") from None
    if not plan:
        raise ConfigError(f"{path}: no plan: it has no partitions")
    return plan


def _texts(value: object) -> Sequence[object]:
    return value if isinstance(value, (list, tuple)) else (value,)


def plan_text(plan: Plan) -> str:
    """A plan as a text: JSON in one line, as Kafka's tool takes it."""
    rows = [
        {"topic": of.topic, "partition": of.partition, "replicas": list(replicas)}
        for of, replicas in sorted(plan.items())
    ]
    return json.dumps({"version": VERSION, "partitions": rows})


def spread(current: Plan, racks: Mapping[int, str | None]) -> dict[TopicPartition, tuple[int, ...]]:
    """Replicas for the partitions of `current` on the brokers of `racks`, as many of each as
    before.

    Leaders and replicas are spread evenly, partition after partition in order. A broker that has
    none of a partition's racks comes first, where all brokers name theirs (KIP-36). Where two are
    as good, a replica stays where it is, and else the lower id is taken, so the same brokers give
    the same plan. UsageError if there are too few brokers.
    """
    by_rack = all(rack is not None for rack in racks.values())
    leads, has = dict.fromkeys(racks, 0), dict.fromkeys(racks, 0)
    plan: dict[TopicPartition, tuple[int, ...]] = {}
    for of, before in sorted(current.items()):
        if len(before) > len(racks):
            raise UsageError(f"{of} has {len(before)} replicas, and there are {len(racks)} brokers for them")
        chosen: list[int] = []
        for place in range(len(before)):
            count = leads if place == 0 else has
            used = {racks[node_id] for node_id in chosen} if by_rack else set()
            best = min(
                (node_id for node_id in racks if node_id not in chosen),
                key=lambda node_id: (
                    by_rack and racks[node_id] in used,
                    count[node_id],
                    has[node_id],
                    node_id not in before,
                    node_id,
                ),
            )
            chosen.append(best)
            has[best] += 1
        leads[chosen[0]] += 1
        plan[of] = tuple(chosen)
    return plan


def moved(current: Plan, plan: Plan) -> dict[TopicPartition, tuple[int, ...]]:
    """The part of a plan that differs from `current`."""
    return {of: replicas for of, replicas in plan.items() if current.get(of) != replicas}


def shown(before: Sequence[int], after: Sequence[int]) -> str:
    """A change of replicas as text, such as `1, 2 → 2, 3`."""
    return f"{', '.join(map(str, before))} → {', '.join(map(str, after))}"
