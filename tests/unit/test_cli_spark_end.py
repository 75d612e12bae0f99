"""What is seen, or not, of Spark's JVM that ends with a command."""

from __future__ import annotations

import subprocess
import sys

LIBRARY = """
import logging
try:
    raise OSError("Answer from Java side is empty")
except OSError:
    logging.exception("Exception while sending command.")
    logging.getLogger("py4j.java_gateway").exception("Error while shutting down")
"""
PROGRAM = f"""
import logging
import py4j.java_gateway
from fairlead_kafka.cli.spark_end import spark_ended
library = compile({LIBRARY!r}, "/site-packages/py4j/java_gateway.py", "exec")
with spark_ended():
    exec(library)
exec(library)  # as on another thread, when the JVM ends
logging.getLogger("ours").error("is shown")
"""


def test_py4j_says_nothing_of_a_jvm_that_has_ended() -> None:
    ran = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert ran.stderr == "ERROR:ours:is shown\n"
