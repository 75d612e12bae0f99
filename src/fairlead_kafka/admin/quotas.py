"""Client quotas: describe and alter. Sources: KIP-546, KIP-612."""

from __future__ import annotations

from collections.abc import Mapping

from fairlead_kafka.admin.quota_items import ClientQuotaEntity, ClientQuotaFilter
from fairlead_kafka.admin.scripts import AdminScript, Outcome, about_one, explained, outcome_of, per_item
from fairlead_kafka.core.network import CONTROLLER
from fairlead_kafka.core.script import Ask
from fairlead_kafka.wire import ApiKey
from fairlead_kafka.wire.messages import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)


def describe_client_quotas(
    wanted: ClientQuotaFilter,
) -> AdminScript[dict[ClientQuotaEntity, dict[str, float]]]:
    """Describe quotas: {entity: {quota: value}}, of the entities that have some. BrokerError if the
    broker refuses."""

    def read(
        answer: DescribeClientQuotasResponse,
    ) -> Outcome[dict[ClientQuotaEntity, dict[str, float]]]:
        found = {
            _entity(row): {value.key: value.value for value in row.values} for row in answer.entries or ()
        }
        ordered = dict(sorted(found.items(), key=lambda item: str(item[0])))
        return outcome_of(
            answer.error_code, explained(answer.error_code, answer.error_message, "DescribeConfigs"), ordered
        )

    row = DescribeClientQuotasRequest.ComponentData
    components = [
        row(entity_type=one.entity_type, match_type=int(one.match), match=one.name)
        for one in wanted.components
    ]
    asked = DescribeClientQuotasRequest(components=components, strict=wanted.strict)
    return about_one("describe_client_quotas", Ask(ApiKey.DESCRIBE_CLIENT_QUOTAS, asked), read)


def alter_client_quotas(
    changes: Mapping[ClientQuotaEntity, Mapping[str, float | None]], *, validate_only: bool
) -> AdminScript[dict[ClientQuotaEntity, None]]:
    """Set quotas of each entity, or delete those that are None, and leave its others alone.
    ItemsFailed names the entities that failed."""

    def ask(
        items: dict[ClientQuotaEntity, Mapping[str, float | None]],
    ) -> list[Ask[AlterClientQuotasResponse]]:
        entries = [
            AlterClientQuotasRequest.EntryData(
                entity=[
                    AlterClientQuotasRequest.EntityData(entity_type=kind, entity_name=name)
                    for kind, name in entity.entries.items()
                ],
                ops=[
                    AlterClientQuotasRequest.OpData(key=key, value=float(value or 0), remove=value is None)
                    for key, value in quotas.items()
                ],
            )
            for entity, quotas in items.items()
        ]
        message = AlterClientQuotasRequest(entries=entries, validate_only=validate_only)
        return [Ask(ApiKey.ALTER_CLIENT_QUOTAS, message, CONTROLLER)]

    def read(answer: AlterClientQuotasResponse) -> list[tuple[ClientQuotaEntity, Outcome[None]]]:
        return [
            (
                _entity(row),
                outcome_of(
                    row.error_code, explained(row.error_code, row.error_message, "AlterConfigs"), None
                ),
            )
            for row in answer.entries
        ]

    return per_item("alter_client_quotas", changes, ask, read)


def _entity(
    row: DescribeClientQuotasResponse.EntryData | AlterClientQuotasResponse.EntryData,
) -> ClientQuotaEntity:
    return ClientQuotaEntity({part.entity_type: part.entity_name for part in row.entity})
