"""The demo: access-log lines through producer, cluster and Spark, every record accounted for.

    lines ──send_table──▶ access (keyed by client address) ──pipeline──▶ table parsed
      └────send_table──▶ access.unkeyed (the same lines, spread evenly)
    table parsed ──by host and hour──▶ access.by-host ──▶ report
      └──▶ access.quarantine (records that do not meet expectations)

`access_log` makes or reads the lines. The pipeline is the project that `fairlead pipeline init`
writes, streaming, and runs unchanged against Apache Kafka and a Spark cluster. `run` goes through
the steps and counts what goes in and comes out of each, `report` prints it.
"""
