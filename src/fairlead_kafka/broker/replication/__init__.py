"""Replication: every partition on several brokers, and only records acknowledged that survive the
loss of one of them.

Theory of operation. Of a partition's replicas one leads: it appends produced batches, and the
others follow it. Between each pair of brokers there is one stream for all partitions that one
follows and the other leads (`stream`: its bytes; a private request over `broker.links`). The
follower asks, and the leader answers with the new batches of all partitions together, as they are
in its log; asking for the next answer acknowledges that the last one is written. So the cost of
replication is by the batch and by the answer, and an idle partition costs nothing (`feed` is the
leader's end, `fetcher` the follower's).

    leader:    produce ─▶ log ──written──▶ Feed ══answer══▶
    follower:      Fetcher ─▶ log ──written──▶ pull ══▶
    leader:            Feed ─▶ Led: high watermark ─▶ acks=all, readers

A replica that begins to follow, or learns of a new leader epoch, first *meets* its leader: it sends
the end offset and last epoch of its log, and the leader answers where to truncate it if the logs
diverge before that (KIP-101, KIP-279; `rules`), or to start from scratch if the leader has nothing
that old any more. Meetings go in bulk, in the pulls.

The leader keeps for each partition the offsets of its followers (`led`). The high watermark is the
least end offset of all replicas in sync; a record below it survives as long as one of them does. It
does not move while fewer than `min.insync.replicas` are in sync, and never goes back. Followers get
it with the stream. A replica that is behind for `replica.lag.time.max.ms` is proposed to leave
those in sync, one that has caught up is proposed to join; the controller decides (`in_sync`).

Epochs fence. Leader and follower exchange batches of a partition only if both have it in the same
leader epoch; a leader that was replaced and does not know it sees that its followers have dropped
the partition, and so acknowledges nothing more.

`replication` is the package's interface: it follows the controller's image and owns the parts.
"""

from fairlead_kafka.broker.replication.led import Follower, Led, Replicated
from fairlead_kafka.broker.replication.replication import Replication

__all__ = ["Follower", "Led", "Replicated", "Replication"]
