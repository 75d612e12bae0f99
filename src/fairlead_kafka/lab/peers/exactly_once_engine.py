"""Drives an exactly-once sink as Spark's micro-batch engine does, without Spark: `python
exactly_once_engine.py JSON`.

The checkpoint has two folders as Spark's: the contents of a batch are recorded before it is
written, the commit afterwards, and a batch without a recorded commit is written again. Every task
and every commit is a process of its own. A task that dies is started again; some run twice at once,
the first to end counts and the other one is killed. Input is the numbers from 0 on; they are the
rows.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import sys
from collections.abc import Callable, Iterator
from enum import Enum
from importlib import import_module
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from pathlib import Path
from typing import TypeVarTuple

import pyarrow as pa

from fairlead_kafka.lab.peers.deaths import Spec, deaths_of

ATTEMPTS_MAX = 4
SPECULATIVE = 0.25
"""Share of tasks that run twice at once."""
TASKS = 3
Ts = TypeVarTuple("Ts")
_FORK = multiprocessing.get_context("fork")

driver = import_module("fairlead_kafka.spark.exactly_once.driver")
parts = import_module("fairlead_kafka.spark.exactly_once.parts")
settings = import_module("fairlead_kafka.spark.exactly_once.settings")
task = import_module("fairlead_kafka.spark.exactly_once.task")


class Engine:
    """One run of a query: reads its input batch by batch, and writes each exactly once, with tasks
    as Spark has them."""

    def __init__(self, spec: Spec) -> None:
        self._spec = spec
        self._deaths = deaths_of(spec["deaths"])
        self._guarantee = settings.Guarantee()
        self._checkpoint = Path(spec["checkpoint"])
        self._rng = random.Random(spec["seed"])
        for name in ("offsets", "commits"):
            (self._checkpoint / name).mkdir(parents=True, exist_ok=True)

    def run(self) -> bool:
        """Process the rest of the input.

        False if a batch failed: the query has to be started again.
        """
        while True:
            batch = len(list((self._checkpoint / "commits").iterdir()))
            start, end = self._range(batch)
            if start >= end:
                return True
            messages = [self._run_task(batch, range(start + number, end, TASKS)) for number in range(TASKS)]
            if (
                any(message is None for message in messages)
                or self._in_process(self._commit, batch, messages) is None
            ):
                return False
            self._note("commits", batch, "done")

    def reached(self, step: Enum | str) -> None:
        """Called at each step of a process of this query; it may be killed there."""
        for death in self._deaths:
            death.reached(step if isinstance(step, str) else step.name)

    def _range(self, batch: int) -> tuple[int, int]:
        rows = self._spec["rows"]
        noted = self._checkpoint / "offsets" / str(batch)
        if not noted.exists():
            start = json.loads((noted.parent / str(batch - 1)).read_text())[1] if batch else 0
            self._note(
                "offsets",
                batch,
                json.dumps([start, min(start + (self._spec["batch_rows"] or rows), rows)]),
            )
        start, end = json.loads(noted.read_text())
        return start, end

    def _note(self, name: str, batch: int, text: str) -> None:
        """Write a note of the checkpoint durably, whole or not at all."""
        place = self._checkpoint / name / str(batch)
        draft = self._checkpoint / f"{name}-{batch}"
        with draft.open("w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.rename(place)

    def _run_task(self, batch: int, numbers: range) -> object:
        """Run a task, in several attempts; returns the message of the attempt that ended first,
        None if all died."""
        for _ in range(ATTEMPTS_MAX):
            attempts = [
                self._start(self._write, batch, numbers)
                for _ in range(2 if self._rng.random() < SPECULATIVE else 1)
            ]
            waiting = {channel: process for process, channel in attempts}
            message: object = None
            while waiting and message is None:
                for channel in wait(list(waiting)):
                    assert isinstance(channel, Connection)
                    message = message or _received(channel)
                    waiting.pop(channel)
            for process, _ in attempts:
                process.kill()
                process.join()
            if message is not None:
                return message
        return None

    def _in_process(self, function: Callable[[*Ts], object], *arguments: *Ts) -> object:
        process, channel = self._start(function, *arguments)
        message = _received(channel)
        process.join()
        return message

    def _start(self, function: Callable[[*Ts], object], *arguments: *Ts) -> tuple[ForkProcess, Connection]:
        here, there = _FORK.Pipe(duplex=False)
        process = _FORK.Process(target=_report, args=(there, function, arguments))
        process.start()
        there.close()
        return process, here

    def _write(self, batch: int, numbers: range) -> object:
        def batches() -> Iterator[pa.RecordBatch]:
            half = len(numbers) // 2
            for some in (numbers[:half], numbers[half:]):
                texts = pa.array([str(number) for number in some])
                yield pa.record_batch({"key": texts, "value": texts})

        writing = parts.Writing(self._spec["name"], batch)
        return task.prepare(
            self._spec["client"], self._guarantee, writing, self._spec["topic"], batches(), self.reached
        )

    def _commit(self, batch: int, messages: list[object]) -> str:
        self.reached("TASKS_ENDED")
        committer = driver.Committer(
            self._spec["client"], self._guarantee, self._spec["name"], self.reached, at_once=1
        )
        committer.commit(batch, parts.parts_of(messages)[1])
        return "committed"


def _report(channel: Connection, function: Callable[[*Ts], object], arguments: tuple[*Ts]) -> None:
    channel.send(function(*arguments))
    channel.close()


def _received(channel: Connection) -> object:
    try:
        message: object = channel.recv()
    except EOFError:
        return None
    return message


if __name__ == "__main__":
    sys.exit(0 if Engine(json.loads(sys.argv[1])).run() else 1)
