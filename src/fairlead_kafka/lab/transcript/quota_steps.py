"""Client quotas (KIP-546): described and altered, with valid and invalid fields."""

from __future__ import annotations

from collections.abc import Iterable

from fairlead_kafka.lab.transcript.steps import PREFIX, Step, ask
from fairlead_kafka.wire import ApiKey
from fairlead_kafka.wire.messages import AlterClientQuotasRequest, DescribeClientQuotasRequest

_EXACT, _DEFAULT = 0, 1
_WHO = PREFIX + "quotas"


def described(
    name: str, *components: tuple[str, int, str | None], versions: Iterable[int] = (0, 1), strict: bool = True
) -> Step:
    """A DescribeClientQuotas step."""
    rows = [
        DescribeClientQuotasRequest.ComponentData(entity_type=kind, match_type=how, match=match)
        for kind, how, match in components
    ]
    return ask(name, ApiKey.DESCRIBE_CLIENT_QUOTAS, versions, components=rows, strict=strict)


def altered(
    name: str,
    *ops: tuple[str, float | None],
    entity: Iterable[tuple[str, str | None]] = (("user", _WHO),),
    versions: Iterable[int] = (1,),
    validate_only: bool = False,
) -> Step:
    """An AlterClientQuotas step of one entity; None removes a quota."""
    parts = [AlterClientQuotasRequest.EntityData(entity_type=kind, entity_name=who) for kind, who in entity]
    changes = [
        AlterClientQuotasRequest.OpData(key=key, value=value or 0.0, remove=value is None)
        for key, value in ops
    ]
    return ask(
        name,
        ApiKey.ALTER_CLIENT_QUOTAS,
        versions,
        entries=[AlterClientQuotasRequest.EntryData(entity=parts, ops=changes)],
        validate_only=validate_only,
    )


_ONE = ("producer_byte_rate", 1e9)

STEPS: list[Step] = [
    described("of nobody known", ("user", _EXACT, _WHO)),
    described("of the default", ("client-id", _DEFAULT, None)),
    described("of a type that is none", ("planet", _EXACT, "x")),
    described("of one type twice", ("user", _EXACT, "a"), ("user", _EXACT, "b")),
    described("of a name that is missing", ("user", _EXACT, None)),
    altered("validated only", _ONE, versions=(0, 1), validate_only=True),
    altered("removed, and it is not there", ("producer_byte_rate", None)),
    altered("a quota that is none", ("patience", 1.0)),
    altered("below zero", ("producer_byte_rate", -1.0)),
    altered("of a type that is none", _ONE, entity=(("planet", "x"),)),
    altered("of nobody", _ONE, entity=()),
    altered("of an empty name", _ONE, entity=(("user", ""),)),
]
"""Steps for client quotas. None is set: quotas would hold up the rest of the transcript."""
