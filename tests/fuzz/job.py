"""One process of a fuzzing run; a module of its own, for a spawned process cannot import `__main__`
of a package."""

from __future__ import annotations

import argparse
import faulthandler
import logging
from typing import Any

STUCK_S = 300.0
"""A process that says nothing for so long hangs in native code: it is ended, with the place
printed."""
SLOW_S = 5.0
"""A run that takes more of the processor's time is no fault, and its tape is kept: runs take
milliseconds, and one that takes seconds may be busy with next to nothing."""


def run_job(task: tuple[str, int, argparse.Namespace]) -> dict[str, Any]:
    """(target, seed, the command line's arguments): fuzz, print and store what is found; what was
    done, for the record."""
    name, seed, arguments = task
    from tests.fuzz.engine import CORPUS, Finding, fuzz, smallest, stored
    from tests.fuzz.targets import TARGETS

    target = TARGETS[name]
    target.prepare()
    faulthandler.enable()
    faulthandler.dump_traceback_later(arguments.seconds + STUCK_S, exit=True)

    def found(finding: Finding) -> None:
        finding = smallest(name, target.run, finding)
        arguments.findings.mkdir(parents=True, exist_ok=True)
        path = arguments.findings / finding.name
        path.write_bytes(finding.tape)
        print(
            f"{name}, seed {seed}: {finding.what}\n  python -m tests.fuzz {name} --replay "
            f"{path}\n{finding.trace}",
            flush=True,
        )

    logging.lastResort = None  # or each warning goes to stderr
    corpus = stored(name)
    outcome = fuzz(
        name,
        target.run,
        seed,
        seconds=arguments.seconds,
        guided=not arguments.unguided,
        corpus=corpus,
        on_finding=found,
    )
    faulthandler.cancel_dump_traceback_later()
    if outcome.slowest_s > SLOW_S:
        arguments.findings.mkdir(parents=True, exist_ok=True)
        path = arguments.findings / f"{name}-slow-{seed}.bin"
        path.write_bytes(outcome.slowest)
        print(f"{name}, seed {seed}: a run took {outcome.slowest_s:.1f} s: {path}", flush=True)
    if arguments.keep:
        folder = CORPUS / name
        folder.mkdir(parents=True, exist_ok=True)
        for nth, tape in enumerate(sorted(outcome.kept, key=len)[: arguments.keep]):
            (folder / f"seed{seed}-{nth:03}.bin").write_bytes(tape)
    return {
        "runs": outcome.runs,
        "inputs": outcome.inputs,
        "lines": outcome.lines,
        "seconds": outcome.seconds,
        "slowest_s": outcome.slowest_s,
        "findings": list(outcome.findings),
    }
