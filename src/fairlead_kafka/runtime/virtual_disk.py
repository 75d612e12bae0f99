"""File effects on files that exist in memory only, with the answers of `runtime.disk`, and with
simulated power cuts.

Changes that are not synced may be lost in a power cut: an append from any byte on, or any pages of
it while later ones are kept; a deleted file may come back, and a replacement under way has no
effect. File systems promise no more.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable

from fairlead_kafka.base.errors import UsageError
from fairlead_kafka.core.effects import (
    FileAppend,
    FileDelete,
    FileEffect,
    FileList,
    FileRead,
    FileReplace,
    FileSync,
    FileTruncate,
)
from fairlead_kafka.core.events import FileDone, FileValue
from fairlead_kafka.runtime.handle import Handle

PAGE_BYTES = 512
"""Bytes that reach the device as a whole: a sector, the least that disks write."""
_FAILS: dict[int, tuple[type, ...]] = {
    errno.ENOSPC: (FileAppend, FileReplace),
    errno.EROFS: (FileAppend, FileReplace, FileTruncate, FileDelete),
    errno.EIO: (FileAppend, FileReplace, FileTruncate, FileDelete, FileRead, FileSync),
}
"""Error → effects that fail with it: a full disk still reads and deletes, a read-only one syncs."""


class DiskFaults:
    """Faults of a virtual disk: which folders fail, and how."""

    def __init__(self) -> None:
        self._by_folder: dict[str, int] = {}

    def fail(self, folder: str, code: int) -> None:
        """Let file effects below `folder` fail with `code` from now on, if they can fail with it.
        `code` is an errno: ENOSPC (full), EROFS (read-only) or EIO; UsageError for others."""
        if code not in _FAILS:
            raise UsageError(
                f"a disk fails with one of {', '.join(errno.errorcode[one] for one in _FAILS)}, not with "
                f"{code}"
            )
        self._by_folder[folder.rstrip("/")] = code

    def heal(self, folder: str) -> None:
        """Let the folder work again."""
        self._by_folder.pop(folder.rstrip("/"), None)

    def check(self, effect: FileEffect) -> None:
        """Raise OSError if `effect` is to fail."""
        for folder, code in self._by_folder.items():
            if isinstance(effect, _FAILS[code]) and (
                effect.path == folder or effect.path.startswith(folder + "/")
            ):
                raise OSError(code, os.strerror(code), effect.path)


class VirtualDisk:
    """One disk for all machines of a virtual host. `files` may be read and changed by tests."""

    def __init__(self, later: Callable[..., None], deliver: Callable[[Handle, FileDone], None]) -> None:
        self.files: dict[str, bytearray] = {}
        self.sync_ms = 0.0
        """How long FileSync and FileReplace take."""
        self.append_ms = 0.0
        """How long after a FileAppend its answer comes."""
        self.watch: Callable[[Handle, FileEffect], None] = lambda handle, effect: None
        """Called after every effect, before it is answered or synced: a test that cuts the power at
        that point ends the machine here."""
        self.descriptors_max: int | None = None
        """Connections with which a machine cannot open a file any more: both take descriptors of
        one process. None: there is no limit."""
        self.without_descriptor = 0
        """Effects that failed because of `descriptors_max`."""
        self.faults = DiskFaults()
        """Faults by script. An append that fails leaves half of itself behind, which is the worst
        that a real one may do."""
        self._durable_bytes: dict[str, int] = {}
        """Bytes of each file that a power cut leaves; 0 of a file that is not here."""
        self._unlinked: dict[str, bytearray] = {}
        """Deleted files that a power cut brings back: their folder was not synced since."""
        self._replaced_files: dict[str, tuple[bytearray | None, int]] = {}
        """Replacements under way: what was there before (None: nothing) and how much of it is
        durable."""
        self._held_syncs: dict[Handle, list[tuple[FileDone, str, int]]] = {}
        """Machine → its syncs that wait for `release_syncs`: answer, path, and bytes that the file
        had."""
        self._later = later
        self._deliver = deliver

    def carry_out(self, handle: Handle, effect: FileEffect) -> None:
        """Carry out an effect now; FileDone follows, for syncs and replacements after `sync_ms`.
        OSError if no descriptor is left.

        Nothing is done for a machine that has ended.
        """
        if handle.ended:
            return
        try:
            self.faults.check(effect)
            if self.descriptors_max is not None and len(handle.links) >= self.descriptors_max:
                self.without_descriptor += 1
                raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), effect.path)
            done = FileDone(effect.token, self._done(effect))
        except OSError as error:
            if isinstance(effect, FileAppend) and error.errno != errno.EMFILE:
                self._tear(effect)
            done = FileDone(effect.token, None, error)
        if isinstance(effect, FileSync):
            self._begin_sync(handle, done, effect.path, len(self.files.get(effect.path, b"")))
        elif isinstance(effect, FileReplace):
            self._later(self.sync_ms, self._replaced, handle, done, effect)
        else:
            self._later(
                self.append_ms if isinstance(effect, FileAppend) else 0.0, self._deliver, handle, done
            )
        self.watch(handle, effect)

    def _done(self, effect: FileEffect) -> FileValue:
        """Carry out a file effect. Returns the value for its FileDone."""
        if isinstance(effect, FileAppend):
            return self._append(effect)
        if isinstance(effect, FileRead):
            return self._read(effect)
        if isinstance(effect, FileList):
            return self._list(effect)
        if isinstance(effect, FileReplace):
            self._replace(effect)
        elif isinstance(effect, FileSync):
            self._sync(effect)
        elif isinstance(effect, FileTruncate):
            self._truncate(effect)
        elif isinstance(effect, FileDelete):
            self._delete(effect)
        else:
            raise TypeError(f"{effect!r} is no effect")
        return None

    def cut_power(
        self,
        folder: str,
        kept: Callable[[int], int] = lambda size_bytes: 0,
        written: Callable[[], bool] = lambda: True,
    ) -> None:
        """Cut the power below `folder`: of the bytes that were not synced, only the first
        `kept(number of bytes)` are not lost.

        Of these first bytes, `written()` says of each page whether it had been written back; where
        it had not, there are zeros. A deletion counts as one byte: `kept(1)` says whether it stays.
        """
        for path in [path for path in self._replaced_files if path.startswith(folder + "/")]:
            before, self._durable_bytes[path] = self._replaced_files.pop(path)
            self.files.pop(path, None)
            if before is not None:
                self.files[path] = before
        for path in [path for path in self.files if path.startswith(folder + "/")]:
            content, durable = self.files[path], self._durable_bytes.get(path, 0)
            del content[durable + kept(len(content) - durable) :]
            for page in range(durable // PAGE_BYTES, -(-len(content) // PAGE_BYTES)):
                first, stop = max(durable, page * PAGE_BYTES), min(len(content), (page + 1) * PAGE_BYTES)
                if not written():
                    content[first:stop] = bytes(stop - first)
            if not content:
                del self.files[path]
        for path in [path for path in self._unlinked if path.startswith(folder + "/")]:
            content = self._unlinked.pop(path)
            if path not in self.files and not kept(1):
                self.files[path], self._durable_bytes[path] = content, len(content)

    def hold_syncs(self, handle: Handle) -> None:
        """Let the syncs of one machine take until `release_syncs`; all else goes on, as while a
        disk's queue is long."""
        self._held_syncs.setdefault(handle, [])

    def release_syncs(self, handle: Handle, code: int | None = None) -> None:
        """Finish the syncs of a machine that are held; `code`: an errno that they fail with."""
        for done, path, size_bytes in self._held_syncs.pop(handle, ()):
            if code is not None:
                done = FileDone(done.token, None, OSError(code, os.strerror(code), path))
            self._later(0.0, self._synced, handle, done, path, size_bytes)

    def _begin_sync(self, handle: Handle, done: FileDone, path: str, size_bytes: int) -> None:
        held = self._held_syncs.get(handle)
        if held is None:
            self._later(self.sync_ms, self._synced, handle, done, path, size_bytes)
        else:
            held.append((done, path, size_bytes))

    def _synced(self, handle: Handle, done: FileDone, path: str, size_bytes: int) -> None:
        if done.error is None and not handle.ended:
            self._replaced_files.pop(path, None)
            self._durable_bytes[path] = max(
                self._durable_bytes.get(path, 0), min(size_bytes, len(self.files.get(path, b"")))
            )
        self._deliver(handle, done)

    def _replaced(self, handle: Handle, done: FileDone, effect: FileReplace) -> None:
        if done.error is None and not handle.ended:
            self._replaced_files.pop(effect.path, None)
            self._durable_bytes[effect.path] = sum(map(len, effect.buffers))
            folder = os.path.dirname(effect.path)
            for path in [path for path in self._unlinked if os.path.dirname(path) == folder]:
                del self._unlinked[path]
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
        # What comes after it on the same file finds the new content, as on a disk whose host does
        # one thing after the other.
        before = self.files.get(effect.path), self._durable_bytes.get(effect.path, 0)
        self._replaced_files.setdefault(effect.path, before)
        self.files[effect.path] = bytearray(b"".join(effect.buffers))
        self._durable_bytes[effect.path] = 0

    def _tear(self, effect: FileAppend) -> None:
        if effect.path in self.files:
            data = b"".join(effect.buffers)
            self.files[effect.path] += data[: len(data) // 2]

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
        for path in [
            path for path in self.files if path == effect.path or path.startswith(effect.path + "/")
        ]:
            content, durable_bytes = self.files.pop(path), self._durable_bytes.pop(path, 0)
            if durable_bytes:
                self._unlinked[path] = content[:durable_bytes]

    def _list(self, effect: FileList) -> list[tuple[str, int]]:
        folder = effect.path.rstrip("/") + "/"
        names = (
            (path[len(folder) :], len(content))
            for path, content in self.files.items()
            if path.startswith(folder)
        )
        return sorted((name, size_bytes) for name, size_bytes in names if "/" not in name)
