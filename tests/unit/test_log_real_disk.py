"""The log on a real file system: a folder that cannot be written, files that may not grow, and
service again afterwards."""

from __future__ import annotations

import os
import queue
import resource
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.config_broker import BROKER_CONFIGS
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.broker.files import Files
from fairlead_kafka.broker.log import Logs, LogSettings, RecoveryResult
from fairlead_kafka.core.effects import FileEffect
from fairlead_kafka.core.events import FileDone
from fairlead_kafka.records import decode, scan
from fairlead_kafka.runtime.disk import Disk
from fairlead_kafka.runtime.handle import Handle
from tests.support.log_rig import TOPIC, WALL_MS, limits, records

NOBODY = 65534
WAIT_S = 60


class RealRig:
    """Logs over a real disk; timers run when the test says so."""

    wall_ms = WALL_MS

    def __init__(self, folder: Path) -> None:
        self._posts: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._effects: list[FileEffect] = []
        self.timers: list[Callable[[], None]] = []
        self.disk = Disk(self._deliver, self._posts.put, lambda _wait_ns, function: self._posts.put(function))
        self._handle: Any = Handle.__new__(Handle)
        self.files = Files(self._effects.append)  # type: ignore[arg-type]
        topics = {TOPIC: ("events", limits(flush_messages=1))}
        settings = LogSettings.of(BROKER_CONFIGS.parse("broker", {}))
        self.logs = Logs(self.files, str(folder / "log"), topics.get, lambda partition: None, self, settings)
        results: list[RecoveryResult] = []
        self.logs.recover(results.append)
        self.run()
        self.result = results[0]

    def run(self) -> None:
        self.logs.flush()
        while self._effects or not self.files.idle():
            if self._effects:
                self.disk.carry_out(self._handle, self._effects.pop(0))
            else:
                self._posts.get(timeout=WAIT_S)()
            self.logs.flush()

    def append(self, data: bytes) -> list[bool]:
        self.logs.append(self.logs.partition(TOPIC, 0), memoryview(data), scan(data)[0], 0, WALL_MS)
        told: list[bool] = []
        self.logs.when_written(told.append)
        self.run()
        return told

    def values(self) -> list[bytes | None]:
        partition = self.logs.partition(TOPIC, 0)
        found: list[Any] = []
        self.logs.read(partition.select(0, partition.log_end, 1 << 30, True), found.append)
        self.run()
        return decode(b"".join(bytes(each) for each in found[0])).values.to_list()

    def run_timers(self) -> None:
        timers, self.timers = self.timers, []
        for function in timers:
            function()
        self.run()

    def bind(self, function: Callable[..., Any], _owner: Any = None) -> Callable[..., None]:
        return function

    def repeat(self, *_: Any) -> None:
        """Nothing here waits for regular work."""

    def call_later(self, milliseconds: float, function: Callable[[], None]) -> None:
        if milliseconds <= 1000:
            self.timers.append(function)

    def _deliver(self, handle: Handle, done: FileDone) -> None:
        self.files.finished(done)


@pytest.fixture
def folder() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp())
    made.chmod(0o777)
    yield made
    shutil.rmtree(made)


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Nothing can be made in `folder`, by nobody who has no privileges either."""
    folder.chmod(0o555)
    privileged = os.geteuid() == 0
    if privileged:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if privileged:
            os.seteuid(0)
        folder.chmod(0o777)


@contextmanager
def small_files(limit_bytes: int) -> Iterator[None]:
    """No file may grow beyond a limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def refused(rig: RealRig) -> None:
    with pytest.raises(BrokerError) as error:
        rig.append(records(b"refused"))
    assert error.value.code == ErrorCode.KAFKA_STORAGE_ERROR


def test_a_folder_that_is_read_only_refuses_and_serves_once_it_is_not(folder: Path) -> None:
    rig = RealRig(folder)
    try:
        with read_only(folder):
            assert rig.append(records(b"lost")) == [False]
            refused(rig)
            rig.run_timers()
        rig.run_timers()
        assert rig.append(records(b"a")) == [True]
        assert rig.values() == [b"a"]
    finally:
        rig.disk.close()


def test_files_that_may_not_grow_lose_what_does_not_fit_and_no_more(folder: Path) -> None:
    rig = RealRig(folder)
    try:
        assert rig.append(records(b"a" * 3000)) == [True]
        with small_files(5000):
            assert rig.append(records(b"b" * 3000)) == [False]
            refused(rig)
            rig.run_timers()
            assert rig.append(records(b"c")) == [True], "a small one fits"
        assert rig.append(records(b"d" * 3000)) == [True]
        assert [len(value or b"") for value in rig.values()] == [3000, 1, 3000]
    finally:
        rig.disk.close()
    again = RealRig(folder)
    try:
        assert again.result.refused is None
        assert [len(value or b"") for value in again.values()] == [3000, 1, 3000]
    finally:
        again.disk.close()


def test_the_name_of_a_file_that_another_process_made_is_synced_with_it_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    monkeypatch.setattr("fairlead_kafka.runtime.disk._sync_folders", synced.append)
    first = RealRig(folder)
    assert first.append(records(b"a")) == [True]
    first.disk.close()
    assert synced == [str(folder / "log")]
    second = RealRig(folder)  # whoever made the file may have been killed before it synced the name
    try:
        assert second.append(records(b"b")) == [True]
        assert synced == [str(folder / "log")] * 2
    finally:
        second.disk.close()
