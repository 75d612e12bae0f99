"""A SPARK_HOME without the zip: everything of the installation but Python's part."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fairlead_kafka.spark import home


def _installation(folder: Path) -> Path:
    for name in ("bin", "jars", "python/lib", "sql", "sbin"):
        (folder / name).mkdir(parents=True)
    (folder / "sql" / "__init__.py").touch()
    (folder / "python" / "lib" / "pyspark.zip").touch()
    return folder


def test_a_home_has_all_but_the_zip_and_the_modules(tmp_path: Path) -> None:
    real = _installation(tmp_path / "pyspark")
    built = home.build_home(real, tmp_path / "home")
    assert sorted(entry.name for entry in built.iterdir()) == ["bin", "jars", "sbin"]
    assert (built / "jars").resolve() == (real / "jars").resolve()
    assert home.build_home(real, tmp_path / "home") == built


def test_a_home_that_is_set_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_HOME", "/opt/spark")
    assert home.ensure_spark_home("local[2]") is None
    assert os.environ["SPARK_HOME"] == "/opt/spark"


@pytest.mark.parametrize("master", ["yarn", "k8s://host", "spark://host:7077"])
def test_a_cluster_gets_the_zip_that_it_ships(monkeypatch: pytest.MonkeyPatch, master: str) -> None:
    monkeypatch.delenv("SPARK_HOME", raising=False)
    assert home.ensure_spark_home(master) is None
    assert "SPARK_HOME" not in os.environ


@pytest.mark.parametrize("master", [None, "local[2]", "local-cluster[2,1,1024]"])
def test_spark_on_this_machine_gets_a_home_of_ours(
    monkeypatch: pytest.MonkeyPatch, master: str | None
) -> None:
    monkeypatch.setenv("SPARK_HOME", "taken back after the test")
    monkeypatch.delenv("SPARK_HOME")
    found = home.ensure_spark_home(master)
    assert found is not None
    assert os.environ["SPARK_HOME"] == found
    assert (Path(found) / "bin" / "spark-submit").exists()
    assert not (Path(found) / "python").exists()
