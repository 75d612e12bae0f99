"""Watch on topics: those that a member wants, and those that its group shares.

The latter may be created, deleted or get partitions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from fairlead_kafka.base.config import Settings
from fairlead_kafka.base.units import ms_to_ns
from fairlead_kafka.core.script import Steps
from fairlead_kafka.core.topic_listing import ask_metadata

MISSING_LOOK_MS = 1_000
"""Ms between two looks for a topic that is not there yet."""


class Watch:
    """Looks at topics every `metadata.max.age.ms`, and more often while one is missing."""

    def __init__(self, settings: Settings) -> None:
        self._age_ns = ms_to_ns(settings["metadata.max.age.ms"])
        self.topics: tuple[str, ...] | None = ()
        """Topics subscribed to; None: those of a pattern are not known yet."""
        self._pattern: re.Pattern[str] | None = None
        self._counts: dict[str, int | None] | None = None
        self._looking = False
        self._generation = 0
        self._next_ns: int | None = None

    @property
    def next_ns(self) -> int | None:
        """Monotonic time of the next look; None: there is none to come, or one is under way. An
        outage may hold that up for longer than `metadata.max.age.ms`."""
        return None if self._looking else self._next_ns

    def subscribe(self, topics: Sequence[str], pattern: re.Pattern[str] | None) -> bool:
        """Replace the subscription; True if other topics are subscribed to now, as far as the
        metadata tell."""
        before = self.topics
        self._pattern = pattern
        self.topics = tuple(dict.fromkeys(topics)) if pattern is None else None
        self._counts = None
        self._looking = False
        self._generation += 1
        self._next_ns = None if pattern is None else 0
        return self.topics is not None and self.topics != before

    def shared(self, counts: Mapping[str, int | None] | None) -> None:
        """Note which topics this member, the leader, has assigned partitions of, to notice when
        they change; None: another member leads, and watches.

        `counts`: the number of partitions of each topic, None for one that does not exist.
        """
        self._counts = None if counts is None else dict(counts)
        if counts is not None and None in counts.values():
            self._next_ns = 0 if self._next_ns is None else self._next_ns

    def due(self, now_ns: int) -> bool:
        """True if it is time to look at the topics; `now_ns` is monotonic."""
        if self._looking:
            return False
        if self._next_ns is None and (self._counts is not None or self._pattern is not None):
            self._next_ns = now_ns + self._age_ns
        return self._next_ns is not None and now_ns >= self._next_ns

    def look(self, now_ns: int) -> Steps[bool]:
        """A script: True if topics changed, so that a rebalance is due."""
        self._looking = True
        self._next_ns = None
        generation = self._generation
        wanted = None if self._pattern is not None else sorted(self._counts or ())
        answer = yield from ask_metadata(wanted)
        if generation != self._generation:
            return False
        self._looking = False
        found = {
            topic.name: len(topic.partitions)
            for topic in answer.topics
            if topic.name and not topic.error_code
        }
        changed = False
        if self._pattern is not None:
            internal = {topic.name for topic in answer.topics if topic.is_internal}
            topics = tuple(
                sorted(name for name in found if name not in internal and self._pattern.fullmatch(name))
            )
            changed, self.topics = topics != self.topics, topics
        if self._counts is not None:
            asked = self._counts if wanted is None else wanted  # others were shared meanwhile
            counts = {topic: found.get(topic) if topic in asked else n for topic, n in self._counts.items()}
            changed = changed or counts != self._counts
            missing = None in counts.values()
            self._next_ns = now_ns + (ms_to_ns(MISSING_LOOK_MS) if missing else self._age_ns)
        else:
            self._next_ns = now_ns + self._age_ns if self._pattern is not None else None
        return changed
