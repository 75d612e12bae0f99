"""Every method of Java's Admin has a row in the table, and what the table names is there."""

from __future__ import annotations

from pathlib import Path

import fairlead_kafka
from fairlead_kafka import Admin
from fairlead_kafka.client.admin_names import COUNTERPARTS

METHODS = Path(__file__).parents[1] / "data" / "kafka_admin_methods.txt"
JAVAS = {line for line in METHODS.read_text(encoding="utf-8").splitlines() if not line.startswith("#")}


def test_every_method_of_java_is_mentioned_and_no_other() -> None:
    assert set(COUNTERPARTS) == JAVAS


def test_what_is_named_is_there_and_what_is_not_says_why() -> None:
    for java, one in COUNTERPARTS.items():
        assert one.note if not one.ours else hasattr(Admin, one.ours) or hasattr(fairlead_kafka, one.ours), (
            java
        )


def test_no_method_of_ours_is_left_out() -> None:
    ours = {name for name in dir(Admin) if not name.startswith("_")}
    # a check at a program's start; KIP-939 before Kafka has it; a tool of Kafka's, not a method
    alone = {"client_id", "connect", "end_transactions", "describe_api_versions"}
    assert ours - {one.ours for one in COUNTERPARTS.values()} == alone
