"""The experiment on formats: a row for each format, direction, way, library and phase."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairlead_kafka.lab import formats


def test_each_format_is_measured_beside_its_peers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(formats._COLUMN_ROWS, "quick", 50)
    monkeypatch.setitem(formats._RECORDS, "quick", 5)
    rows = formats.run(lambda text: None, "quick")
    makers = {(row["format"], row["way"], row["library"]) for row in rows}
    assert makers == {
        *(
            (name, way, "fairlead")
            for name in ("string", "json", "avro", "protobuf")
            for way in ("record", "column")
        ),
        *((name, "record", "confluent-kafka") for name in ("string", "avro", "protobuf")),
        ("avro", "record", "fastavro"),
    }
    assert len(rows) == len(makers) * 4
    assert all(isinstance(row["records_per_s"], int) and row["records_per_s"] > 0 for row in rows)
    formats.plot(rows, tmp_path / "formats.png")
    assert (tmp_path / "formats.png").stat().st_size > 0
