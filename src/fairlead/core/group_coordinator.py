"""Where the coordinators of groups are: FindCoordinator as a script, for whoever speaks to groups (members, admins)."""

from __future__ import annotations

from collections.abc import Generator, Sequence

from fairlead.base.codes import policy
from fairlead.base.errors import BrokerError, UnsupportedVersion
from fairlead.base.ids import Node
from fairlead.core.metadata import Metadata
from fairlead.core.script import Answer, Ask, Pause
from fairlead.wire import ApiKey, Message

_KEY_TYPE_GROUP = 0


def find_group_coordinators(
    metadata: Metadata, group_ids: Sequence[str]
) -> Generator[Sequence[Ask] | Pause, list[Answer], dict[str, int | BrokerError | Exception]]:
    """A script: {group: its coordinator's node id, or why it is not known}; asks once, for whoever has to may ask again.

    One request per group, which every version of FindCoordinator has. UnsupportedVersion is raised.
    """
    # From version 4 on the keys are a list.
    asks = [
        Ask(ApiKey.FIND_COORDINATOR, Message(key=group_id, key_type=_KEY_TYPE_GROUP, coordinator_keys=[group_id])) for group_id in group_ids
    ]
    answers = yield asks
    found: dict[str, int | BrokerError | Exception] = {}
    for group_id, answer in zip(group_ids, answers, strict=True):
        if isinstance(answer, UnsupportedVersion):
            raise answer
        if isinstance(answer, Exception):
            found[group_id] = answer
            continue
        row = answer.coordinators[0] if answer.coordinators else answer
        if row.error_code:
            text = f"looking for the coordinator of group {group_id!r}: {row.error_message or policy(row.error_code).meaning}"
            found[group_id] = BrokerError(row.error_code, text)
        else:
            known = metadata.nodes.get(row.node_id)
            if known is None or (known.host, known.port) != (row.host, row.port):
                metadata.saw_nodes([Node(row.node_id, row.host, row.port)])
            found[group_id] = row.node_id
    return found
