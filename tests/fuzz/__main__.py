"""python -m tests.fuzz TARGET --seconds N --seed S [--jobs J]: runs a target (or `all`), prints
what it did and what it found.

What is found is written as a tape into --findings, and tried again by --replay FILE. --record FILE
appends a line of JSON to a record of all runs, --keep writes tapes that reached new lines into the
corpus of the repository. See docs/fuzzing.md.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from tests.fuzz.job import run_job


def main() -> int:
    """Parse, run, print; the exit code says whether anything was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("target", help="a target, or all of them one after another")
    parser.add_argument("--seconds", type=float, default=10.0, help="for each target")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="processes; each has a seed of its own")
    parser.add_argument("--record", type=Path, help="append a line of JSON for each target")
    parser.add_argument("--findings", type=Path, default=Path(tempfile.gettempdir()) / "fairlead-fuzz")
    parser.add_argument("--replay", type=Path, help="run this tape, and nothing else")
    parser.add_argument(
        "--keep", type=int, default=0, metavar="N", help="write up to N new tapes into the corpus"
    )
    parser.add_argument(
        "--unguided", action="store_true", help="without a look at what was reached: faster, and blind"
    )
    arguments = parser.parse_args()
    from tests.fuzz.targets import TARGETS

    names = list(TARGETS) if arguments.target == "all" else [arguments.target]
    if not set(names) <= set(TARGETS):
        parser.error(f"no such target: {arguments.target}; there are {', '.join(TARGETS)} and all")
    if arguments.replay is not None:
        return _replay(names[0], arguments.replay)
    return 1 if sum(_fuzz(name, arguments) for name in names) else 0


def _fuzz(name: str, arguments: argparse.Namespace) -> int:
    tasks = [(name, arguments.seed + nth, arguments) for nth in range(arguments.jobs)]
    if arguments.jobs == 1:
        results = [run_job(tasks[0])]
    else:  # an executor, for it says so if a process dies
        with ProcessPoolExecutor(arguments.jobs, multiprocessing.get_context("spawn")) as pool:
            results = list(pool.map(run_job, tasks))
    row: dict[str, Any] = {
        "target": name,
        "seed": arguments.seed,
        "jobs": arguments.jobs,
        "seconds": round(max(result["seconds"] for result in results), 1),
    }
    row |= {key: sum(result[key] for result in results) for key in ("runs", "inputs")}
    row |= {"lines": max(result["lines"] for result in results), "guided": not arguments.unguided}
    row["slowest_s"] = round(max(result["slowest_s"] for result in results), 1)
    row["findings"] = sorted({what for result in results for what in result["findings"]})
    counts = (
        f"{row['inputs']:,} inputs in {row['runs']:,} runs, {row['seconds']} s, "
        f"{row['inputs'] / row['seconds']:,.0f} inputs/s"
    )
    print(
        f"{name}: {counts}, {row['lines']:,} lines reached, slowest run {row['slowest_s']} s, "
        f"{len(row['findings'])} findings",
        flush=True,
    )
    if arguments.record is not None:
        with arguments.record.open("a", encoding="utf-8") as record:
            record.write(json.dumps(row) + "\n")
    return len(row["findings"])


def _replay(name: str, path: Path) -> int:
    from tests.fuzz.engine import attempt
    from tests.fuzz.targets import TARGETS

    TARGETS[name].prepare()
    made, finding = attempt(name, TARGETS[name].run, path.read_bytes())
    print(f"{made} inputs, nothing found" if finding is None else f"{finding.what}\n{finding.trace}")
    return finding is not None


if __name__ == "__main__":
    sys.exit(main())
