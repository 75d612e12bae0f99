"""Expectations of rows: rows that meet them pass, others are put into quarantine, and both are
counted.

Spark Declarative Pipelines has no `expect`. This one is made of plain columns, so that it runs
wherever the pipeline runs and executors need no package.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from fairlead_kafka.base.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

FAILED = "failed"
"""The column that `bad` adds: the names of the expectations that a row fails."""
OBSERVED = "fairlead.expectations"
"""The metric that `good` observes."""
QUARANTINED = "quarantined"


class Expectations:
    """Named conditions on the columns of a row, each a SQL expression such as `status BETWEEN 100
    AND 599`.

    A row is good if all conditions are true; a condition that is null is not true. Raises
    ConfigError if there is none, or a name is empty.
    """

    def __init__(self, conditions: Mapping[str, str]) -> None:
        if not conditions or not all(name and condition.strip() for name, condition in conditions.items()):
            raise ConfigError(
                'Expectations takes names and SQL conditions, such as {"has a host": "host IS NOT NULL"}'
            )
        self.conditions = dict(conditions)

    def good(self, frame: DataFrame) -> DataFrame:
        """The rows that meet every expectation, columns as they were; those left out are counted,
        by expectation, in the run's report."""
        from pyspark.sql import functions as f

        failures = {name: ~self._holds(name) for name in self.conditions}
        counts = [f.count_if(failure).alias(name) for name, failure in failures.items()]
        any_failure = ~self._all_hold()
        return frame.observe(OBSERVED, f.count_if(any_failure).alias(QUARANTINED), *counts).where(
            self._all_hold()
        )

    def bad(self, frame: DataFrame) -> DataFrame:
        """The rows that fail an expectation, with a column `failed`: the names of those that they
        do not meet."""
        from pyspark.sql import functions as f

        names = [f.when(~self._holds(name), f.lit(name)) for name in self.conditions]
        return frame.where(~self._all_hold()).withColumn(FAILED, f.array_compact(f.array(*names)))

    def _holds(self, name: str) -> Column:
        from pyspark.sql import functions as f

        return f.coalesce(f.expr(self.conditions[name]), f.lit(False))

    def _all_hold(self) -> Column:
        result = None
        for name in self.conditions:
            result = self._holds(name) if result is None else result & self._holds(name)
        assert result is not None
        return result
