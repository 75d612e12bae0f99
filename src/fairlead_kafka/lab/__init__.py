"""The lab: every claim about speed or evenness is an experiment that anyone can run again, in
comparison with other clients ("peers").

An experiment is a module with a function `run` from parameters to rows, and most often one `plot`
from rows to a file; `experiment` wraps the rows into the report that `--json` writes, and holds the
list of experiments. All systems of an experiment run interleaved in one run on the same records,
each in a process of its own (`peers`), so that CPU seconds and memory can be measured separately; a
system that is not installed gives a row with `"skipped": "why"`.

`targets` starts the clusters: Fairlead's in a process of its own, and Apache Kafka from Maven
Central (`apache_kafka`); `faulty_targets` the same with brokers that can be made slow or dead.
Records sent are counted in the partitions (`held`). Three kinds of load: as fast as a client goes
(`peers.sending`, `peers.reading`), an open loop at a fixed rate (`pacing`, `peers.paced`), and as
hard as the client goes while a broker fails (`peers.pressed`).

Absolute figures move by a factor of two from hour to hour on small machines: compare figures of one
run, and prefer CPU seconds per million records, which vary less.
"""
