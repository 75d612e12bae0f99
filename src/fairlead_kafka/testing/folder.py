"""A cluster's folder: locked against a second cluster, and with the metadata log in it."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows has none: there the folder is not guarded
    fcntl = None  # type: ignore[assignment]

from fairlead_kafka.base.errors import ConfigError, FairleadError, UsageError
from fairlead_kafka.broker import Controller

_LOCK_NAME = "lock"


class FolderLock:
    """A lock on a folder, held while a cluster uses it; the end of the process releases it.

    The folder is made if it is missing.
    """

    def __init__(self, folder: Path) -> None:
        self._descriptor: int | None = None
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._descriptor = os.open(folder / _LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise ConfigError(
                f"data_dir {folder} cannot be used ({error.strerror}); name a folder that can be written to"
            ) from None
        if fcntl is None:
            return
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.release()
            raise UsageError(
                f"{folder} is in use by another cluster; close that one, or give this one a folder of its "
                "own (data_dir, --data-dir)"
            ) from None

    def release(self) -> None:
        """Release the lock. Idempotent."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            if fcntl is not None:
                # Said outright: a forked child may still hold the descriptor, and with it the lock.
                fcntl.flock(descriptor, fcntl.LOCK_UN)
            os.close(descriptor)


class MetadataFile:
    """The controller's log on disk. It is written before an answer that depends on it is sent, and
    synced if `durable`. Its writes are no effects of a machine: the controller belongs to no
    broker, and its writes are few and small."""

    def __init__(self, path: Path, durable: bool) -> None:
        self._path = path
        self._durable = durable
        self._descriptor: int | None = None

    def replay(self, controller: Controller) -> None:
        """Rebuild the controller from the file, then replace the file by a snapshot. FairleadError
        if it is damaged."""
        if self._path.exists():
            try:
                controller.replay(self._path.read_bytes())
            except (FairleadError, KeyError) as error:
                raise FairleadError(f"{self._path}: {error}") from error
        self.replace(controller.snapshot())

    def replace(self, data: bytes) -> None:
        """Replace the whole content by `data`, atomically; OSError if that fails, and the old
        content stays.
        """
        fresh = self._path.with_suffix(".new")
        with open(fresh, "wb") as file:
            file.write(data)
            file.flush()
            if self._durable:
                os.fsync(file.fileno())
        descriptor = os.open(fresh, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        try:
            os.replace(fresh, self._path)
        except OSError:
            os.close(descriptor)
            raise
        self.close()
        self._descriptor = descriptor
        if self._durable:
            _sync_folder(self._path.parent)

    def append(self, data: bytes) -> None:
        """Write one decision of the controller. OSError if that fails: then nothing of it is left
        in the file, to be replayed by a restart. UsageError if the file is closed."""
        if self._descriptor is None:
            raise UsageError(f"{self._path}: the cluster is closed")
        size_bytes, view = os.fstat(self._descriptor).st_size, memoryview(data)
        try:
            while view:
                view = view[os.write(self._descriptor, view) :]
            if self._durable:
                os.fdatasync(self._descriptor)
        except OSError:
            with suppress(OSError):
                os.ftruncate(self._descriptor, size_bytes)
            raise

    def close(self) -> None:
        """Close the file. Idempotent."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
