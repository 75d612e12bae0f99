"""`simulate`: runs seeds of a world and its canaries on several processes, and reports."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from typing import TypeVar

from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.base.json_types import JsonObject
from fairlead_kafka.simulation import world_cluster, world_producer, world_readers, world_transactions
from fairlead_kafka.simulation.canaries import canaries_of
from fairlead_kafka.simulation.canary import Canary
from fairlead_kafka.simulation.outcome import RAISED, Outcome, RunSeed

WORLDS: dict[str, RunSeed] = {
    world_producer.ProducerWorld.name: world_producer.run_seed,
    world_cluster.ClusterWorld.name: world_cluster.run_seed,
    world_readers.ReadersWorld.name: world_readers.run_seed,
    world_transactions.NAME: world_transactions.run_seed,
}
"""Every world by name."""
CANARY_SEEDS = 60
"""Seeds that are tried to find how many it takes until a planted bug is noticed."""
SEEDS_AT_ONCE = 8
"""Seeds that one process of the pool runs in one go."""
PLANTING_ERRORS = tuple(f"{RAISED} {kind.__name__}" for kind in (TypeError, AttributeError))
"""Prefixes of errors that a planted method raises if the original's signature has changed."""
FAILURES_MAX = 20
"""Violated seeds that are reported in full."""

Progress = Callable[[str], object]
X = TypeVar("X")
Y = TypeVar("Y")


def simulate(
    world: str,
    seeds: int,
    first_seed: int = 0,
    *,
    jobs: int = 1,
    canaries: bool = True,
    progress: Progress = lambda text: None,
) -> JsonObject:
    """Run `seeds` seeds of a world from `first_seed` on, then plant its canaries one by one.
    Returns the report.

    `{"world", "seeds", "steps", "faults", "violations", "canaries_caught", "canaries", "seconds"}`,
    all numbers but the first: violations counts seeds with one or more. Also `"records"`,
    `"acknowledged"`; `"failures"`: the stories of violated seeds, as text; `"missed"`: what is to
    be said of canaries that were not noticed within their bound; and `"canary_seeds"`: a row for
    each canary, `{"planted", "first_seed", "seeds", "seeds_max"}`, `seeds` being how many from the
    first on it took until one noticed it (null: more than CANARY_SEEDS). `jobs`: processes to use.
    ConfigError for an unknown world.
    """
    if world not in WORLDS:
        raise ConfigError(f"world {world!r}: must be one of {', '.join(WORLDS)}")
    began = time.monotonic()
    planted = canaries_of(world) if canaries else []
    outcomes: list[Outcome] = []
    caught: dict[str, int | None] = {}
    """Name → how many seeds it took."""
    stop = first_seed + seeds
    groups = [
        (world, range(start, min(start + SEEDS_AT_ONCE, stop)))
        for start in range(first_seed, stop, SEEDS_AT_ONCE)
    ]
    for some in _spread(_run_group, groups, jobs):
        outcomes += some
        violated = sum(bool(outcome.violations) for outcome in outcomes)
        progress(f"world {world}: {len(outcomes)} of {seeds} seeds, {violated} violated")
    for name, tried in _spread(_run_canary, [(canary.name, world) for canary in planted], jobs):
        caught[name] = tried
        progress(f"world {world}: {len(caught)} of {len(planted)} planted bugs tried")
    late = [canary for canary in planted if (caught[canary.name] or CANARY_SEEDS + 1) > canary.seeds_max]
    violated_outcomes = [outcome for outcome in outcomes if outcome.violations]
    return {
        "world": world,
        "seeds": len(outcomes),
        "first_seed": first_seed,
        "steps": sum(outcome.steps for outcome in outcomes),
        "faults": sum(outcome.faults for outcome in outcomes),
        "records": sum(outcome.records for outcome in outcomes),
        "acknowledged": sum(outcome.acknowledged for outcome in outcomes),
        "violations": len(violated_outcomes),
        "canaries_caught": len(planted) - len(late),
        "canaries": len(planted),
        "seconds": round(time.monotonic() - began, 2),
        "missed": [canary.went_unnoticed for canary in late],
        "canary_seeds": [_row(canary, caught[canary.name]) for canary in planted],
        "failures": [str(outcome) for outcome in violated_outcomes[:FAILURES_MAX]],
    }


def catch(canary: Canary, seeds: Iterable[int] | None = None) -> int | None:
    """The first seed in which a planted bug is noticed; None: in none of `seeds` (default:
    `Canary.seeds`).

    A machine that raises counts as noticing, except for errors that the planting itself would cause
    (`PLANTING_ERRORS`).
    """
    run = WORLDS[canary.world]
    with canary.planted(), _quiet():
        return next(
            (seed for seed in (canary.seeds if seeds is None else seeds) if _noticed(run(seed))), None
        )


def _noticed(outcome: Outcome) -> bool:
    return bool(outcome.violations) and not any(
        violation.startswith(PLANTING_ERRORS) for violation in outcome.violations
    )


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence logging: machines that raise are violations, with their tracebacks."""
    logger = logging.getLogger("fairlead_kafka")
    before = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(before)


def _run_group(group: tuple[str, range]) -> list[Outcome]:
    world, seeds = group
    with _quiet():
        return [WORLDS[world](seed) for seed in seeds]


def _run_canary(planted: tuple[str, str]) -> tuple[str, int | None]:
    name, world = planted
    (canary,) = [each for each in canaries_of(world) if each.name == name]
    seed = catch(canary, range(canary.first_seed, canary.first_seed + CANARY_SEEDS))
    return name, None if seed is None else seed - canary.first_seed + 1


def _row(canary: Canary, seeds: int | None) -> JsonObject:
    return {
        "planted": canary.name,
        "first_seed": canary.first_seed,
        "seeds": seeds,
        "seeds_max": canary.seeds_max,
    }


def _spread(function: Callable[[X], Y], items: Sequence[X], jobs: int) -> Iterable[Y]:
    """Apply `function` to each item, on `jobs` processes; the results in order."""
    if jobs <= 1 or len(items) <= 1:
        yield from map(function, items)
        return
    # Not forked: the parent may have threads, and planted bugs must not leak from it.
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        yield from pool.map(function, items)
