"""Three brokers: requests to leaders and followers, elections, moves, and dying brokers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from fairlead_kafka.lab.transcript.cluster_steps import create, topic
from fairlead_kafka.lab.transcript.record_steps import cut_records, epochs, fetch, list_offsets, produce
from fairlead_kafka.lab.transcript.replica_steps import elect, reassign, reassignments
from fairlead_kafka.lab.transcript.steps import JUST_CHANGED, PREFIX, Kind, Seen, Step, ask, batch
from fairlead_kafka.wire import ApiKey, Message
from fairlead_kafka.wire.messages import CreateTopicsRequest, IncrementalAlterConfigsRequest, MetadataRequest

TOPIC = PREFIX + "three"
"""Topic of three partitions; the preferred leader of partition n is broker n."""
NODES = (0, 1, 2)
_PREFERRED, _UNCLEAN = 0, 1
_ONE = batch(b"one")
_PLACED = [(0, [0, 1, 2]), (1, [1, 2, 0]), (2, [2, 0, 1])]


def at(node: int, step: Step, until: Callable[[Message], bool] | None = None) -> Step:
    """The step `step`, but sent to the broker `node`; `until` as in `Step`."""
    return replace(step, on=str(node), name=f"{step.name}, of broker {node}", until=until)


def _rows(answer: Message) -> dict[int, Message]:
    return {row.partition_index: row for one in answer.topics for row in one.partitions}


def sees(
    name: str, node: int, holds: Callable[[dict[int, Message]], object], versions: Iterable[int] = (12,)
) -> Step:
    """A Metadata step, sent again until the broker knows its controller's decision; then the answer
    is compared."""
    rows = [MetadataRequest.MetadataRequestTopic(name=TOPIC)]
    step = ask(
        name, ApiKey.METADATA, versions, topics=rows, allow_auto_topic_creation=False, again_on=JUST_CHANGED
    )
    return at(node, step, until=lambda answer: bool(_rows(answer)) and bool(holds(_rows(answer))))


def _in_sync(
    *, leaders: tuple[int, ...], alive: Iterable[int] = NODES
) -> Callable[[dict[int, Message]], object]:
    """A condition for answers to Metadata: `leaders` lead the partitions, in order, and exactly the
    living replicas are in sync."""
    living = set(alive)

    def holds(rows: dict[int, Message]) -> bool:
        leading = tuple(rows[number].leader_id for number in sorted(rows))
        return leading == leaders and all(
            set(row.isr_nodes) == living & set(row.replica_nodes) for row in rows.values()
        )

    return holds


def kill(node: int) -> Step:
    """A step that kills a broker by `kill -9`."""
    return Step(f"broker {node} is killed", ApiKey.METADATA, (0,), {}, Kind.KILL, str(node))


def _isr_config(value: str) -> Step:
    configs = [
        IncrementalAlterConfigsRequest.AlterableConfig(
            name="min.insync.replicas", config_operation=0, value=value
        )
    ]
    rows = [
        IncrementalAlterConfigsRequest.AlterConfigsResource(
            resource_type=2, resource_name=TOPIC, configs=configs
        )
    ]
    return ask(
        f"min.insync.replicas {value}",
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        (1,),
        resources=rows,
        validate_only=False,
    )


def _placed_topics(seen: Seen) -> CreateTopicsRequest.CreatableTopic:
    return topic(TOPIC, -1, -1, _PLACED, min_insync_replicas="2", retention_ms="-1")


_CREATED = [
    create("three replicas each", _placed_topics),
    *(sees("all are led", node, _in_sync(leaders=(0, 1, 2)), (9, 12)) for node in NODES),
    create("as many as there are brokers", topic(PREFIX + "three-counted", 6, 3), validate_only=True),
    create("more replicas than there are brokers", topic(PREFIX + "four", 1, 4)),
    create("on a broker that is not there", topic(PREFIX + "four", -1, -1, [(0, [0, 1, 9])])),
    create("unevenly", topic(PREFIX + "uneven", -1, -1, [(0, [0, 1]), (1, [0, 1, 2])])),
    create("twice on one", topic(PREFIX + "four", -1, -1, [(0, [1, 1])])),
]

_ASKED = [
    *(at(node, produce("to broker 0's partition", _ONE, (3, 9, 12), to=TOPIC)) for node in NODES),
    *(at(node, produce("by one replica", _ONE, to=TOPIC, acks=1)) for node in NODES),
    at(1, produce("to broker 1's partition", _ONE, partition=1, to=TOPIC)),
    *(at(node, list_offsets("the end", -1, (8, 10), TOPIC)) for node in NODES),
    *(at(node, list_offsets("the start", -2, (8,), TOPIC)) for node in NODES),
    *(at(node, epochs("the present epoch", 0, (4,), TOPIC)) for node in NODES),
    *(at(node, epochs("in an epoch to come", 0, (4,), TOPIC, epoch=5)) for node in NODES),
    at(0, fetch("from the beginning", 0, (4, 12), TOPIC)),
    at(0, fetch("in an epoch to come", 0, (12,), TOPIC, epoch=5)),
    *(at(node, fetch("in an epoch to come", 0, (12,), TOPIC, epoch=5)) for node in (1, 2)),
    *(at(node, cut_records("the first", 1, (2,), TOPIC)) for node in NODES),
    at(0, cut_records("all there is", -1, (2,), TOPIC)),
    at(0, list_offsets("the start after that", -2, (8,), TOPIC)),
]

_ELECTED = [
    elect("that lead already", _PREFERRED, (0, 1, 2), to=TOPIC),
    reassign("in another order", 0, [1, 2, 0], (1,), to=TOPIC),
    elect("the one preferred now", _PREFERRED, (0,), to=TOPIC),
    *(sees("another leads", node, _in_sync(leaders=(1, 1, 2))) for node in NODES),
    at(0, produce("to who led before", _ONE, (9, 12), to=TOPIC)),
    at(1, produce("to who leads now", _ONE, (9, 12), to=TOPIC, again_on=JUST_CHANGED)),
    at(1, epochs("the epoch before", 0, (4,), TOPIC)),
    at(1, epochs("the present one", 1, (4,), TOPIC)),
    at(1, fetch("in the epoch before", 0, (12,), TOPIC, epoch=0)),
    elect("unclean, though it is led", _UNCLEAN, (0,), to=TOPIC),
]

_MOVED = [
    reassign("to two brokers", 2, [2, 0], (1,), to=TOPIC),
    *(
        sees(
            "moved",
            node,
            lambda rows: (
                rows[2].replica_nodes == [2, 0]
                and set(rows[2].isr_nodes) == {0, 2}
                and rows[2].leader_id == 2
            ),
        )
        for node in NODES
    ),
    reassignments("none is under way", (2,), TOPIC),
    reassign("back to three", 2, [2, 0, 1], (1,), to=TOPIC),
    *(
        sees(
            "moved back",
            node,
            lambda rows: rows[2].replica_nodes == [2, 0, 1] and len(rows[2].isr_nodes) == 3,
        )
        for node in NODES
    ),
    reassign("to other brokers than there are", 2, [2, 9], (1,), to=TOPIC),
]

_KILLED = [
    kill(1),
    sees("one is gone", 2, _in_sync(leaders=(2, 2, 2), alive=(0, 2))),
    at(2, produce("with two in sync", _ONE, (9,), to=TOPIC, again_on=JUST_CHANGED)),
    at(2, elect("the one that is gone", _PREFERRED, (0,), to=TOPIC)),
    at(2, cut_records("that two still have", 2, (2,), TOPIC)),
    kill(0),
    sees("one is left", 2, _in_sync(leaders=(2, 2, 2), alive=(2,))),
    at(2, produce("with one in sync", _ONE, (9,), to=TOPIC, again_on=JUST_CHANGED)),
    at(2, produce("by one replica, with one in sync", _ONE, (9,), to=TOPIC, acks=1)),
    at(2, create("on brokers that are gone", topic(PREFIX + "gone", -1, -1, [(0, [0, 1])]))),
    at(2, _isr_config("1")),
    at(2, produce("as few as there are suffice now", _ONE, (9,), to=TOPIC, again_on={19})),
]

STEPS: tuple[Step, ...] = (*_CREATED, *_ASKED, *_ELECTED, *_MOVED, *_KILLED)
