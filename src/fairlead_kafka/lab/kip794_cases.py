"""Cases of KIP-794's experiment: its series, the policies of Fairlead and of other clients as
configs, and the rows to measure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fairlead_kafka.base.json_types import Json, integer_at
from fairlead_kafka.lab.experiment import AS_KAFKA, Row

RECORD_SIZE = 512
SERIES = {1: 2_048, 2: 4_096}
"""Series → records per second, of KIP-794's two test series."""
UNBOUNDED = 2**63 - 1
DEFAULT_LINGER_MS = 5
"""Default of linger.ms today, in Kafka (KIP-1030) and here."""

POLICIES: Mapping[str, Mapping[str, Json]] = {
    "sticky": {"partitioner.class": "sticky", **AS_KAFKA},
    "uniform": {"partitioner.class": "uniform", **AS_KAFKA},
    "uniform.kafka": {"partitioner.class": "uniform.kafka", **AS_KAFKA},
    "adaptive": {"partitioner.class": "adaptive", **AS_KAFKA},
    "adaptive.timeout": {
        "partitioner.class": "adaptive",
        "partitioner.availability.timeout.ms": 5,
        **AS_KAFKA,
    },
    "adaptive.coalesced": {"partitioner.class": "adaptive"},
    "late": {"partitioner.class": "late"},
    "late.any": {"partitioner.class": "late", "partitioner.max.skew.bytes": UNBOUNDED},
}
"""Our policies by the names in rows, each as configs; `adaptive.coalesced` makes larger batches
where more records wait, as `late` does.
"""
DEFAULT: Mapping[str, Mapping[str, Json]] = {"default": {}}
"""The producer without any configs, which is `late`; measured under this name only if asked for."""
PEER_POLICIES: Mapping[str, Mapping[str, Mapping[str, Json]]] = {
    "java": {
        "adaptive": {},
        "uniform": {"partitioner.adaptive.partitioning.enable": "false"},
        "adaptive.timeout": {"partitioner.availability.timeout.ms": 5},
    },
    "confluent-kafka": {"default": {}},
    "kafka-python": {"default": {}},
    "aiokafka": {"default": {}},
}
"""Policies of the peers as configs, by system; `adaptive` is Java's default."""


@dataclass(frozen=True)
class Case:
    """One row to measure: a system, a policy and a load."""

    system: str
    policy: str
    config: Mapping[str, Json]
    series: int
    rate: int
    records: int
    linger_ms: int

    def row(self, **more: Json) -> Row:
        """The row's first columns, and `more`."""
        return {
            "system": self.system,
            "policy": self.policy,
            "series": self.series,
            **more,
            "linger_ms": self.linger_ms,
            "rate": self.rate,
        }


def cases(
    seconds: float,
    rate: int | None,
    records: int | None,
    systems: Sequence[str],
    policies: Sequence[str],
    lingers_ms: Sequence[int],
    properties: Mapping[str, Json],
) -> list[Case]:
    """All rows to measure: by series, then linger, then system.

    With `rate` there is one series, named by the rate.
    """
    found = []
    for series, per_s in SERIES.items() if rate is None else ((rate, rate),):
        for linger_ms in lingers_ms:
            for system in systems:
                ours = {name: {**{**POLICIES, **DEFAULT}[name], **properties} for name in policies}
                for policy, config in ours.items() if system == "fairlead" else PEER_POLICIES[system].items():
                    count = records or round(seconds * per_s)
                    found.append(
                        Case(
                            system,
                            policy,
                            {**config, "linger.ms": linger_ms},
                            series,
                            per_s,
                            count,
                            linger_ms,
                        )
                    )
    return found


def share_of_broker_0(row: Row) -> float:
    """Broker 0's share of all bytes that the row's brokers hold, 0 to 1."""
    sizes = [integer_at(row, key) for key in row if key.startswith("bytes_broker_")]
    return round(integer_at(row, "bytes_broker_0") / (sum(sizes) or 1), 4)
