"""Setting client quotas by requests, whatever carries them."""

from __future__ import annotations

from typing import Any

from fairlead_kafka.wire import Message

Entity = dict[str, str | None]
"""Types and names: {"user": "alice"}; None: the default."""


def parts(entity: Entity) -> list[Message]:
    return [Message(entity_type=kind, entity_name=name) for kind, name in entity.items()]


def alteration(entity: Entity, **values: float | None) -> Message:
    """An entry of AlterClientQuotas; None removes."""
    ops = [
        Message(key=key, value=0.0 if value is None else float(value), remove=value is None)
        for key, value in values.items()
    ]
    return Message(entity=parts(entity), ops=ops)


def alter_fields(*entries: Message, validate_only: bool = False) -> dict[str, Any]:
    return {"entries": list(entries), "validate_only": validate_only}


def described(answer: Message) -> dict[frozenset[tuple[str, str | None]], dict[str, float]]:
    """The entries of an answer to DescribeClientQuotas."""
    assert answer.error_code == 0, answer
    return {
        frozenset((part.entity_type, part.entity_name) for part in row.entity): {
            value.key: value.value for value in row.values
        }
        for row in answer.entries
    }
