"""What KIP-794's experiment measures: its series, our policies and the peers' as configs, and the rows to come of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairlead_kafka.lab.experiment import AS_KAFKA, Row

RECORD_SIZE = 512
SERIES = {1: 2_048, 2: 4_096}
"""Records a second of KIP-794's two test series."""
UNBOUNDED = 2**63 - 1
DEFAULT_LINGER_MS = 5
"""Today's default of linger.ms, Kafka's (KIP-1030) and ours."""

POLICIES: Mapping[str, Mapping[str, Any]] = {
    "sticky": {"partitioner.class": "sticky", **AS_KAFKA},
    "uniform": {"partitioner.class": "uniform", **AS_KAFKA},
    "uniform.kafka": {"partitioner.class": "uniform.kafka", **AS_KAFKA},
    "adaptive": {"partitioner.class": "adaptive", **AS_KAFKA},
    "adaptive.timeout": {"partitioner.class": "adaptive", "partitioner.availability.timeout.ms": 5, **AS_KAFKA},
    "adaptive.coalesced": {"partitioner.class": "adaptive"},
    "late": {"partitioner.class": "late"},
    "late.any": {"partitioner.class": "late", "partitioner.max.skew.bytes": UNBOUNDED},
}
"""Our policies by the names that rows give them, each a config; `adaptive.coalesced` has larger batches where more waits, as `late` has."""
DEFAULT: Mapping[str, Mapping[str, Any]] = {"default": {}}
"""What a producer does that is told nothing: `late`, measured by this name only if asked for."""
PEER_POLICIES: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "java": {
        "adaptive": {},
        "uniform": {"partitioner.adaptive.partitioning.enable": "false"},
        "adaptive.timeout": {"partitioner.availability.timeout.ms": 5},
    },
    "confluent-kafka": {"default": {}},
    "kafka-python": {"default": {}},
    "aiokafka": {"default": {}},
}
"""What the peers are measured with; `adaptive` is Java's default."""


@dataclass(frozen=True)
class Case:
    """One row to be measured."""

    system: str
    policy: str
    config: Mapping[str, Any]
    series: int
    rate: int
    records: int
    linger_ms: int

    def row(self, **more: Any) -> Row:
        """The row's first columns, and `more`."""
        return {"system": self.system, "policy": self.policy, "series": self.series, **more, "linger_ms": self.linger_ms, "rate": self.rate}


def cases(
    seconds: float,
    rate: int | None,
    records: int | None,
    systems: Sequence[str],
    policies: Sequence[str],
    lingers_ms: Sequence[int],
    properties: Mapping[str, Any],
) -> list[Case]:
    """All rows to be measured: by series, then linger, then system. With `rate` there is one series, of that name."""
    found = []
    for series, per_s in SERIES.items() if rate is None else ((rate, rate),):
        for linger_ms in lingers_ms:
            for system in systems:
                ours = {name: {**{**POLICIES, **DEFAULT}[name], **properties} for name in policies}
                for policy, config in ours.items() if system == "fairlead" else PEER_POLICIES[system].items():
                    count = records or round(seconds * per_s)
                    found.append(Case(system, policy, {**config, "linger.ms": linger_ms}, series, per_s, count, linger_ms))
    return found


def share_of_broker_0(row: Row) -> float:
    """Of all bytes that the row's brokers hold."""
    sizes = [int(size) for key, size in row.items() if key.startswith("bytes_broker_")]
    return round(int(row["bytes_broker_0"]) / (sum(sizes) or 1), 4)
