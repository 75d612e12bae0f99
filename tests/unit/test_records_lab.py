"""The lab's figures for the kernels: the rows that every reader of the report relies on."""

from __future__ import annotations

import pytest

from fairlead_kafka.lab import kernels


def test_there_is_a_row_for_each_kernel_size_and_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(kernels._PROFILES, "quick", kernels._Load(50_000, 1_000, 1))
    rows = kernels.run(lambda _: None, "quick")
    assert [(row["kernel"], row["record_size"], row["threads"]) for row in rows] == [
        (kernel, size, threads)
        for size in (10, 100, 512, 4096)
        for kernel in ("encode", "decode")
        for threads in (1, 2)
    ]
    for row in rows:
        assert set(row) == {"kernel", "record_size", "threads", "records_per_s", "gb_per_s"}
        assert row["gb_per_s"] == pytest.approx(row["records_per_s"] * row["record_size"] / 1e9)
