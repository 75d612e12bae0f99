"""The cluster's topics for consumer groups, read from the controller's image."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from fairlead_kafka.broker.consumer_groups import TopicView
from fairlead_kafka.broker.controller import Change, ClusterImage, TopicCreated, TopicImage


class ClusterTopics:
    """Implements `consumer_groups.Topics`; the views of topics are kept until something changes."""

    def __init__(self) -> None:
        self.version = 0
        self.names_version = 0
        self._image = ClusterImage()
        self._views: dict[str, TopicView] = {}

    def follow(self, image: ClusterImage) -> None:
        """Read topics from this image from now on."""
        self._image = image
        self._forget()
        self.names_version += 1

    def changed(self, change: Change) -> None:
        """Called when the cluster changed: views of topics that changed are dropped, and made again
        when needed."""
        self._forget()
        if isinstance(change, TopicCreated):
            self.names_version += 1

    def _forget(self) -> None:
        self.version += 1
        self._views.clear()

    def find(self, name: str) -> TopicView | None:
        """The topic of this name; None if there is none."""
        view = self._views.get(name)
        if view is None:
            topic = self._image.topics.get(name)
            if topic is not None:
                view = self._views[name] = self._view(topic)
        return view

    def by_id(self, topic_id: UUID) -> TopicView | None:
        """The topic of this id; None if there is none."""
        topic = self._image.topics_by_id.get(topic_id)
        return None if topic is None else self.find(topic.name)

    def names(self) -> Iterable[str]:
        """The names of all topics."""
        return self._image.topics

    def _view(self, topic: TopicImage) -> TopicView:
        brokers = self._image.brokers
        racks = []
        for partition in topic.partitions:
            known = (brokers[node_id].node.rack for node_id in partition.replicas if node_id in brokers)
            racks.append(tuple(sorted({rack for rack in known if rack is not None})))
        return TopicView(topic.topic_id, topic.name, tuple(racks))
