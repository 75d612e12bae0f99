"""A share group without members that an admin makes by setting its offset, deletes, and makes again
under the same name, while the network keeps requests to its share coordinator for too long.

A delayed request looks to a broker like a repeated one: its sender has retried long ago, and was
answered. Whatever delayed requests come, the offset that was set last must stay. An admin that is
refused, or not answered, continues with another name: its request may still be executed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.hooks import HOOKS, Method
from fairlead_kafka.broker.controller import OFFSETS_TOPIC
from fairlead_kafka.broker.home import home_partition
from fairlead_kafka.runtime import VirtualHost
from fairlead_kafka.simulation.committer import Asker
from fairlead_kafka.simulation.real_cluster import RealCluster
from fairlead_kafka.simulation.script import Script
from fairlead_kafka.simulation.share_jobs import TOPIC
from fairlead_kafka.wire import ApiKey, Message, PrivateApi
from fairlead_kafka.wire.messages import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
)

QUESTIONS = "share state: a question goes to another broker"
KEPT = (ApiKey.INITIALIZE_SHARE_GROUP_STATE, PrivateApi.DELETE_SHARE_STATE)
"""The requests that the network may keep. One of a leader is fenced by its leader epoch."""
KEPT_SHARE = 0.5
KEPT_MS = 2_500.0
"""Longest time for which a request is kept, ms."""
PAUSE_MS = 150.0
PATIENCE_MS = 1_500.0
"""Time after which an admin waits for an answer no more, ms."""
WRONG_MS = 2_000.0
"""Time for which an offset has to be wrong, ms: a broker that leads no more may tell an old one."""
DELETED_SHARE = 0.5
"""Share of turns in which a group that is there is deleted."""
OFFSET_MAX = 1_000
ALTER_VERSION, DESCRIBE_VERSION, DELETE_VERSION = 0, 1, 2


class Rebirths:
    """Creates and deletes share groups under one name, one after the other, and checks that each
    has its own start offset."""

    def __init__(self, host: VirtualHost, script: Script, cluster: RealCluster, rng: Random) -> None:
        self._host, self._script, self._cluster, self._rng = host, script, cluster, rng
        self._asker = Asker(host)
        self._finished = False
        self._names = 0
        self._round = 0
        self._offset: int | None = None
        """The offset that was set last; None: there is no group."""
        self.looked = 0
        """How often the offset was found to be right."""
        self.kept = 0
        """Requests that the network has kept."""
        self.violations: list[str] = []

    @property
    def _name(self) -> str:
        return f"reborn-{self._names}"

    def begin(self) -> None:
        """Delete the group, or set its start offset and look that up; and do the next a little
        later."""
        if self._finished:
            return
        address = self._coordinator()
        if address is None:
            self._script.after(PAUSE_MS, self.begin)
        elif self._offset is not None and self._rng.random() < DELETED_SHARE:
            request = DeleteGroupsRequest(groups_names=[self._name])
            answered = self._within(self._deleted)
            self._asker.ask(address, ApiKey.DELETE_GROUPS, DELETE_VERSION, request, answered)
        else:
            self._alter(address, self._rng.randrange(OFFSET_MAX))

    def finish(self) -> None:
        """Do nothing more."""
        self._finished = True

    def _coordinator(self) -> str | None:
        """The address of the group's coordinator, as the controller knows it."""
        topic = self._cluster.controller.image.topics.get(OFFSETS_TOPIC)
        if topic is None:
            return None
        leader = topic.partitions[home_partition(self._name, len(topic.partitions))].leader
        return None if leader < 0 else self._cluster.brokers[leader].address

    def _within(self, answered: Callable[..., None]) -> Callable[..., None]:
        """A function that calls `answered` if it is called in time; else the group's name is given
        up for another."""
        self._round += 1
        number = self._round

        def late() -> None:
            if number == self._round:
                self._round += 1
                self._go_on_with_another()

        def in_time(answer: object) -> None:
            if number == self._round:
                self._round += 1
                answered(answer)

        self._script.after(PATIENCE_MS, late)
        return in_time

    def _go_on_with_another(self) -> None:
        self._names += 1
        self._offset = None
        self._script.after(PAUSE_MS * (0.5 + self._rng.random()), self.begin)

    def _alter(self, address: str, offset: int) -> None:
        row = AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestPartition(
            partition_index=0, start_offset=offset
        )
        topic = AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestTopic(
            topic_name=TOPIC, partitions=[row]
        )
        request = AlterShareGroupOffsetsRequest(group_id=self._name, topics=[topic])

        def altered(answer: AlterShareGroupOffsetsResponse | None) -> None:
            rows = [] if answer is None else [row for one in answer.responses for row in one.partitions]
            if answer is None or answer.error_code or not rows or rows[0].error_code:
                self._go_on_with_another()
                return
            self._offset = offset
            self._script.after(PAUSE_MS * self._rng.random(), self._look, None)

        self._asker.ask(
            address, ApiKey.ALTER_SHARE_GROUP_OFFSETS, ALTER_VERSION, request, self._within(altered)
        )

    def _deleted(self, answer: DeleteGroupsResponse | None) -> None:
        if answer is None or answer.results[0].error_code:
            self._go_on_with_another()
        else:
            self._offset = None
            self._script.after(PAUSE_MS * (0.5 + self._rng.random()), self.begin)

    def _look(self, wrong_since_ns: int | None) -> None:
        """Look up the group's offset, at any broker; `wrong_since_ns`: since when it was found to
        be wrong, None: it was not."""
        asked = DescribeShareGroupOffsetsRequest
        topic = asked.DescribeShareGroupOffsetsRequestTopic(topic_name=TOPIC, partitions=[0])
        group = asked.DescribeShareGroupOffsetsRequestGroup(group_id=self._name, topics=[topic])

        def seen(answer: DescribeShareGroupOffsetsResponse | None) -> None:
            found = _offset_in(answer)
            if found is None:
                self._go_on_with_another()
            elif found == self._offset:
                self.looked += 1
                self._script.after(PAUSE_MS * (0.5 + self._rng.random()), self.begin)
            else:
                self._wrong(found, wrong_since_ns or self._host.now_ns())

        self._asker.ask(
            self._rng.choice(self._cluster.brokers).address,
            ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
            DESCRIBE_VERSION,
            asked(groups=[group]),
            self._within(seen),
        )

    def _wrong(self, found: int, since_ns: int) -> None:
        if self._host.now_ns() - since_ns < WRONG_MS * 1e6:
            self._script.after(PAUSE_MS, self._look, since_ns)
            return
        self.violations.append(
            f"share group {self._name}: it is at offset {found} of {TOPIC}-0, and an admin has set it to "
            f"{self._offset}"
        )
        self._go_on_with_another()

    # The network

    @contextmanager
    def keeping(self) -> Iterator[None]:
        """Have the network keep the requests to share coordinators, so that they can be shown,
        while the `with` block runs."""
        with HOOKS[QUESTIONS].replaced(self._keeping):
            yield

    def _keeping(self, ask: Method) -> Method:
        def kept(persister: object, node: int, api_key: int, *arguments: object) -> None:
            ask(persister, node, api_key, *arguments)
            if api_key in KEPT and not self._finished and self._rng.random() < KEPT_SHARE:
                self._script.after(self._rng.random() * KEPT_MS, self._comes, node, api_key, *arguments)

        return kept

    def _comes(
        self, node: int, api_key: ApiKey | PrivateApi, version: int, message: Message, _answered: object
    ) -> None:
        self.kept += 1
        address = self._cluster.brokers[node].address
        self._asker.ask(address, api_key, version, message, lambda _answer: None)


def _offset_in(answer: DescribeShareGroupOffsetsResponse | None) -> int | None:
    """The start offset in an answer; None if it has none."""
    if answer is None or answer.groups[0].error_code:
        return None
    row = answer.groups[0].topics[0].partitions[0]
    return None if row.error_code != ErrorCode.NONE else row.start_offset
