"""How a pipeline's report reaches the clusters of its flows."""

from __future__ import annotations

from fairlead_kafka.spark.pipelines.running import _connection


def test_a_report_is_let_in_as_the_flow_is_and_takes_nothing_else_of_its_options() -> None:
    options = {
        "kafka.bootstrap.servers": "b:9093",
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanisms": "PLAIN",
        "kafka.sasl.password": "${env:P}",
        "kafka.ssl.ca.location": "/ca.pem",
        "kafka.fetch.min.bytes": "9",
        "subscribe": "orders",
    }
    assert _connection(options) == (
        ("bootstrap.servers", "b:9093"),
        ("sasl.mechanisms", "PLAIN"),
        ("sasl.password", "${env:P}"),
        ("security.protocol", "SASL_SSL"),
        ("ssl.ca.location", "/ca.pem"),
    )
