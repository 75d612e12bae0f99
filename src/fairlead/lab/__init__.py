"""The lab: every claim about speed or evenness is an experiment that anyone can run again, beside the peers.

An experiment is a function from parameters to rows; `experiment` wraps its rows into the report that `--json` writes, and holds the
list of experiments. All systems of an experiment run interleaved in one run on the same records, each in a process of its own
(`peers.run`), so that CPU seconds can be told apart; a system that is not installed gives a row with `"skipped": "why"`.

`targets` starts what is produced to: our own cluster in a process of its own, and Apache Kafka from Maven Central
(`apache_kafka`). Absolute figures move by a factor of two from hour to hour on small machines: compare figures of one run, and
prefer CPU seconds per million records, which hold still.
"""
