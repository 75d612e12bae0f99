"""The file of schemas says what Kafka's definitions say, as kio has them."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from fairlead_kafka.base.errors import UnsupportedVersion
from fairlead_kafka.wire import versions_of
from fairlead_kafka.wire.schemas import REQUEST, RESPONSE, load_schema

FROM_KIO = runpy.run_path(str(Path(__file__).parents[2] / "src" / "schemas" / "from_kio.py"))
API_KEYS = FROM_KIO["api_keys"]()


@pytest.mark.parametrize("api_key", API_KEYS)
def test_every_version_of_every_schema_is_kafkas(api_key: int) -> None:
    lowest, highest = versions_of(api_key)
    assert (lowest, highest) == FROM_KIO["versions_of"](api_key)
    for version in range(lowest, highest + 1):
        for direction in (REQUEST, RESPONSE):
            ours, kios = (
                load_schema(api_key, version, direction),
                FROM_KIO["load_schema"](api_key, version, direction),
            )
            assert ours == kios
            assert repr(ours.body) == repr(kios.body), "False is not 0"


def test_the_file_is_what_the_tool_writes() -> None:
    """If not: `python src/schemas/from_kio.py`."""
    assert FROM_KIO["FILE"].read_text().splitlines() == list(FROM_KIO["lines"]())


def test_what_is_not_known_is_refused_with_what_is() -> None:
    with pytest.raises(UnsupportedVersion, match=rf"API key 9999 .* knows 0 to {max(API_KEYS)}"):
        load_schema(9999, 0, REQUEST)
    with pytest.raises(
        UnsupportedVersion, match="version 99 of API key 0 is not known; Fairlead knows versions 3 to"
    ):
        load_schema(0, 99, RESPONSE)
