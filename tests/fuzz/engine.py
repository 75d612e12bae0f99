"""Runs a target on many tapes: fresh ones, and changed ones of those that reached something new.
Counts, and keeps what was found."""

from __future__ import annotations

import hashlib
import resource
import signal
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any

from tests.fuzz.coverage import Coverage
from tests.fuzz.tape import Tape, changed, fresh

CORPUS = Path(__file__).parent / "corpus"
POOL_MAX = 2000
"""Tapes kept for changing; then the oldest goes."""
FRESH_SHARE = 0.3
RUN_MAX_S = 30.0
"""A single run that takes more of the processor's time hangs: all of them take milliseconds, and
virtual time is free."""
GROWTH_MAX_BYTES = 400 << 20
"""By how much one run may raise the process's greatest resident size: two batches inflated to 128
MiB, and some."""

Run = Callable[[Tape], int]


class Hang(BaseException):
    """A run took longer than `RUN_MAX_S`. No ordinary exception, or what guards against those would
    take it for its own."""


class Swollen(Exception):
    """A run took more than `GROWTH_MAX_BYTES` of memory."""


@dataclass
class Finding:
    """What a tape brought out. Findings are one if they were raised in the same place."""

    target: str
    tape: bytes
    what: str
    trace: str

    @property
    def name(self) -> str:
        """A file name for the tape."""
        return f"{self.target}-{hashlib.sha256(self.what.encode()).hexdigest()[:10]}.bin"


@dataclass
class Outcome:
    """The counts of one job."""

    target: str
    seed: int
    runs: int = 0
    inputs: int = 0
    seconds: float = 0.0
    lines: int = 0
    kept: list[bytes] = field(default_factory=list)
    findings: dict[str, Finding] = field(default_factory=dict)
    slowest_s: float = 0.0
    """Seconds of the processor's time of the run that took longest."""
    slowest: bytes = b""
    """Its tape."""


def attempt(name: str, run: Run, data: bytes) -> tuple[int, Finding | None]:
    """Run one tape: how many inputs it made, and what it brought out."""
    tape = Tape(data)
    before = _peak_bytes()
    try:
        with _limited():
            made = run(tape)
        if (growth := _peak_bytes() - before) > GROWTH_MAX_BYTES:
            raise Swollen(f"one run raised the greatest resident size by {growth >> 20} MiB")
    except (Exception, Hang) as error:
        return 1, Finding(name, data, _place(error), "".join(traceback.format_exception(error)))
    return made, None


def fuzz(
    name: str,
    run: Run,
    seed: int,
    *,
    seconds: float | None = None,
    runs: int | None = None,
    guided: bool = True,
    corpus: Sequence[bytes] = (),
    on_finding: Callable[[Finding], None] = lambda finding: None,
) -> Outcome:
    """Run until the time or the number of runs is over. The same seed, without `seconds`, is the
    same runs."""
    rng = Random(f"{name} {seed}")
    outcome = Outcome(name, seed)
    coverage = Coverage()
    pool = list(corpus)
    started = time.monotonic()
    while (runs is None or outcome.runs < runs) and (seconds is None or time.monotonic() - started < seconds):
        data = _next(rng, outcome.runs, corpus, pool)
        begun_s = time.process_time()
        if guided:
            with coverage:
                made, finding = attempt(name, run, data)
        else:
            made, finding = attempt(name, run, data)
        took_s = time.process_time() - begun_s
        if took_s > outcome.slowest_s:
            outcome.slowest_s, outcome.slowest = took_s, data
        outcome.runs += 1
        outcome.inputs += made
        if coverage.take() and finding is None and outcome.runs > len(corpus):
            outcome.kept.append(data)
            pool.append(data)
            del pool[:-POOL_MAX]
        if finding is not None and finding.what not in outcome.findings:
            outcome.findings[finding.what] = finding
            on_finding(finding)
    outcome.seconds = time.monotonic() - started
    outcome.lines = coverage.lines
    return outcome


def smallest(name: str, run: Run, finding: Finding, seconds: float = 15.0) -> Finding:
    """A shorter tape with the same outcome: pieces are taken out, and bytes set to zero, as long as
    it stays."""
    best = finding.tape.rstrip(b"\0")
    size, until = len(best), time.monotonic() + seconds
    while size and time.monotonic() < until:
        size = min(size, max(1, len(best)))
        at = 0
        while at < len(best) and time.monotonic() < until:
            for shorter in (best[:at] + best[at + size :], best[:at] + bytes(size) + best[at + size :]):
                if shorter.rstrip(b"\0") == best or len(shorter) > len(best):
                    continue
                _, found = attempt(name, run, shorter)
                if found is not None and found.what == finding.what:
                    best = shorter.rstrip(b"\0")
                    break
            at += size
        size //= 2
    return Finding(name, best, finding.what, finding.trace)


def stored(name: str) -> list[bytes]:
    """The tapes that the repository keeps for a target."""
    return [path.read_bytes() for path in sorted((CORPUS / name).glob("*.bin"))]


def _next(rng: Random, nth: int, corpus: Sequence[bytes], pool: list[bytes]) -> bytes:
    if nth < len(corpus):
        return corpus[nth]
    if not pool or rng.random() < FRESH_SHARE:
        return fresh(rng)
    return changed(rng, rng.choice(pool), pool)


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _place(error: BaseException) -> str:
    """The kind of an error and where it came from: the last places of ours, without what differs
    from input to input."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if "fairlead_kafka" in frame.filename or "fuzz" in frame.filename
    ]
    where = " < ".join(
        f"{Path(frame.filename).stem}.{frame.name}:{frame.lineno}" for frame in reversed(frames[-3:])
    )
    return getattr(error, "place", "") or f"{type(error).__name__} in {where}"


@contextmanager
def _limited() -> Iterator[None]:
    """Raise Hang in the middle of whatever runs too long. Only on the main thread."""

    def ring(_signal: int, _frame: FrameType | None) -> Any:
        raise Hang(f"more than {RUN_MAX_S:g} s of the processor's time")

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, RUN_MAX_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
