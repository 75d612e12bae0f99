"""The policies under loads and faults unlike KIP-794's, in virtual time: the mean of several seeds
for each scenario and policy.

KIP-794 has one broker that is slow all the time, and even loads without keys. Here are keys,
stalls, bursts, changing slow brokers, and rates near and beyond the slow broker's capacity: loads
that no policy was made for. Each scenario is described by its name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean

from fairlead_kafka.base.json_types import Json, integer_at, number_at, text_at
from fairlead_kafka.lab.experiment import AS_KAFKA, Row, Status
from fairlead_kafka.lab.kip794_cases import DEFAULT, POLICIES, RECORD_SIZE
from fairlead_kafka.lab.paced import load_of
from fairlead_kafka.lab.plotting import Bars, figure
from fairlead_kafka.lab.virtual_load import DEAD, STARTED, BrokerEvent, Stall, VirtualTask, virtual_loads

SEEDS: Mapping[str, int] = {"quick": 1, "full": 4}
"""Profile → number of runs of which a row is the mean."""
DEFAULT_POLICIES = ("adaptive.coalesced", "late")
WARMUP_S = 1.0
_SERIAL, _LATENCY = "serial", "latency"


@dataclass(frozen=True)
class Scenario:
    """A load of `seconds` at `rate` records a second, and what happens to the brokers, `events` by
    the load's time."""

    rate: int
    seconds: float = 4.0
    partitions: int = 6
    brokers: int = 3
    record_size: int = RECORD_SIZE
    period_ms: int = 1
    keyed_share: float = 0.0
    events: Sequence[BrokerEvent] = ()
    stall: Stall | None = None
    config: Mapping[str, Json] = field(default_factory=dict)

    def task(self, policy: str, seed: int) -> VirtualTask:
        """One run of the scenario."""
        load = load_of(
            round(self.rate * self.seconds), self.rate, self.record_size, WARMUP_S, period_ms=self.period_ms
        )
        config = {**{**POLICIES, **DEFAULT}[policy], "linger.ms": 0, **self.config}
        return VirtualTask(
            load,
            config,
            self.brokers,
            self.partitions,
            seed=seed,
            keyed_share=self.keyed_share,
            events=self.events,
            stall=self.stall,
        )


def _slow(delay_ms: float, kind: str = _SERIAL, broker: int = 0, at_ms: float = 0.0) -> BrokerEvent:
    return BrokerEvent(at_ms, broker, kind, delay_ms)


_ONE_SLOW = (_slow(20),)
_SHORT_STALLS = Stall(0.1, 4.0)
SCENARIOS: Mapping[str, Scenario] = {
    **{
        f"keyed {percent} %": Scenario(
            3_000, partitions=9, record_size=700, keyed_share=percent / 100, events=_ONE_SLOW
        )
        for percent in (0, 10, 25, 50, 75, 90, 100)
    },
    "stalls of 4 ms, 120,000/s": Scenario(120_000, 2.0, partitions=3, stall=_SHORT_STALLS),
    "stalls of 4 ms, 12 partitions": Scenario(20_000, 2.0, partitions=12, stall=_SHORT_STALLS),
    "five brokers, one 40 ms slow": Scenario(2_000, partitions=10, brokers=5, events=[_slow(40)]),
    "five brokers, 20 and 50 ms slow": Scenario(
        2_000, partitions=10, brokers=5, events=[_slow(20), _slow(50, broker=1)]
    ),
    "slow from the middle on": Scenario(3_000, 6.0, events=[_slow(20, at_ms=4_000)]),
    "slow until the middle": Scenario(3_000, 6.0, events=[_slow(20), _slow(0, at_ms=4_000)]),
    "dies and returns": Scenario(
        3_000, 6.0, events=[BrokerEvent(3_000, 0, DEAD), BrokerEvent(5_000, 0, STARTED)]
    ),
    "at 0.96 of the slow one's limit": Scenario(4_500, 6.0, partitions=3, events=_ONE_SLOW, config=AS_KAFKA),
    "at 1.3 of the slow one's limit": Scenario(6_000, 6.0, partitions=3, events=_ONE_SLOW, config=AS_KAFKA),
    "one broker 20 ms away": Scenario(20_000, 2.0, partitions=12, events=[_slow(20, _LATENCY)]),
    "all brokers 20 ms away": Scenario(4_000, events=[_slow(20, _LATENCY, broker) for broker in range(3)]),
    "bursts every 100 ms": Scenario(5_000, period_ms=100, events=_ONE_SLOW),
    "bursts every second": Scenario(5_000, 6.0, period_ms=1_000, events=_ONE_SLOW),
}


def run(
    status: Status,
    profile: str = "quick",
    policies: Sequence[str] = DEFAULT_POLICIES,
    scenarios: Sequence[str] = tuple(SCENARIOS),
    seed: int = 1,
) -> list[Row]:
    """Rows {scenario, policy, seeds, offered_per_s, records_per_s, avg_ms, p99_ms, skew_share,
    failed, requests}.

    Latencies and rates are means over the seeds from `seed` on; `failed` is their sum.
    `skew_share`: what the broker of most bytes has above the mean of all brokers' bytes, as a share
    of that mean; a partition's bytes are those of the broker that leads it in the end.
    """
    seeds = range(seed, seed + SEEDS[profile])
    pairs = [(name, policy) for name in scenarios for policy in policies]
    tasks = [SCENARIOS[name].task(policy, each) for name, policy in pairs for each in seeds]
    status(f"virtual time: {len(tasks)} runs")
    found = virtual_loads(tasks, lambda count: status(f"virtual time: {count} of {len(tasks)} runs"))
    rows: list[Row] = []
    for number, (name, policy) in enumerate(pairs):
        runs = found[number * len(seeds) : (number + 1) * len(seeds)]
        first: Row = {
            "scenario": name,
            "policy": policy,
            "seeds": len(seeds),
            "offered_per_s": SCENARIOS[name].rate,
        }
        rows.append({**first, **_mean(runs)})
    return rows


def _mean(runs: Sequence[Row]) -> Row:
    skipped = [run for run in runs if "avg_ms" not in run]
    if skipped:
        return {"skipped": skipped[0].get("skipped", "nothing was acknowledged")}
    means: Row = {
        key: round(mean(number_at(run, key) for run in runs), 2)
        for key in ("records_per_s", "avg_ms", "p99_ms")
    }
    return {
        **means,
        "skew_share": round(mean(skew_share(run) for run in runs), 4),
        "failed": sum(integer_at(run, "failed") for run in runs),
        "requests": round(mean(integer_at(run, "requests") for run in runs)),
    }


def skew_share(row: Row) -> float:
    """Bytes of the broker that has most, above the mean, as a share of the mean; 0 if there are
    none.
    """
    sizes = [integer_at(row, key) for key in row if key.startswith("bytes_broker_")]
    average = mean(sizes)
    return max(sizes) / average - 1 if average else 0.0


def plot(rows: Sequence[Row], path: Path) -> None:
    """Draw the average latency and p99 of all policies, a panel for each scenario."""
    panels = []
    for name in dict.fromkeys(text_at(row, "scenario") for row in rows):
        shown = [row for row in rows if row["scenario"] == name]
        figures = {key: [number_at(row, f"{key}_ms") for row in shown] for key in ("avg", "p99")}
        panels.append(Bars(name, [text_at(row, "policy") for row in shown], figures, "ms", log=True))
    figure(path, panels, "Policies under other loads and faults, in virtual time", columns=2)
