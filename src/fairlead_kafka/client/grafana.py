"""Dashboards for Grafana, made from the names in the table of metrics; `docs/generate.py` writes
them."""

from __future__ import annotations

import json
from typing import NamedTuple


class Panel(NamedTuple):
    """A chart: its title, expressions of Prometheus with legends, and Grafana's unit."""

    title: str
    targets: tuple[tuple[str, str], ...]
    unit: str = "short"


def _each(expression: str, legend: str = "{{client_id}}") -> tuple[tuple[str, str], ...]:
    return ((expression, legend),)


_PRODUCER, _FETCH, _COORDINATOR = (
    "kafka_producer",
    "kafka_consumer_fetch_manager",
    "kafka_consumer_coordinator",
)
_OF_PARTITION = "{{client_id}} {{topic}}-{{partition}}"
DASHBOARDS: dict[str, tuple[Panel, ...]] = {
    "clients": (
        Panel("Records delivered", _each(f"rate({_PRODUCER}_record_delivered_total[$__rate_interval])")),
        Panel("Records failed", _each(f"rate({_PRODUCER}_record_error_total[$__rate_interval])")),
        Panel("Latency of Produce requests", _each(f"{_PRODUCER}_request_latency_avg"), "ms"),
        Panel(
            "Latency by broker",
            _each(f"{_PRODUCER}_node_request_latency_avg", "{{client_id}} {{node}}"),
            "ms",
        ),
        Panel("Size of batches", _each(f"{_PRODUCER}_batch_size_avg"), "bytes"),
        Panel("Memory that is free", _each(f"{_PRODUCER}_buffer_available_bytes"), "bytes"),
        Panel("Records consumed", _each(f"rate({_FETCH}_records_consumed_total[$__rate_interval])")),
        Panel("Lag", _each(f"{_FETCH}_partition_records_lag", _OF_PARTITION)),
        Panel("Latency of Fetch requests", _each(f"{_FETCH}_fetch_latency_avg"), "ms"),
        Panel("Time between polls", _each("kafka_consumer_time_between_poll_max"), "ms"),
        Panel("Share of time in polls", _each("kafka_consumer_poll_idle_ratio_avg"), "percentunit"),
        Panel(
            "Rebalances",
            (
                (f"increase({_COORDINATOR}_rebalance_total[$__range])", "{{client_id}}"),
                (f"increase({_COORDINATOR}_failed_rebalance_total[$__range])", "{{client_id}} failed"),
            ),
        ),
        Panel("Partitions assigned", _each(f"{_COORDINATOR}_assigned_partitions")),
        Panel("Latency of commits", _each(f"{_COORDINATOR}_commit_latency_avg"), "ms"),
    ),
    "spark": (
        Panel("Rows", _each("rate(kafka_spark_stream_rows_total[$__rate_interval])", "{{query}} {{source}}")),
        Panel("Lag", _each("kafka_spark_stream_lag", "{{query}} {{source}}")),
        Panel("Lag in bytes", _each("kafka_spark_stream_lag_bytes", "{{query}} {{source}}"), "bytes"),
        Panel(
            "Micro-batches",
            _each("increase(kafka_spark_stream_micro_batches_total[$__range])", "{{query}} {{source}}"),
        ),
        Panel(
            "Time of a micro-batch",
            _each(
                "rate(kafka_spark_stream_micro_batch_time_ms_total[$__rate_interval]) / "
                "rate(kafka_spark_stream_micro_batches_total[$__rate_interval])",
                "{{query}} {{source}}",
            ),
            "ms",
        ),
    ),
    "cluster": (
        Panel(
            "Brokers",
            (
                ("kafka_cluster_active_broker_count", "running"),
                ("kafka_cluster_fenced_broker_count", "fenced"),
            ),
        ),
        Panel(
            "Partitions in trouble",
            (
                ("kafka_cluster_offline_partition_count", "without a leader"),
                ("kafka_cluster_under_replicated_partitions", "under-replicated"),
            ),
        ),
        Panel("Partitions led", _each("kafka_cluster_node_leader_count", "{{node}}")),
        Panel("Replicas", _each("kafka_cluster_node_replica_count", "{{node}}")),
    ),
}


def dashboard(name: str) -> str:
    """A dashboard as the JSON that Grafana imports; the import asks which data source it reads."""
    source = {"type": "prometheus", "uid": "${DS_PROMETHEUS}"}
    panels = [
        {
            "id": number + 1,
            "type": "timeseries",
            "title": panel.title,
            "datasource": source,
            "gridPos": {"h": 8, "w": 12, "x": number % 2 * 12, "y": number // 2 * 8},
            "fieldConfig": {"defaults": {"unit": panel.unit}, "overrides": []},
            "targets": [
                {"refId": chr(ord("A") + index), "expr": expression, "legendFormat": legend}
                for index, (expression, legend) in enumerate(panel.targets)
            ],
        }
        for number, panel in enumerate(DASHBOARDS[name])
    ]
    made = {
        "__inputs": [
            {
                "name": "DS_PROMETHEUS",
                "label": "Prometheus",
                "type": "datasource",
                "pluginId": "prometheus",
                "pluginName": "Prometheus",
            }
        ],
        "title": f"Fairlead {name}",
        "uid": f"fairlead-{name}",
        "schemaVersion": 39,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "panels": panels,
    }
    return json.dumps(made, indent=1) + "\n"
