"""File effects whose results are passed to callbacks, so that the broker's log sees neither tokens
nor events.

A read has an owner, which fails if the callback raises (`guard`). Writing, syncing and deleting are
owned by the log.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fairlead_kafka.core.effects import (
    Buffer,
    Effect,
    FileAppend,
    FileDelete,
    FileList,
    FileRead,
    FileReplace,
    FileSync,
    FileTruncate,
)
from fairlead_kafka.core.events import FileDone

Done = Callable[[Any, OSError | None], None]


class Files:
    """Asks the host, by `emit`, for file effects, and calls back with the outcome of each."""

    def __init__(
        self, emit: Callable[[Effect], None], bind: Callable[[Done], Done] = lambda done: done
    ) -> None:
        self._emit = emit
        self._bind = bind
        self._waiting: dict[int, Done] = {}
        self._token = 0

    def _expect(self, done: Done) -> int:
        self._token += 1
        self._waiting[self._token] = done
        return self._token

    def append(self, path: str, buffers: Sequence[Buffer], done: Done) -> None:
        """Append buffers to a file; done(position at which they begin, error)."""
        self._emit(FileAppend(self._expect(done), path, buffers))

    def read(self, path: str, position: int, size_bytes: int, done: Done) -> None:
        """Read a part of a file; done(bytes, error)."""
        self._emit(FileRead(self._expect(self._bind(done)), path, position, size_bytes))

    def sync(self, path: str, done: Done) -> None:
        """Sync a file to the disk; done(None, error)."""
        self._emit(FileSync(self._expect(done), path))

    def replace(self, path: str, buffers: Sequence[Buffer], done: Done) -> None:
        """Write a whole file durably and atomically; done(None, error)."""
        self._emit(FileReplace(self._expect(done), path, buffers))

    def truncate(self, path: str, size_bytes: int, done: Done) -> None:
        """Cut a file to `size_bytes`; done(None, error)."""
        self._emit(FileTruncate(self._expect(done), path, size_bytes))

    def delete(self, path: str, done: Done) -> None:
        """Delete a file or folder; done(None, error)."""
        self._emit(FileDelete(self._expect(done), path))

    def list(self, path: str, done: Done) -> None:
        """List the files of a folder; done(list of (name, size in bytes), error)."""
        self._emit(FileList(self._expect(done), path))

    def finished(self, event: FileDone) -> None:
        """Pass the outcome of one effect to the function that waits for it."""
        self._waiting.pop(event.token)(event.value, event.error)

    def idle(self) -> bool:
        """True if no effect is under way."""
        return not self._waiting
