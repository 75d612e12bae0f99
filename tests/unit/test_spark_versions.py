"""The table of Spark's versions: true of the PySpark that is installed here, whichever that is, and
what a version lacks is refused with the reason."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from pyspark.sql import datasource

from fairlead_kafka.spark import versions
from fairlead_kafka.spark.source import FairleadSource
from fairlead_kafka.spark.starting import ensure_installed
from fairlead_kafka.spark.versions import SERVED, WITHOUT, Feature, SparkUnsupported, ensure_served, has

ROOT = Path(__file__).parents[2]
LIMITS = {"maxoffsetspertrigger": "5", "maxbytespertrigger": "1m", "minoffsetspertrigger": "2"}
STREAM = {"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "t"}


def _of(monkeypatch: pytest.MonkeyPatch, version: tuple[int, int]) -> None:
    monkeypatch.setattr(versions, "installed_version", lambda: version)


def test_the_installed_spark_has_what_the_table_says() -> None:
    runner = Path(datasource.__file__).parents[1] / "pipelines" / "cli.py"
    there = {
        Feature.FILTERS: hasattr(datasource, "Filter"),
        Feature.LIMITS: hasattr(datasource.DataSourceStreamReader, "getDefaultReadLimit"),
        Feature.AVAILABLE_NOW: hasattr(datasource.DataSourceStreamReader, "getDefaultReadLimit"),
        Feature.PIPELINES: find_spec("pyspark.pipelines") is not None,
        Feature.NAMED_SESSION: runner.exists() and '__dict__["spark"]' in runner.read_text(),
    }
    assert versions.installed_version() in SERVED
    assert {feature: has(feature) for feature in Feature} == there


def test_the_version_is_found_without_loading_spark() -> None:
    program = (
        "import sys; from fairlead_kafka.spark.versions import installed_version as found; "
        "print(found(), 'pyspark' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert said.strip() == f"{versions.installed_version()} False"


@pytest.mark.parametrize("version", [(3, 5), (3, 4)])
def test_a_spark_without_sources_in_python_is_refused(
    version: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    _of(monkeypatch, version)
    for ask in (ensure_served, ensure_installed):
        with pytest.raises(
            SparkUnsupported, match=rf"PySpark 3\.{version[1]} is installed.*since version 4\.0"
        ):
            ask()


def test_a_spark_that_is_not_known_yet_can_do_what_the_newest_can() -> None:
    ensure_served((4, 9))
    assert all(has(feature, (5, 0)) for feature in Feature)


@pytest.mark.parametrize("version", [(4, 0), (4, 1)])
def test_limits_are_refused_where_spark_has_none(
    version: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    _of(monkeypatch, version)
    source = FairleadSource({**STREAM, **LIMITS})
    names = "maxOffsetsPerTrigger, maxBytesPerTrigger, minOffsetsPerTrigger"
    with pytest.raises(
        SparkUnsupported, match=rf"{names}: needs Spark 4\.2, and PySpark 4\.\d is"
    ) as refused:
        source.streamReader(source.schema())
    assert WITHOUT[Feature.LIMITS].removeprefix("refused: ") in str(refused.value)


def test_what_pip_may_install_is_what_is_served() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (spark,) = (
        found
        for found in map(Requirement, project["optional-dependencies"]["spark"])
        if found.name == "pyspark"
    )
    newest = max(SERVED)
    allowed = {version: spark.specifier.contains(f"{version[0]}.{version[1]}.0") for version in SERVED}
    assert all(allowed.values())
    assert not spark.specifier.contains("3.5.9")
    assert not spark.specifier.contains(f"{newest[0]}.{newest[1] + 1}.0")
