"""The log of a broker: all its partitions in one.

Theory of operation. Every batch of every partition is appended to the same file, in the order of arrival, behind a small header
that says whose it is (`entry`). An index in memory tells for each partition where its batches lie (`index`). A partition is
therefore an entry in a dictionary, not a folder: 30,000 idle ones cost nothing, and one write, and one `fdatasync`, serve
everybody who appended in the same moment (`writer`).

What a partition means is Kafka's: offsets without gaps, leader epochs, a log start that retention and DeleteRecords raise, a
high watermark below which consumers read (`partition`); with one replica it is the end of what is written. Idempotent producers
are remembered by their last five batches (`producers`). Transactions open, ended and aborted are remembered too, and with them the
last stable offset, below which readers of committed records stay (`transactions`).

Reading goes to a cache of the newest batches, then to the files, several batches in one read where they lie close (`cache`,
`reader`). Deleting moves floors; a file goes when nothing in it is alive (`segments`). The floors themselves are kept in a small
file of their own, written before any file is deleted.

At a start one scan of the files rebuilds all of it (`recovery`). `Logs` is the whole to the outside. It does nothing by itself:
file effects go through `broker.files`, and `flush` is called at the end of each step.
"""

from fairlead.broker.log.index import Location
from fairlead.broker.log.logs import Logs
from fairlead.broker.log.partition import Partition, TopicLimits
from fairlead.broker.log.recovery import RecoveryResult
from fairlead.broker.log.transactions import AbortedRange

__all__ = ["AbortedRange", "Location", "Logs", "Partition", "RecoveryResult", "TopicLimits"]
