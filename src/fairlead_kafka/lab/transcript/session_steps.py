"""Fetch sessions (KIP-227): begun, continued, lost, mixed up, ended."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from fairlead_kafka.lab.transcript.cluster_steps import appears, create, topic
from fairlead_kafka.lab.transcript.record_steps import produce
from fairlead_kafka.lab.transcript.steps import JUST_CHANGED, PREFIX, Seen, Step, ask, batch
from fairlead_kafka.wire import ApiKey
from fairlead_kafka.wire.messages import FetchRequest

TOPIC = PREFIX + "session"


def _id_of(session: str | int) -> Callable[[Seen], int]:
    return lambda seen: session if isinstance(session, int) else int(seen[session].session_id)


def fetch(
    name: str,
    offsets: dict[int, int],
    session: str | int,
    epoch: int,
    versions: Iterable[int] = (12,),
    keep: str | None = None,
    again_on: Iterable[int] = (),
    max_wait_ms: int = 0,
    forgotten: Iterable[int] = (),
    rack: str = "",
) -> Step:
    """A Fetch step in a session: `session` is the name under which the answer that began it was
    kept, or a number."""

    def topics(seen: Seen) -> list[FetchRequest.FetchTopic]:
        rows = [
            FetchRequest.FetchPartition(
                partition=number,
                current_leader_epoch=-1,
                fetch_offset=offset,
                last_fetched_epoch=-1,
                log_start_offset=-1,
                partition_max_bytes=1 << 20,
            )
            for number, offset in offsets.items()
        ]
        topic_id = seen.id(TOPIC)
        return [FetchRequest.FetchTopic(topic=TOPIC, topic_id=topic_id, partitions=rows)] if rows else []

    def forgotten_topics(seen: Seen) -> list[FetchRequest.ForgottenTopic]:
        rows, topic_id = list(forgotten), seen.id(TOPIC)
        return [FetchRequest.ForgottenTopic(topic=TOPIC, topic_id=topic_id, partitions=rows)] if rows else []

    return ask(
        name,
        ApiKey.FETCH,
        versions,
        keep=keep,
        again_on=again_on,
        replica_id=-1,
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=1 << 20,
        isolation_level=0,
        session_id=_id_of(session),
        session_epoch=epoch,
        topics=topics,
        forgotten_topics_data=forgotten_topics,
        rack_id=rack,
    )


def _life(version: int) -> list[Step]:
    kept, versions = f"session-{version}", (version,)
    return [
        fetch("a session begins", {0: 0, 1: 0}, 0, 0, versions, keep=kept, again_on=JUST_CHANGED),
        fetch("nothing named, nothing read: it comes again", {}, kept, 1, versions),
        fetch("positions", {0: 99, 1: 0}, kept, 2, versions),
        fetch("a position out of range stays one", {}, kept, 3, versions),
        fetch("a partition forgotten", {}, kept, 4, versions, forgotten=(0,)),
        fetch("a partition joins", {2: 0}, kept, 5, versions),
        fetch("one that is not there", {7: 0}, kept, 6, versions),
        fetch("which is told again", {}, kept, 7, versions),
        fetch("an epoch that was", {}, kept, 3, versions),
        fetch("an epoch to come", {}, kept, 99, versions),
        fetch("the end", {0: 0}, kept, -1, versions),
        fetch("after the end", {}, kept, 8, versions),
    ]


STEPS: list[Step] = [
    create("a topic for sessions", topic(TOPIC, 3, retention_ms="-1")),
    appears(TOPIC),
    produce("a record", batch(b"a"), to=TOPIC, again_on=JUST_CHANGED),
    fetch("all three are led by now", {0: 0, 1: 0, 2: 0}, 0, -1, again_on=JUST_CHANGED),
    *(step for version in (7, 11, 12, 13, 17) for step in _life(version)),
    fetch("empty from the start", {}, 0, 0, keep="empty"),
    fetch("a partition joins an empty one", {1: 0}, "empty", 1),
    produce("a record for it", batch(b"b"), to=TOPIC, partition=1),
    fetch("news", {}, "empty", 2),
    fetch("and its position", {1: 1}, "empty", 3),
    fetch("no news", {}, "empty", 4),
    fetch("no news, with patience", {}, "empty", 5, max_wait_ms=10),
    fetch("by ids in a session of names", {}, "empty", 6, (13,)),
    fetch("by names again", {}, "empty", 6),
    fetch("a full fetch in its place", {1: 1}, "empty", 0),
    fetch("the one that was replaced", {}, "empty", 7),
    fetch("no such session", {}, 123456, 1, (7, 12, 17)),
    fetch("no session, and an epoch", {0: 0}, 0, 5),
    fetch("an epoch below", {0: 0}, 0, -7),
    fetch("from a rack", {0: 0}, 0, -1, (11, 17), rack="r1"),
]
