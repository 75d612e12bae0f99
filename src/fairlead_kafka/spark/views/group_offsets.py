"""The view `offsets`: the committed offset and the lag of each group in each partition."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from fairlead_kafka.admin import GroupDescription, GroupMember
from fairlead_kafka.base.errors import ConfigError, ItemsFailed
from fairlead_kafka.client import Admin
from fairlead_kafka.client.group_lag import group_lags
from fairlead_kafka.spark.views.asking import AskingReader

OFFSETS_SCHEMA = StructType(
    [
        StructField("group", StringType()),
        StructField("state", StringType()),
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("committed", LongType()),
        StructField("end", LongType()),
        StructField("lag", LongType()),
        StructField("member_id", StringType()),
        StructField("client_id", StringType()),
        StructField("host", StringType()),
    ]
)
"""`committed`: the offset that the group goes on from, null if it has none; `end`: the end of the
log; `lag`: offsets between the two. The last three say who reads the partition now, null if nobody
does."""


class OffsetsReader(AskingReader):
    """Reads the view `offsets`: asks the groups' coordinators and the partitions' leaders."""

    schema = OFFSETS_SCHEMA

    def rows(self, admin: Admin) -> Iterator[Mapping[str, object]]:
        """Rows of the groups asked for, or of all, by group and partition.

        ConfigError names groups that do not exist.
        """
        listed = admin.list_groups()
        wanted = self._options.groups
        missing = [name for name in wanted or () if name not in listed]
        if missing:
            raise ConfigError(
                f"groups: there is no group {', '.join(missing)}; `fairlead groups list` shows those that "
                "there are"
            )
        names = sorted(listed) if wanted is None else wanted
        for name, lags in group_lags(admin, _members(admin, names)).items():
            for one in lags:
                if self.wants(one.partition.topic):
                    yield {"group": name, "state": listed[name].state, **one.as_row()}


def _members(admin: Admin, names: Sequence[str]) -> dict[str, Sequence[GroupMember]]:
    """Members by group. Groups of the protocol of KIP-848 that brokers do not describe are left
    out."""
    found: Mapping[str, GroupDescription] = {}
    try:
        found = admin.describe_groups(names) if names else {}
    except ItemsFailed as error:
        found = error.results
    return {name: found[name].members if name in found else () for name in names}
