"""A Spark session of a system in a process of its own, which runs one job after the other
(`peers.spark_jobs`)."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType

from fairlead_kafka.base.errors import FairleadError
from fairlead_kafka.base.json_types import Json, JsonObject, json_object, text_at
from fairlead_kafka.lab.maven import Unavailable
from fairlead_kafka.lab.processes import descendants, program
from fairlead_kafka.lab.spark_connector import connector_jars, connector_python

SYSTEMS = ("fairlead", "spark-sql-kafka")
_JOBS = Path(__file__).parent / "peers" / "spark_jobs.py"


class JobFailed(FairleadError):
    """A job of a session failed; the message is Spark's."""


_LIMITED = """#!/bin/sh
ulimit -d {kilobytes}
exec "{interpreter}" "$@"
"""


class SparkSystem:
    """A session of a system with a driver of `heap` memory; a context manager. Raises Unavailable
    if the system cannot be had here.

    `worker_limit_mb`: what each Python process may take for data (RLIMIT_DATA, in 2**20 bytes); the
    kernel refuses it more.
    """

    def __init__(
        self,
        system: str,
        heap: str = "1g",
        config: Mapping[str, str] | None = None,
        worker_limit_mb: int | None = None,
    ) -> None:
        settings = {"spark.driver.memory": heap, **(config or {})}
        interpreter = Path(sys.executable)
        if system == "spark-sql-kafka":
            settings["spark.jars"] = ",".join(map(str, connector_jars()))
            interpreter = connector_python()
        elif find_spec("pyspark") is None:
            raise Unavailable("pyspark is not installed; pip install 'fairlead-kafka[spark]'")
        self.system = system
        self._log = tempfile.NamedTemporaryFile(  # noqa: SIM115
            "w+", prefix="fairlead-lab-spark-", suffix=".log", errors="replace"
        )
        self._folder = tempfile.TemporaryDirectory(prefix="fairlead-lab-spark-")
        what: JsonObject = {"system": system, "config": settings}
        if worker_limit_mb is not None:
            limited = Path(self._folder.name) / "python"
            limited.write_text(_LIMITED.format(kilobytes=worker_limit_mb * 1024, interpreter=interpreter))
            limited.chmod(0o755)
            what["worker_python"] = str(limited)
        command = [str(interpreter), "-u", str(_JOBS), json.dumps(what)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, text=True
        )
        self.version = text_at(self._answer(), "version")
        """Spark's version."""

    def ask(self, job: str, **arguments: Json) -> JsonObject:
        """Have the session do a job; returns its answer, with its duration under `seconds`. Raises
        JobFailed."""
        assert self._process.stdin is not None
        print(json.dumps({"job": job, **arguments}), file=self._process.stdin, flush=True)
        answer = self._answer()
        if "failed" in answer:
            raise JobFailed(f"{self.system}, {job}: {answer['failed']}")
        return answer

    @property
    def process_id(self) -> int:
        """Process id of the driver's Python; the JVM and the workers are below it."""
        return self._process.pid

    def kind_of(self, process_id: int) -> str | None:
        """Kind of one of the session's processes: driver, jvm or worker.

        None for other processes.
        """
        if process_id == self._process.pid:
            return "driver"
        if process_id not in set(descendants(self._process.pid)):
            return None
        return "jvm" if program(process_id) == "java" else "worker"

    def close(self) -> None:
        """End the session. Safe to call twice."""
        if self._process.poll() is None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            try:
                self._process.wait(30)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._log.close()
        self._folder.cleanup()

    def _answer(self) -> JsonObject:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._log.seek(0)
            raise JobFailed(f"{self.system}: the Spark session ended: {self._log.read().strip()[-1000:]}")
        return json_object(line)

    def __enter__(self) -> SparkSystem:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
