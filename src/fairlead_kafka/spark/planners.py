"""Finds out which of Spark's Python processes it runs in, because some checks are for one of them
only.

Spark calls the same method of a source in several processes, and does not say for what. Each
process runs one module of PySpark, by which it is recognized.
"""

from __future__ import annotations

import sys

PUSHES_FILTERS = "pyspark.sql.worker.data_source_pushdown_filters"
"""Module that passes filters to the reader of a batch read."""
PLANS_WRITE = "pyspark.sql.worker.write_into_data_source"
"""Module that makes the writer that tasks get, for each write and each micro-batch; no task has
begun."""


def runs(worker: str) -> bool:
    """Whether this process runs that module of PySpark's."""
    main = sys.modules.get("__main__")
    return worker in sys.modules or getattr(getattr(main, "__spec__", None), "name", None) == worker


def filters_pushed_down() -> bool:
    """Whether this is the process in which Spark passes filters to a reader. Spark 4.0 has none."""
    return runs(PUSHES_FILTERS)
