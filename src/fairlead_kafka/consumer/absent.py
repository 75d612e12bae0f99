"""Logs topics that are read and do not exist: most often their names are misspelt."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.guarded_log import GuardedLogger
from fairlead_kafka.core.metadata import Metadata

LOGGER = GuardedLogger("fairlead_kafka.consumer")


class AbsentTopics:
    """Logs which topics are missing: each once, until the cluster has it."""

    def __init__(self, creates: bool) -> None:
        """`creates`: whether brokers create topics that are asked for
        (`allow.auto.create.topics`)."""
        self.creates = creates
        self._logged: set[str] = set()

    def missing(self, topic: str) -> None:
        """Log that the cluster does not have this topic, unless that was logged already."""
        if topic in self._logged:
            return
        self._logged.add(topic)
        then = (
            "the cluster is asked to create it (allow.auto.create.topics=true)"
            if self.creates
            else "nothing can be read of it"
        )
        LOGGER.warning("topic %r does not exist; %s: check its name", topic, then)

    def there(self, topic: str, partitions: int) -> None:
        """Log that the cluster has a topic that was missing."""
        if topic in self._logged:
            self._logged.discard(topic)
            LOGGER.warning(
                "topic %r was created just now, with %d partition%s",
                topic,
                partitions,
                "" if partitions == 1 else "s",
            )

    def keep(self, topics: Iterable[str]) -> None:
        """Forget topics that are not read any more."""
        self._logged.intersection_update(topics)

    def look(self, metadata: Metadata, topics: Collection[str]) -> None:
        """Log which of `topics` are missing, or exist again, by what the metadata know."""
        self.keep(topics)
        for topic in topics:
            known = metadata.topic(topic)
            if known is not None and known.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                self.missing(topic)
            elif known is not None and known.partitions:
                self.there(topic, len(known.partitions))
