"""The module in which PySpark finds the `fairlead` format: it imports modules named `pyspark_*` and
takes their `DefaultSource`.

Every planner process imports this module, so it does nothing else.
"""

from fairlead_kafka.spark.source import FairleadSource as DefaultSource

__all__ = ["DefaultSource"]
