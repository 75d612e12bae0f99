"""Which quota counts for a client: Kafka's order of precedence, and who shares a rate with whom."""

from __future__ import annotations

import pytest

from fairlead_kafka.broker.quota_table import Applied, QuotaTable, plain_address

ORDER = [
    ((("client-id", "c"), ("user", "u")), ("u", "c")),
    ((("client-id", None), ("user", "u")), ("u", "c")),
    ((("user", "u"),), ("u", None)),
    ((("client-id", "c"), ("user", None)), ("u", "c")),
    ((("client-id", None), ("user", None)), ("u", "c")),
    ((("user", None),), ("u", None)),
    ((("client-id", "c"),), (None, "c")),
    ((("client-id", None),), (None, "c")),
]
"""Entities for user u and client id c, first choice first, and who shares its quota."""


def test_the_first_entity_in_the_order_counts_and_no_other() -> None:
    table = QuotaTable()
    assert table.of_client("u", "c") is None
    for place in reversed(range(len(ORDER))):
        entity, sharers = ORDER[place]
        table.set(entity, place + 1)
        assert table.of_client("u", "c") == Applied(sharers, place + 1)
    for place, (entity, _sharers) in enumerate(ORDER[:-1]):
        table.set(entity, None)
        assert table.of_client("u", "c") == Applied(ORDER[place + 1][1], place + 2)


@pytest.mark.parametrize("client_id", [None, ""])
def test_without_a_client_id_only_users_are_meant(client_id: str | None) -> None:
    table = QuotaTable()
    for entity in (
        (("client-id", None),),
        (("client-id", None), ("user", None)),
        (("client-id", None), ("user", "u")),
    ):
        table.set(entity, 1)
    assert table.of_client("u", client_id) is None
    table.set((("user", None),), 2)
    assert table.of_client("u", client_id) == Applied(("u", None), 2)


def test_others_are_not_meant() -> None:
    table = QuotaTable()
    for entity, _sharers in ORDER:
        if all(name is not None for _kind, name in entity):
            table.set(entity, 1)
    assert table.of_client("someone", "else") is None


def test_addresses_are_compared_however_they_are_written() -> None:
    table = QuotaTable()
    table.set((("ip", None),), 5)
    table.set((("ip", "0:0:0:0:0:0:0:1"),), 2)
    assert table.of_address(plain_address("[::1]")) == 2
    assert table.of_address("10.0.0.1") == 5
    table.set((("ip", None),), None)
    assert table.of_address("10.0.0.1") is None
    assert table
    table.set((("ip", "::1"),), None)
    assert not table
