"""What is wrong before Spark runs: told in a sentence, before a JVM is started."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkRuntimeError

from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.spark import spark_session, starting
from fairlead_kafka.spark.pipelines.session import connect_session
from fairlead_kafka.spark.starting import SparkMissing, SparkNotStarted, check_master, jvm_errors_shown


@pytest.mark.parametrize(
    "master",
    [
        *(
            None,
            "local",
            "local[1]",
            "local[16]",
            "local[*]",
            "local[4,2]",
            "local[*, 3]",
            "local-cluster[2,1,1024]",
        ),
        *("spark://host:7077", "spark://a:7077,b:7077", "yarn", "k8s://https://host:6443", "k8s://host"),
    ],
)
def test_a_master_that_spark_knows_is_left_alone(master: str | None) -> None:
    check_master(master)


@pytest.mark.parametrize(
    "master",
    [
        "lokal[2]",
        "local[0]",
        "local[two]",
        "local[2",
        "local-cluster[2,1]",
        "spark:/host",
        "YARN",
        "",
        "mesos://h",
    ],
)
def test_a_master_that_spark_does_not_know_is_told_before_a_jvm_starts(master: str) -> None:
    with pytest.raises(
        ConfigError, match=r"is none that Spark knows; write local, local\[4\], .* yarn or k8s://"
    ) as refused:
        check_master(master)
    assert repr(master) in str(refused.value)


def test_a_session_asks_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "fairlead_kafka.spark.session.ensure_java", lambda: pytest.fail("a JVM was looked for")
    )
    with pytest.raises(ConfigError, match=r"master: 'lokal\[2\]'"):
        spark_session("x", master="lokal[2]")
    with pytest.raises(ConfigError, match=r"master: 'lokal'"):
        spark_session("x", config={"spark.master": "lokal"})


def test_a_pipeline_asks_first() -> None:
    with (
        pytest.raises(ConfigError, match=r"master: 'lokal\[2\]'"),
        connect_session("x", "lokal[2]", None, {}),
    ):
        pass


def test_a_server_of_spark_connect_is_no_master() -> None:
    with pytest.raises(
        ConfigError,
        match=r"SparkSession\.builder\.remote\('sc://host'\), or run a pipeline there with --remote",
    ):
        check_master("sc://host")


def test_what_is_not_installed_is_named_with_the_way_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starting, "find_spec", lambda name: None)
    with pytest.raises(
        SparkMissing,
        match=r"^Spark is not installed here \(pyspark cannot be imported\): pip install "
        r'"fairlead-kafka\[spark\]"',
    ):
        spark_session()


def test_a_jvm_that_ended_at_once_is_told_with_the_place_of_its_own_words() -> None:
    with pytest.raises(SparkNotStarted, match="standard error of this process"), jvm_errors_shown():
        raise PySparkRuntimeError(errorClass="JAVA_GATEWAY_EXITED", messageParameters={})


def test_other_errors_of_spark_are_left_alone() -> None:
    error = PySparkRuntimeError(errorClass="MASTER_URL_NOT_SET", messageParameters={})
    with pytest.raises(PySparkRuntimeError) as raised, jvm_errors_shown():
        raise error
    assert raised.value is error
