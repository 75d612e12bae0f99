"""Versions: which one a client and a broker speak, and what an older one may not leave out."""

from __future__ import annotations

import pytest

from fairlead_kafka.base.errors import UnsupportedVersion
from fairlead_kafka.wire import CLIENT_VERSIONS, ApiKey, negotiate, refuse_lost_fields, versions_of
from fairlead_kafka.wire.messages import ListTransactionsRequest


def test_negotiation_takes_the_highest_version_in_common() -> None:
    assert negotiate(ApiKey.PRODUCE, {0: (0, 13)}) == 13
    assert negotiate(ApiKey.PRODUCE, {0: (0, 9)}) == 9
    assert negotiate(ApiKey.PRODUCE, {0: (0, 13)}, ceiling=7) == 7


@pytest.mark.parametrize(
    ("offered", "ceiling", "complaint"),
    [
        ({}, None, "does not serve PRODUCE at all"),
        ({0: (0, 2)}, None, "speaks 3 to 13, the broker 0 to 2"),
        ({0: (14, 20)}, None, "the broker 14 to 20"),
        ({0: (9, 13)}, 8, "the caller needs a version of at most 8"),
    ],
)
def test_no_version_in_common_is_said_plainly(
    offered: dict[int, tuple[int, int]], ceiling: int | None, complaint: str
) -> None:
    with pytest.raises(UnsupportedVersion, match=complaint):
        negotiate(ApiKey.PRODUCE, offered, ceiling)


def test_the_client_speaks_no_version_without_a_schema() -> None:
    for api_key, (lowest, highest) in CLIENT_VERSIONS.items():
        known_lowest, known_highest = versions_of(api_key)
        assert known_lowest <= lowest <= highest <= known_highest


def test_an_api_the_client_never_sends_cannot_be_negotiated() -> None:
    with pytest.raises(UnsupportedVersion, match="never sends VOTE"):
        negotiate(ApiKey.VOTE, {int(ApiKey.VOTE): (0, 1)})


def test_a_field_that_an_older_version_lacks_is_not_left_out_in_silence() -> None:
    asked = ListTransactionsRequest(
        state_filters=[], producer_id_filters=[], duration_filter=-1, transactional_id_pattern="a.*"
    )
    refuse_lost_fields(ApiKey.LIST_TRANSACTIONS, 2, asked)
    with pytest.raises(UnsupportedVersion, match="transactional_id_pattern needs version 2"):
        refuse_lost_fields(ApiKey.LIST_TRANSACTIONS, 1, asked)
    asked.transactional_id_pattern = None
    refuse_lost_fields(ApiKey.LIST_TRANSACTIONS, 0, asked)
    refuse_lost_fields(ApiKey.METADATA, 4, object())
