"""Replication: every partition on several brokers, and nothing acknowledged that could be lost with
one of them.

Theory of operation. Of a partition's replicas one leads: it takes what is produced, and the others
follow it. Between each pair of brokers there is one stream for all partitions that one follows at
the other (`stream`: its bytes; a private request over `broker.links`). The follower asks, the
leader answers with what has come in since, of all partitions together, whole batches as they lie in
its log; asking for the next answer says that the last one is written. So replication costs by the
batch and by the answer, and a partition in which nothing happens costs nothing (`feed` is the
leader's end, `fetcher` the follower's).

    leader:    produce ─▶ log ──written──▶ Feed ══answer══▶
    follower:      Fetcher ─▶ log ──written──▶ pull ══▶
    leader:            Feed ─▶ Led: high watermark ─▶ acks=all, readers

A replica that begins to follow, or hears of a new leader epoch, first meets its leader: it tells
where its log ends and with which epoch, and the leader tells where to cut it if the two part before
that (KIP-101, KIP-279; `rules`), or to start from scratch if the leader has nothing that old any
more. Meetings go in bulk, in the pulls.

The leader keeps for each partition where its followers are (`led`). The high watermark is the least
end of all replicas in sync; below it a record survives as long as one of them does. It does not
move while fewer than `min.insync.replicas` are in sync, and never goes back. Followers hear of it
with the stream. A replica that is behind for `replica.lag.time.max.ms` is proposed to leave those
in sync, one that has come up is proposed to join; the controller decides (`in_sync`).

Epochs fence. Leader and follower speak only of a partition if both have it in the same leader
epoch; a leader that was deposed and does not know it finds that its followers have dropped the
partition, and so acknowledges nothing more.

`replication` is the whole to the outside: it follows the controller's image and hands out the
parts.
"""

from fairlead_kafka.broker.replication.led import Follower, Led
from fairlead_kafka.broker.replication.replication import Replication

__all__ = ["Follower", "Led", "Replication"]
