"""Brokers die, come back and lose sight of each other at random: what was acknowledged stays in its
place, and all logs become one."""

from __future__ import annotations

import random

import pytest

from fairlead_kafka.base.ids import NO_LEADER
from tests.support.replica_rig import EVENTS, ReplicaRig
from tests.support.virtual_cluster import Asked

STEPS = 80
PAUSES_MS = (0.1, 1, 5, 20, 100, 800)
BROKERS = range(3)


class Storm:
    """One run, drawn from a seed."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.rig = ReplicaRig({"min.insync.replicas": "2"}, config={"replica.lag.time.max.ms": 2_000})
        self.under_way: list[tuple[bytes, Asked]] = []
        self.acknowledged: dict[int, bytes] = {}
        """Offset → value."""
        self.cuts: set[tuple[int, int]] = set()
        self.marks: dict[tuple[int, int], int] = {}
        self._count = 0

    def step(self) -> None:
        rng, rig = self.rng, self.rig
        down = sorted(set(BROKERS) - set(rig.brokers))
        chance = rng.random()
        if chance < 0.5:
            self.produce(rng.randrange(1, 4))
        elif chance < 0.62 and len(down) < 2:
            rig.kill(rng.choice(sorted(rig.brokers)))
        elif chance < 0.76 and down:
            rig.start(rng.choice(down))
        elif chance < 0.86 and len(rig.brokers) > 1:
            one, other = sorted(rng.sample(sorted(rig.brokers), 2))
            rig.cut(one, other)
            self.cuts.add((one, other))
        elif self.cuts:
            self.heal(rng.choice(sorted(self.cuts)))
        rig.host.advance(rng.choice(PAUSES_MS))
        self.take_answers()
        self.watch_mark()
        rig.check()

    def produce(self, count: int) -> None:
        for _ in range(count):
            if self.rig.image.leader != NO_LEADER:
                value = b"%d" % self._count
                self._count += 1
                self.under_way.append(
                    (value, self.rig.sending(value, timeout_ms=self.rng.choice((200, 5_000))))
                )

    def heal(self, pair: tuple[int, int]) -> None:
        self.cuts.discard(pair)
        if set(pair) <= set(self.rig.brokers):
            self.rig.heal(*pair)

    def take_answers(self) -> None:
        waiting = []
        for value, asked in self.under_way:
            if asked.answer is None:
                waiting.append((value, asked))
                continue
            row = asked.answer.responses[0].partition_responses[0]
            if not row.error_code:
                assert row.base_offset not in self.acknowledged, "an offset was given twice"
                self.acknowledged[row.base_offset] = value
        self.under_way = [(value, asked) for value, asked in waiting if not asked.lost]

    def watch_mark(self) -> None:
        """Under one leader the high watermark never goes back."""
        image = self.rig.image
        if image.leader in self.rig.brokers:
            mark = self.rig.replica(image.leader).high_watermark
            key = image.leader, image.leader_epoch
            assert mark >= self.marks.get(key, 0)
            self.marks[key] = mark

    def calm(self) -> None:
        for pair in sorted(self.cuts):
            self.heal(pair)
        for node_id in BROKERS:
            if node_id not in self.rig.brokers:
                self.rig.start(node_id)
        self.rig.heal_all()
        self.rig.until(self.rig.level, 60_000)
        self.rig.host.advance(100)
        self.take_answers()


@pytest.mark.parametrize("seed", range(12))
def test_after_a_storm_all_replicas_hold_all_that_was_acknowledged(seed: int) -> None:
    storm = Storm(seed)
    for _ in range(STEPS):
        storm.step()
    storm.calm()
    rig = storm.rig
    assert rig.batches(0) == rig.batches(1) == rig.batches(2)
    values = rig.values(EVENTS)
    assert {offset: values[offset] for offset in storm.acknowledged} == storm.acknowledged
    rig.must_put(b"after the storm")
    rig.close()
