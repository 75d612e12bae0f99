"""Fetched data that no poll has taken yet, with its bytes by node.

While the bytes of a node are too many, no fetch is sent to it.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping

from fairlead_kafka.base.checks import holds, same
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.consumer.partition import Chunk, PartitionState
from fairlead_kafka.core.group_offsets import Position


class Waiting:
    """Chunks that wait for a poll, oldest first.

    Chunks of a paused partition are set aside and do not hold fetches back: up to
    `parked_max_bytes` of each.
    """

    def __init__(self, parked_max_bytes: int) -> None:
        self._parked_max_bytes = parked_max_bytes
        self._chunks: deque[Chunk] = deque()
        self._bytes: dict[int, int] = {}
        self._parked: dict[TopicPartition, list[Chunk]] = {}

    def add(self, chunk: Chunk) -> None:
        """Add a chunk that was fetched."""
        self._chunks.append(chunk)
        self._bytes[chunk.node_id] = self._bytes.get(chunk.node_id, 0) + len(chunk.data)

    def take(self, max_bytes: int) -> list[Chunk]:
        """The oldest chunks: one at least, if there is any, then as long as the sum stays within
        `max_bytes`."""
        taken: list[Chunk] = []
        size_bytes = 0
        while self._chunks and (not taken or size_bytes + len(self._chunks[0].data) <= max_bytes):
            chunk = self._chunks.popleft()
            taken.append(chunk)
            size_bytes += len(chunk.data)
            self._bytes[chunk.node_id] -= len(chunk.data)
        return taken

    def keep(self, wanted: Callable[[Chunk], bool]) -> None:
        """Drop the chunks that are not wanted."""
        kept: deque[Chunk] = deque()
        for chunk in self._chunks:
            if wanted(chunk):
                kept.append(chunk)
            else:
                self._bytes[chunk.node_id] -= len(chunk.data)
        self._chunks = kept
        for partition in list(self._parked):
            chunks = [chunk for chunk in self._parked.pop(partition) if wanted(chunk)]
            if chunks:
                self._parked[partition] = chunks

    def park(self, state: PartitionState) -> None:
        """Set the chunks of a paused partition aside; chunks beyond `parked_max_bytes` are dropped,
        and fetched again later."""
        mine = [chunk for chunk in self._chunks if chunk.partition == state.partition]
        self._chunks = deque(chunk for chunk in self._chunks if chunk.partition != state.partition)
        kept: list[Chunk] = []
        kept_bytes = 0
        for chunk in mine:
            self._bytes[chunk.node_id] -= len(chunk.data)
            if kept and kept_bytes + len(chunk.data) > self._parked_max_bytes:
                state.position = chunk.start
                break
            kept.append(chunk)
            kept_bytes += len(chunk.data)
        for chunk in mine[len(kept) + 1 :]:
            self._bytes[chunk.node_id] -= len(chunk.data)
        if kept:
            self._parked[state.partition] = kept

    def unpark(self, state: PartitionState) -> None:
        """Put the chunks that `park` set aside in front of all others again."""
        chunks = self._parked.pop(state.partition, [])
        for chunk in chunks:
            self._bytes[chunk.node_id] += len(chunk.data)
        self._chunks.extendleft(reversed(chunks))

    def positions(self) -> dict[TopicPartition, Position]:
        """Position of the next record to return, of each partition of which data wait; from any
        thread."""
        found: dict[TopicPartition, Position] = {
            partition: chunks[0].position for partition, chunks in list(self._parked.items())
        }
        for chunk in list(self._chunks):
            found.setdefault(chunk.partition, chunk.position)
        return found

    def of_partition(self, partition: TopicPartition) -> bool:
        """True if data of `partition` wait, and it is not paused."""
        return any(chunk.partition == partition for chunk in self._chunks)

    def of_node(self, node_id: int) -> int:
        """Bytes of the node that wait, but for those of paused partitions."""
        return self._bytes.get(node_id, 0)

    def size_bytes(self) -> int:
        """Bytes that wait, but for those of paused partitions; from any thread."""
        return sum(len(chunk.data) for chunk in list(self._chunks))

    def check(self, partitions: Mapping[TopicPartition, PartitionState]) -> None:
        """Raise CheckFailed unless the counts of bytes are those of the chunks, and every chunk is
        of one of `partitions`, at its present generation."""
        waiting: Counter[int] = Counter()
        for chunk in self._chunks:
            waiting[chunk.node_id] += len(chunk.data)
        same(
            "bytes that wait by node",
            {node_id: size for node_id, size in self._bytes.items() if size},
            dict(waiting),
        )
        parked = [chunk for chunks in self._parked.values() for chunk in chunks]
        for chunk in (*self._chunks, *parked):
            holds(
                f"a chunk of {chunk.partition} waits that is obsolete",
                partitions[chunk.partition].generation == chunk.generation,
            )
            holds(
                f"a chunk of {chunk.partition} goes from {chunk.start} to {chunk.next_offset}",
                chunk.start < chunk.next_offset,
            )
        for partition, chunks in self._parked.items():
            holds(f"{partition} is not paused and has parked chunks", partitions[partition].paused)
            size_bytes = sum(len(chunk.data) for chunk in chunks)
            holds(
                f"{partition} has {size_bytes} bytes parked",
                len(chunks) == 1 or 0 < size_bytes <= self._parked_max_bytes,
            )
