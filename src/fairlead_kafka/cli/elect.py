"""`fairlead elect`: elections of leaders."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from fairlead_kafka.admin import ElectionType
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError, ItemsFailed, UsageError
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.cli.connecting import open_admin
from fairlead_kafka.cli.options import ClientOptions, expanded
from fairlead_kafka.cli.partition_names import named_partitions
from fairlead_kafka.cli.terminal import (
    output,
)


class Election(StrEnum):
    """Kinds of elections, as the command line names them."""

    PREFERRED = "preferred"
    UNCLEAN = "unclean"


@expanded
def elect(
    kind: Annotated[
        Election,
        typer.Argument(
            help="preferred: the first replica leads again. unclean: one leads that is not in sync, where no "
            "other is alive; records may be lost."
        ),
    ],
    topic: Annotated[
        list[str] | None,
        typer.Option("--topic", help="TOPIC, or TOPIC:0,1 for single partitions; may be repeated."),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Every partition that needs it.")] = False,
    *,
    client: ClientOptions,
) -> None:
    """Elect leaders of partitions."""
    if bool(topic) == every:
        raise UsageError("say which partitions: either --topic, or --all")
    election = ElectionType.PREFERRED if kind is Election.PREFERRED else ElectionType.UNCLEAN
    errors: dict[TopicPartition, BrokerError] = {}
    with open_admin(client.settings()) as admin:
        partitions = None if every else named_partitions(admin, topic or ())
        try:
            elected = admin.elect_leaders(election, partitions)
        except ItemsFailed as failed:
            elected = failed.results
            errors = {
                of: one for of, one in failed.errors.items() if one.code != ErrorCode.ELECTION_NOT_NEEDED
            }
            for of in failed.errors.keys() - errors.keys():
                output.print(f"nothing to do: {of}", markup=False)
    for of in elected:
        output.print(f"elected: {of}", markup=False)
    if not elected and every:
        output.print("nothing to do")
    if errors:
        raise ItemsFailed("electing leaders of", errors, elected)
