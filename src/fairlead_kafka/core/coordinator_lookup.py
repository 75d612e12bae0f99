"""Coordinator look-up: FindCoordinator as a script, for consumers in groups and admin clients."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

from fairlead_kafka.base.codes import policy
from fairlead_kafka.base.errors import BrokerError, UnsupportedVersion
from fairlead_kafka.base.ids import Node
from fairlead_kafka.base.rights import broker_error
from fairlead_kafka.core.metadata import Metadata
from fairlead_kafka.core.script import Ask, Steps, ask_all
from fairlead_kafka.wire import ApiKey
from fairlead_kafka.wire.messages import FindCoordinatorRequest


class KeyType(IntEnum):
    """The kinds of key in FindCoordinator: a group, or a transactional id."""

    GROUP = 0
    TRANSACTION = 1

    def named(self, key: str) -> str:
        """The key, as errors call it: "group 'a'"."""
        return f"group {key!r}" if self is KeyType.GROUP else f"transactional.id {key!r}"


def find_coordinators(
    metadata: Metadata, key_type: KeyType, keys: Sequence[str]
) -> Steps[dict[str, int | BrokerError | Exception]]:
    """A script: {group or transactional id: its coordinator's node id, or why it is not known}.

    It asks once; a caller may run it again. One request per key, which every version of
    FindCoordinator has. UnsupportedVersion is raised.
    """
    # From version 4 on the keys are a list.
    messages = [
        FindCoordinatorRequest(key=key, key_type=int(key_type), coordinator_keys=[key]) for key in keys
    ]
    answers = yield from ask_all([Ask(ApiKey.FIND_COORDINATOR, message) for message in messages])
    found: dict[str, int | BrokerError | Exception] = {}
    for key, answer in zip(keys, answers, strict=True):
        if isinstance(answer, UnsupportedVersion):
            raise answer
        if isinstance(answer, Exception):
            found[key] = answer
            continue
        row = answer.coordinators[0] if answer.coordinators else answer
        if row.error_code:
            text = (
                f"looking for the coordinator of {key_type.named(key)}: "
                f"{row.error_message or policy(row.error_code).meaning}"
            )
            found[key] = broker_error(row.error_code, text, "Describe")
        else:
            known = metadata.nodes.get(row.node_id)
            if known is None or (known.host, known.port) != (row.host, row.port):
                metadata.saw_nodes([Node(row.node_id, row.host, row.port)])
            found[key] = row.node_id
    return found
