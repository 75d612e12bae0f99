"""The demo: access-log lines through the whole house, every record accounted for.

    lines ──send_table──▶ access (keyed by client address) ──Spark──▶ parsed ──group by host──▶ access.by-host ──▶ report
      │                                                        └──▶ access.quarantine (what does not parse)
      └────send_table──▶ access.unkeyed (the same, spread evenly)

`access_log` makes or reads the lines, `pipeline` is the Spark job and would run unchanged against Apache Kafka and a Spark
cluster, `run` goes through the steps and counts what goes in and comes out of each, `report` prints it.
"""
