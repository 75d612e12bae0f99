"""The module in which PySpark finds the `fairlead` format: it imports modules named `pyspark_*` and
takes their `DefaultSource`.

Every planner process imports this module, so it does nothing else, but for Spark 3.5 and older:
those have no such sources, and an import fails with the reason.
"""

from fairlead_kafka.spark.versions import ensure_served

ensure_served()

from fairlead_kafka.spark.source import FairleadSource as DefaultSource  # noqa: E402

__all__ = ["DefaultSource"]
