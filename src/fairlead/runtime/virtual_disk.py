"""File effects on files that exist in memory only, with the answers of `fairlead.runtime.disk`."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import Any

from fairlead.core.effects import FileAppend, FileDelete, FileEffect, FileList, FileRead, FileReplace, FileSync, FileTruncate
from fairlead.core.events import FileDone
from fairlead.runtime.handle import Handle


class VirtualDisk:
    """One disk for all machines of a virtual host. `files` may be read and changed by tests."""

    def __init__(self, later: Callable[..., None], deliver: Callable[[Handle, FileDone], None]) -> None:
        self.files: dict[str, bytearray] = {}
        self.sync_ms = 0.0
        """How long FileSync and FileReplace take."""
        self.append_ms = 0.0
        """How long after a FileAppend its answer comes."""
        self._durable_bytes: dict[str, int] = {}
        """How much of each file a power cut leaves; nothing of one that is not here."""
        self._later = later
        self._deliver = deliver
        self._performers: dict[type, Callable[[Any], Any]] = {
            FileAppend: self._append,
            FileReplace: self._replace,
            FileRead: self._read,
            FileSync: self._sync,
            FileTruncate: self._truncate,
            FileDelete: self._delete,
            FileList: self._list,
        }

    def carry_out(self, handle: Handle, effect: FileEffect) -> None:
        """Do it now; FileDone follows, for what waits for the device after `sync_ms`."""
        try:
            done = FileDone(effect.token, self._performers[type(effect)](effect))
        except OSError as error:
            done = FileDone(effect.token, None, error)
        kind = type(effect)
        if kind is FileSync or kind is FileReplace:
            self._later(self.sync_ms, self._synced, handle, done, effect.path, len(self.files.get(effect.path, b"")))
        else:
            self._later(self.append_ms if kind is FileAppend else 0.0, self._deliver, handle, done)

    def cut_power(self, folder: str, kept: Callable[[int], int] = lambda size_bytes: 0) -> None:
        """All below `folder` is as after a power cut: what was not synced is gone, but for the first `kept(its size)` bytes of it."""
        for path in [path for path in self.files if path.startswith(folder + "/")]:
            content, durable = self.files[path], self._durable_bytes.get(path, 0)
            del content[durable + kept(len(content) - durable) :]
            if not content:
                del self.files[path]

    def _synced(self, handle: Handle, done: FileDone, path: str, size_bytes: int) -> None:
        if done.error is None and not handle.ended:
            self._durable_bytes[path] = min(size_bytes, len(self.files.get(path, b"")))
        self._deliver(handle, done)

    def _file(self, path: str) -> bytearray:
        if path not in self.files:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return self.files[path]

    def _append(self, effect: FileAppend) -> int:
        content = self.files.setdefault(effect.path, bytearray())
        start = len(content)
        for buffer in effect.buffers:
            content += buffer
        return start

    def _replace(self, effect: FileReplace) -> None:
        self.files[effect.path] = bytearray(b"".join(effect.buffers))

    def _read(self, effect: FileRead) -> bytes:
        content = self._file(effect.path)
        end = len(content) if effect.size_bytes < 0 else effect.position + effect.size_bytes
        return bytes(content[effect.position : end])

    def _sync(self, effect: FileSync) -> None:
        self._file(effect.path)

    def _truncate(self, effect: FileTruncate) -> None:
        content = self._file(effect.path)
        content[effect.size_bytes :] = bytes(max(0, effect.size_bytes - len(content)))
        if self._durable_bytes.get(effect.path, 0) > effect.size_bytes:
            self._durable_bytes[effect.path] = effect.size_bytes

    def _delete(self, effect: FileDelete) -> None:
        for path in [path for path in self.files if path == effect.path or path.startswith(effect.path + "/")]:
            del self.files[path]
            self._durable_bytes.pop(path, None)

    def _list(self, effect: FileList) -> list[tuple[str, int]]:
        folder = effect.path.rstrip("/") + "/"
        names = ((path[len(folder) :], len(content)) for path, content in self.files.items() if path.startswith(folder))
        return sorted((name, size_bytes) for name, size_bytes in names if "/" not in name)
