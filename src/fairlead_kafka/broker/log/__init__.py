"""The log of a broker: all its partitions in one sequence of files.

Theory of operation. Every batch of every partition is appended to the same file, in the order of
arrival, behind a small header that names its partition (`entry`). An index in memory has the places
and producers of each partition's batches (`index`). A partition is therefore an entry in a
dictionary, not a folder: 30,000 idle ones cost some hundred bytes each, and one write, and one
`fdatasync`, serve all appends of the same step (`writer`).

A partition has Kafka's semantics: offsets, leader epochs, a log start that retention and
DeleteRecords raise, the end of what is written, and a high watermark below which consumers read,
which replication raises (`partition`). A leader assigns offsets to batches, a replica appends its
leader's batches; a replica may be truncated, or restarted at another offset. Every other change of
a partition is a *note* in the same file, in order, so that reading the file from its start repeats
all changes. Idempotent producers are remembered by their last five batches (`producers`),
transactions open, ended and aborted too, and with them the last stable offset, below which readers
of committed records stay (`transactions`). Retention and the like come from the topic's configs
(`limits`).

Reading goes to a cache of the newest batches, then to the files, several batches in one read where
they lie close (`cache`, `reader`); a batch that is damaged fails alone. Records are found by their
time too (`by_time`). Deleting raises log start offsets. Compaction decides for each record whether
it stays (`compaction`), and gives batches a new place (`moving`): an entry at the end of the log
that takes the place of the old one once it is synced. Files in which little is alive are emptied in
the same way, both a piece at a time (`cleaner`); a file in which nothing is alive is deleted
(`segments`).

Checkpoints of the state in memory (`checkpoint`, `checkpoints`) make starting quick: recovery loads
the newest intact one and reads the entries behind it (`recovery`, `scan`, `replay`). It cuts a torn
tail and refuses anything worse, with the reason. A write that fails is undone, and the log is
repaired once the disk works (`writer`).

`Logs` is the package's interface. File effects go through `broker.files`, and `flush` is called at
the end of each step.
"""

from fairlead_kafka.broker.log.by_time import TimedRecord
from fairlead_kafka.broker.log.index import Location
from fairlead_kafka.broker.log.limits import TopicLimits
from fairlead_kafka.broker.log.logs import Logs
from fairlead_kafka.broker.log.partition import Partition
from fairlead_kafka.broker.log.reader import ReadBatch, readable
from fairlead_kafka.broker.log.recovery import RecoveryResult
from fairlead_kafka.broker.log.settings import LogSettings
from fairlead_kafka.broker.log.transactions import AbortedRange

__all__ = [
    "AbortedRange",
    "Location",
    "LogSettings",
    "Logs",
    "Partition",
    "ReadBatch",
    "RecoveryResult",
    "TimedRecord",
    "TopicLimits",
    "readable",
]
