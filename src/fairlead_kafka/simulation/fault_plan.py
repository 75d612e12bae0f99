"""Fault plans: a world's faults, when and for how long, drawn from its seed and printable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from random import Random
from typing import TypedDict

from fairlead_kafka.base.codes import ErrorCode

CLEAN_SHARE = 0.05
"""Share of seeds without any fault: a failure there is not caused by faults."""


EARLY_MS = 60.0
"""A fifth of all faults begin within this time, ms: the start of a world is delicate."""
KINDS_MAX = 5
"""Kinds of faults in one world: few, so that each comes often enough to overlap with itself."""

AMONG_SHARE, AMONG_MAX, AMONG_SALTS = 0.3, 4, (0x5CB5, 0xF150, 0xC0F1)
"""Share of the seeds with faults of `among_them`, how many they have at most, and what makes the
generator of each group of kinds. The salts leave out the seeds that tests name: these go on telling
what they were chosen for."""

MOMENTARY = ("reset", "move", "forget", "grow", "prefer", "reassign", "hiccup", "long ids", "read again")
"""Kinds that have no end, or end by themselves."""


TOPIC_CONFIGS = (
    "compression.type=lz4",
    "compression.type=uncompressed",
    "flush.messages=1",
    "max.message.bytes=300",
    "message.timestamp.type=LogAppendTime",
    "min.insync.replicas=1",
    "min.insync.replicas=3",
)
"""Configs that a topic may have for a while."""
BROKER_CONFIGS = (
    "compression.type=gzip",
    "log.cleaner.backoff.ms=20",
    "log.flush.interval.messages=1",
    "log.flush.interval.ms=5",
    "log.message.timestamp.type=LogAppendTime",
    "max.connections=4",
    "message.max.bytes=400",
    "min.insync.replicas=1",
    "min.insync.replicas=3",
    "transaction.partition.verification.enable=false",
)
"""Configs that a broker, or all, may have for a while."""


Details = TypedDict(
    "Details",
    {
        "append_ms": float,
        "broker": int,
        "bytes": int,
        "bytes_per_ms": float,
        "client": int,
        "config": str,
        "connections": int,
        "effects": int,
        "elect": bool,
        "fatal": bool,
        "fault": str,
        "from controller": bool,
        "how": str,
        "jitter_ms": float,
        "latency_ms": float,
        "length": int,
        "loss": float,
        "lost": bool,
        "most_ms": float,
        "ms": float,
        "other": int,
        "partition": int,
        "requests": int,
        "resets": float,
        "share": float,
        "sync_ms": float,
        "topic": str,
        "truncate": bool,
        "way": str,
    },
    total=False,
)
"""Parameters of a fault, as plans print them; each kind of fault has some of them (`Drawing`)."""


@dataclass(frozen=True)
class Fault:
    """One fault.

    `kind` and `what` are for the code that injects it; times in ms since the world began.
    """

    at_ms: float
    kind: str
    what: Details
    lasts_ms: float = 0.0

    def __str__(self) -> str:
        words = ", ".join(
            f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"
            for name, value in self.what.items()
        )
        lasting = f", for {self.lasts_ms:.0f} ms" if self.lasts_ms else ""
        return f"+{self.at_ms:.0f} ms: {self.kind}{': ' if words else ''}{words}{lasting}"


@dataclass(frozen=True)
class Place:
    """Targets of faults: the number of clients and brokers, and partitions (topic, index)."""

    clients: int
    brokers: int
    partitions: Sequence[tuple[str, int]]


RETRIABLE = (
    (ErrorCode.CORRUPT_MESSAGE, False),
    (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, False),
    (ErrorCode.NOT_LEADER_OR_FOLLOWER, False),
    (ErrorCode.REQUEST_TIMED_OUT, True),
    (ErrorCode.REQUEST_TIMED_OUT, False),
    (ErrorCode.NETWORK_EXCEPTION, True),
    (ErrorCode.NOT_ENOUGH_REPLICAS, False),
    (ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, True),
    (ErrorCode.KAFKA_STORAGE_ERROR, False),
)
"""Error codes on which a producer retries a batch, and whether it was written all the same."""
FATAL = (
    (ErrorCode.INVALID_RECORD, False),
    (ErrorCode.TOPIC_AUTHORIZATION_FAILED, False),
    (ErrorCode.RECORD_LIST_TOO_LARGE, False),
)
"""Error codes that fail a batch for good, and whether it was written."""


class Drawing:
    """Draws faults for one world from its generator."""

    def __init__(self, rng: Random, place: Place, until_ms: float) -> None:
        self._rng = rng
        self._place = place
        self._until_ms = until_ms

    def plan(self, kinds: Sequence[str], most: int) -> list[Fault]:
        """Up to `most` faults, in order of time; all of them have ended by `until_ms`.

        A kind that `kinds` has twice is drawn twice as often.
        """
        rng = self._rng
        if rng.random() < CLEAN_SHARE:
            return []
        chosen = [rng.choice(list(kinds)) for _ in range(1 + rng.randrange(KINDS_MAX))]  # few kinds
        faults = [self._draw(rng.choice(chosen)) for _ in range(2 + rng.randrange(most - 1))]
        return sorted(faults, key=lambda fault: fault.at_ms)

    def _draw(self, kind: str) -> Fault:
        rng = self._rng
        at_ms = rng.random() * (self._until_ms if rng.random() < 0.8 else EARLY_MS)
        lasts_ms = min(-log(1.0 - rng.random()) * 0.25 * self._until_ms, self._until_ms - at_ms)
        what: Details = getattr(self, f"_{kind.replace(' ', '_')}")()
        momentary = kind in MOMENTARY
        return Fault(round(at_ms, 1), kind, what, 0.0 if momentary else round(lasts_ms, 1))

    def _client(self) -> int:
        return self._rng.randrange(self._place.clients)

    def _broker(self) -> int:
        return self._rng.randrange(self._place.brokers)

    # The parameters of each kind

    def _cut(self) -> Details:
        way = self._rng.choice(["both", "to broker", "to client"])
        return {
            "client": self._client(),
            "broker": self._broker(),
            "way": way,
            "lost": self._rng.random() < 0.5,
        }

    def _reset(self) -> Details:
        return {"client": self._client(), "broker": self._broker()}

    def _weather(self) -> Details:
        return {"client": self._client(), "broker": self._broker(), **self._conditions()}

    def _conditions(self) -> Details:
        rng = self._rng
        return {
            "latency_ms": round(rng.choice([0.1, 1.0, 20.0, 150.0]) * rng.random(), 2),
            "jitter_ms": round(rng.choice([0.0, 1.0, 30.0]) * rng.random(), 2),
            "loss": round(rng.choice([0.0, 0.05, 0.4]) * rng.random(), 3),
            "resets": round(rng.choice([0.0, 0.0, 0.1]) * rng.random(), 3),
            "bytes_per_ms": round(rng.choice([0.0, 0.0, 20.0]) * (1 + rng.random()), 1),
        }

    def _slow(self) -> Details:
        rng = self._rng
        ms = round(rng.choice([5.0, 50.0, 600.0]) * (0.1 + rng.random()), 1)
        return {"broker": self._broker(), "ms": ms, "fault": rng.choice(["serial", "latency"])}

    def _freeze(self) -> Details:
        return {"broker": self._broker()}

    def _kill(self) -> Details:
        return {"broker": self._broker(), "elect": self._rng.random() < 0.7}

    def _power(self) -> Details:
        return {"broker": self._broker()}

    def _stop(self) -> Details:
        return {"broker": self._broker()}

    def _prefer(self) -> Details:
        return {}

    def _reassign(self) -> Details:
        topic, partition = self._rng.choice(list(self._place.partitions))
        return {"topic": topic, "partition": partition}

    def _full(self) -> Details:
        return {"broker": self._broker()}

    def _full_metadata(self) -> Details:
        return {}

    def _topic_config(self) -> Details:
        topic, _partition = self._rng.choice(list(self._place.partitions))
        return {"topic": topic, "config": self._rng.choice(TOPIC_CONFIGS)}

    def _broker_config(self) -> Details:
        return {
            "broker": self._rng.choice([-1, self._broker()]),
            "config": self._rng.choice(BROKER_CONFIGS),
        }

    def _held_syncs(self) -> Details:
        return {"broker": self._broker(), "lost": self._rng.random() < 0.6}

    def _read_again(self) -> Details:
        return {"broker": self._broker()}

    def _hiccup(self) -> Details:
        return {
            "broker": self._broker(),
            "how": self._rng.choice(["full", "full", "broken"]),
            "ms": self._rng.choice([1, 10, 100]),
        }

    def _pages(self) -> Details:
        return {"broker": self._broker()}

    def _rot(self) -> Details:
        return {"broker": self._broker()}

    def _crowd(self) -> Details:
        return {"broker": self._broker(), "connections": self._rng.choice([20, 100, 300])}

    def _deaf(self) -> Details:
        return {"broker": self._broker(), "requests": self._rng.choice([10, 200, 800])}

    def _long_ids(self) -> Details:
        return {"length": self._rng.choice([0, 1, 249, 250, 32_700, 32_766, 32_767, 32_768, 40_000, 66_000])}

    def _torn(self) -> Details:
        return {"broker": self._broker(), "effects": 1 + self._rng.randrange(self._rng.choice([2, 20]))}

    def _blackout(self) -> Details:
        return {}

    def _pair(self) -> Details:
        one = self._broker()
        return {
            "broker": one,
            "other": (one + 1 + self._rng.randrange(self._place.brokers - 1)) % self._place.brokers,
        }

    def _between(self) -> Details:
        return {
            **self._pair(),
            "way": self._rng.choice(["both", "to one", "to other"]),
            "lost": self._rng.random() < 0.5,
        }

    def _isolate(self) -> Details:
        return {
            "broker": self._broker(),
            "from controller": self._rng.random() < 0.5,
            "lost": self._rng.random() < 0.5,
        }

    def _cut_off(self) -> Details:
        way = self._rng.choice(["both", "to broker", "to controller"])
        return {"broker": self._broker(), "way": way, "lost": self._rng.random() < 0.5}

    def _bad_line(self) -> Details:
        return {**self._pair(), **self._conditions()}

    def _clock(self) -> Details:
        return {"broker": self._broker(), "ms": self._rng.choice([-600_000, -3_000, 3_000, 600_000])}

    def _move(self) -> Details:
        topic, partition = self._rng.choice(list(self._place.partitions))
        return {
            "topic": topic,
            "partition": partition,
            "broker": self._broker(),
            "truncate": self._rng.random() < 0.5,
        }

    def _replication(self) -> Details:
        return {"most_ms": round(self._rng.choice([5.0, 100.0, 800.0]) * self._rng.random(), 1)}

    def _markers(self) -> Details:
        return {"most_ms": round(self._rng.choice([10.0, 300.0]) * self._rng.random(), 1)}

    def _refusals(self) -> Details:
        share = self._rng.choice([0.05, 0.4, 0.8]) * (0.3 + 0.7 * self._rng.random())
        return {"share": round(share, 3), "fatal": self._rng.random() < 0.2}

    def _troubles(self) -> Details:
        return {"share": round(self._rng.random(), 3)}

    def _small_batches(self) -> Details:
        return {"bytes": 150 + self._rng.randrange(600)}

    def _metadata_lag(self) -> Details:
        return {"ms": round(self._rng.random() * 1500.0, 1)}

    def _forget(self) -> Details:
        return {}

    def _grow(self) -> Details:
        return {"topic": self._rng.choice(list(self._place.partitions))[0]}

    def _disk(self) -> Details:
        rng = self._rng
        append_ms = round(rng.choice([0.1, 5.0, 60.0]) * rng.random(), 2)
        return {"sync_ms": round(rng.choice([1.0, 20.0, 300.0]) * rng.random(), 2), "append_ms": append_ms}


def among_them(seed: int, groups: Sequence[Sequence[str]], place: Place, until_ms: float) -> list[Fault]:
    """Faults of each group of kinds, for a seed in three, that come among the others of its plan;
    these are the same with and without them."""
    faults = []
    for kinds, salt in zip(groups, AMONG_SALTS, strict=False):
        rng = Random(seed ^ salt)
        if rng.random() < AMONG_SHARE:
            faults += Drawing(rng, place, until_ms).plan(kinds, AMONG_MAX)
    return faults


def described(faults: Sequence[Fault]) -> str:
    """The plan, a line for each fault."""
    return "\n".join(f"  {fault}" for fault in faults) or "  no faults"
