"""The classes of Kafka's messages that type checkers see are those of the schemas."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from fairlead_kafka.wire import messages

STUBS = runpy.run_path(str(Path(__file__).parents[2] / "src" / "schemas" / "stubs.py"))


def test_the_stubs_are_written_from_the_schemas() -> None:
    """If not: `python src/schemas/stubs.py`."""
    assert STUBS["FILE"].read_text(encoding="utf-8") == "\n".join(STUBS["lines"]())


def test_a_message_is_named_as_kafka_names_it_and_nothing_else_is() -> None:
    row = messages.ProduceResponse.PartitionProduceResponse
    assert row(index=1, error_code=0) == row(index=1, error_code=0)
    assert row is messages.ProduceResponse.PartitionProduceResponse, "made once"
    with pytest.raises(AttributeError, match="no attribute 'Produce'"):
        vars(messages)["__getattr__"]("Produce")
    with pytest.raises(AttributeError, match="no attribute 'index'"):
        getattr(row, "index")  # noqa: B009
