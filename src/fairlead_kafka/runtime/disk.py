"""File effects on a real disk: appends and reads at once, in the page cache; syncs on a thread.

Effects on one path are carried out in order. `FileSync` and `FileReplace` wait for the device and
run on one worker thread; after a replace, effects on the same path (or a folder that holds it) are
held back until it is done. A sync delays no other effect: it covers all appends before it, and
sometimes later ones.

A process may run out of descriptors because of its connections, which is no fault of its disk: no
effect fails because of that. Some descriptors are kept in reserve (`descriptors`), and if they do
not suffice the effect is tried again a little later, and later effects on its path wait.
"""

from __future__ import annotations

import contextlib
import os
import queue
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fairlead_kafka.core.effects import (
    Buffer,
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
from fairlead_kafka.runtime.descriptors import RETRY_NS, Reserve, is_shortage
from fairlead_kafka.runtime.handle import Handle

AtOnce = FileAppend | FileRead | FileTruncate | FileDelete | FileList
"""Effects that are carried out on the host's thread, in the page cache."""
OPEN_FILES_MAX = 128
"""Files kept open; the one used longest ago is closed first."""
IOV_MAX = max(16, min(os.sysconf("SC_IOV_MAX"), 1024))
REPLACEMENT_SUFFIX = ".replacement"
"""Suffix of a file that `FileReplace` is still writing. One left by a crash is never listed, and is
overwritten by the next."""


@dataclass(slots=True)
class _OpenFile:
    descriptor: int
    size_bytes: int
    syncs: int = 0
    """Syncs under way on the worker; the file is closed after them."""
    named: bool = False
    """True once its name was synced too, in its folder: another process may have made the file, and
    been killed before it did that."""
    dropped: bool = False
    """True if it is not to be kept open any more."""

    def drop(self) -> None:
        """Close the file, now or, if a sync of it is under way, after that."""
        self.dropped = True
        if not self.syncs:
            os.close(self.descriptor)


class Disk:
    """Carries out file effects for one host. All calls from the host's thread; answers come through
    `deliver`."""

    def __init__(
        self,
        deliver: Callable[[Handle, FileDone], None],
        post: Callable[[Callable[[], None]], None],
        call_later: Callable[[int, Callable[[], None]], None],
    ) -> None:
        self._deliver = deliver
        self._post = post
        self._call_later = call_later
        self._reserve = Reserve()
        self._open: OrderedDict[str, _OpenFile] = OrderedDict()
        self._held: dict[
            str, list[tuple[Handle, FileEffect]]
        ] = {}  # path under replacement → effects that wait for it
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._worker: threading.Thread | None = None
        self._closed = False

    def carry_out(self, handle: Handle, effect: FileEffect) -> None:
        """Carry out a file effect, now or on the worker; FileDone follows either way."""
        for path, waiting in self._held.items():
            if _related(path, effect.path):
                waiting.append((handle, effect))
                return
        if isinstance(effect, FileSync):
            self._sync(handle, effect)
        elif isinstance(effect, FileReplace):
            self._replace(handle, effect)
        else:
            self._perform(handle, effect)

    def _perform(self, handle: Handle, effect: AtOnce) -> None:
        try:
            value = self._reserve.spend(lambda: self._done(effect))
        except OSError as error:
            self._failed(handle, effect, error)
        else:
            self._deliver(handle, FileDone(effect.token, value))

    def _done(self, effect: AtOnce) -> FileValue:
        """Carry out a file effect that needs no worker; returns the value for its FileDone."""
        if isinstance(effect, FileAppend):
            return self._append(effect)
        if isinstance(effect, FileRead):
            return self._read(effect)
        if isinstance(effect, FileList):
            return _list_files(effect)
        if isinstance(effect, FileTruncate):
            self._truncate(effect)
        elif isinstance(effect, FileDelete):
            self._delete(effect)
        else:
            raise TypeError(f"{effect!r} is no effect")
        return None

    def _failed(self, handle: Handle, effect: FileEffect, error: OSError) -> None:
        """Answer a failed effect by FileDone with `error`. If no file descriptor
        was left, it is tried again later instead, and later effects on the same path wait."""
        if not is_shortage(error):
            self._deliver(handle, FileDone(effect.token, None, error))
            return
        waiting = self._held.setdefault(effect.path, [])
        waiting.insert(0, (handle, effect))
        self._call_later(RETRY_NS, lambda: self._release(effect.path))

    def _release(self, path: str) -> None:
        for waiter, waiting in self._held.pop(path, ()):
            self.carry_out(waiter, waiting)

    def forget(self, handle: Handle) -> None:
        """Drop the held back effects of an ended machine; the worker finishes what it has begun."""
        for path, waiting in self._held.items():
            self._held[path] = [entry for entry in waiting if entry[0] is not handle]

    def close(self) -> None:
        """Finish what was given to the worker, and close all files."""
        self._closed = True
        if self._worker is not None:
            self._jobs.put(None)
            self._worker.join()
        for opened in self._open.values():
            opened.drop()
        self._open.clear()
        self._reserve.close()

    # On the host's thread

    def _opened(self, path: str, create: bool) -> _OpenFile:
        opened = self._open.get(path)
        if opened is not None:
            self._open.move_to_end(path)
            return opened
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
        except FileNotFoundError:
            if not create:
                raise
            os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
            descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        opened = self._open[path] = _OpenFile(descriptor, os.fstat(descriptor).st_size)
        if len(self._open) > OPEN_FILES_MAX:
            _path, oldest = self._open.popitem(last=False)
            oldest.drop()
        return opened

    def _append(self, effect: FileAppend) -> int:
        opened = self._opened(effect.path, create=True)
        start = opened.size_bytes
        try:
            opened.size_bytes += _write_all(opened.descriptor, effect.buffers)
        except OSError:
            # A full disk must not leave half an append behind.
            os.ftruncate(opened.descriptor, start)
            raise
        return start

    def _read(self, effect: FileRead) -> bytes:
        opened = self._opened(effect.path, create=False)
        wanted = opened.size_bytes - effect.position if effect.size_bytes < 0 else effect.size_bytes
        pieces = []
        position = effect.position
        while wanted > 0:
            piece = os.pread(opened.descriptor, wanted, position)
            if not piece:
                break
            pieces.append(piece)
            position += len(piece)
            wanted -= len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _truncate(self, effect: FileTruncate) -> None:
        opened = self._opened(effect.path, create=False)
        os.ftruncate(opened.descriptor, effect.size_bytes)
        opened.size_bytes = effect.size_bytes

    def _delete(self, effect: FileDelete) -> None:
        self._let_go(effect.path)
        try:
            os.unlink(effect.path)
        except FileNotFoundError:
            return
        except OSError:
            if not os.path.isdir(effect.path):
                raise
            import shutil  # a broker's alone: it loads every compressor that Python has

            shutil.rmtree(effect.path)

    def _let_go(self, path: str) -> None:
        """Close the open file at `path` and those below it: the names will mean other files, or
        none."""
        for name in [name for name in self._open if name == path or name.startswith(path + os.sep)]:
            self._open.pop(name).drop()

    # On the worker

    def _sync(self, handle: Handle, effect: FileSync) -> None:
        try:
            opened = self._reserve.spend(lambda: self._opened(effect.path, create=False))
        except OSError as error:
            self._failed(handle, effect, error)
            return
        named = opened.named
        opened.syncs += 1  # so it stays open, whatever becomes of its name

        def work() -> None:
            failure: OSError | None = None
            try:
                _flush(opened.descriptor)
                if not named:
                    self._reserve.spend(lambda: _sync_folders(os.path.dirname(effect.path)))
            except OSError as error:
                failure = error
            self._post(lambda: self._synced(handle, effect, opened, failure))

        self._give_to_worker(work)

    def _synced(self, handle: Handle, effect: FileSync, opened: _OpenFile, failure: OSError | None) -> None:
        opened.syncs -= 1
        if opened.dropped:
            opened.drop()
        if failure is not None:
            self._failed(handle, effect, failure)
            return
        opened.named = True
        self._deliver(handle, FileDone(effect.token, None))

    def _replace(self, handle: Handle, effect: FileReplace) -> None:
        self._let_go(effect.path)
        self._held[effect.path] = []

        def work() -> None:
            failure: OSError | None = None
            try:
                self._reserve.spend(lambda: _replace_file(effect.path, effect.buffers))
            except OSError as error:
                failure = error
            self._post(lambda: self._replaced(handle, effect, failure))

        self._give_to_worker(work)

    def _replaced(self, handle: Handle, effect: FileReplace, failure: OSError | None) -> None:
        if failure is not None and is_shortage(failure):
            self._failed(handle, effect, failure)
            return
        self._deliver(handle, FileDone(effect.token, None, failure))
        self._release(effect.path)

    def _give_to_worker(self, work: Callable[[], None]) -> None:
        if self._worker is None:
            self._worker = threading.Thread(target=self._run, name="fairlead-disk", daemon=True)
            self._worker.start()
        self._jobs.put(work)

    def _run(self) -> None:
        while (work := self._jobs.get()) is not None:
            work()


def _related(path: str, other: str) -> bool:
    return path == other or path.startswith(other + os.sep) or other.startswith(path + os.sep)


def _write_all(descriptor: int, buffers: Sequence[Buffer]) -> int:
    """Write buffers in order, without joining them; returns how many bytes were written. OSError
    may leave some of them written."""
    views = [view for view in (memoryview(buffer).cast("B") for buffer in buffers) if view.nbytes]
    total = 0
    first = 0
    while first < len(views):
        written = os.writev(descriptor, views[first : first + IOV_MAX])
        total += written
        while first < len(views) and written >= views[first].nbytes:
            written -= views[first].nbytes
            first += 1
        if written:
            views[first] = views[first][written:]
    return total


def _replace_file(path: str, buffers: Sequence[Buffer]) -> None:
    """Replace a file durably: sync the new content, then give it the name, then sync the name."""
    folder = os.path.dirname(path) or "."
    os.makedirs(folder, exist_ok=True)
    temporary = path + REPLACEMENT_SUFFIX
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    try:
        _write_all(descriptor, buffers)
        os.fsync(descriptor)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(temporary)  # on a full disk it only takes room
        raise
    finally:
        os.close(descriptor)
    os.replace(temporary, path)
    _sync_folders(folder)


def _flush(descriptor: int) -> None:
    flush = getattr(os, "fdatasync", os.fsync)  # macOS has no fdatasync
    flush(descriptor)


def _sync_folders(folder: str) -> None:
    """Sync the names in `folder`, and its own name in its parent."""
    for each in (folder or ".", os.path.dirname(folder) or "."):
        descriptor = os.open(each, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _list_files(effect: FileList) -> list[tuple[str, int]]:
    with contextlib.suppress(FileNotFoundError, NotADirectoryError), os.scandir(effect.path) as entries:
        files = [
            entry for entry in entries if entry.is_file() and not entry.name.endswith(REPLACEMENT_SUFFIX)
        ]
        return sorted((entry.name, entry.stat().st_size) for entry in files)
    return []
