"""A collector of OpenTelemetry's protocol (OTLP), as an HTTP server of the test's."""

from __future__ import annotations

import gzip
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

NEVER_MS = 1e9
"""Milliseconds between two exports of metrics: none comes before the test asks for it."""
REQUESTS: dict[str, Any] = {"traces": ExportTraceServiceRequest, "metrics": ExportMetricsServiceRequest}


class Collector:
    """An HTTP server that takes OTLP in protobuf, and providers that export to it."""

    def __init__(self) -> None:
        self._received: dict[str, list[Any]] = {"traces": [], "metrics": []}
        received = self._received

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                kind = self.path.removeprefix("/v1/")
                assert self.headers["Content-Type"] == "application/x-protobuf"
                received[kind].append(REQUESTS[kind].FromString(body))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()
        self._url = f"http://127.0.0.1:{self._server.server_port}/v1/"
        self.provider = TracerProvider()
        exporter = OTLPSpanExporter(endpoint=self._url + "traces")
        self.provider.add_span_processor(BatchSpanProcessor(exporter))
        self._meters: MeterProvider | None = None

    @property
    def meters(self) -> MeterProvider:
        """A provider of meters, made when it is first asked for."""
        if self._meters is None:
            exporter = OTLPMetricExporter(endpoint=self._url + "metrics")
            self._meters = MeterProvider([PeriodicExportingMetricReader(exporter, NEVER_MS)])
        return self._meters

    def spans(self) -> list[Any]:
        """Every span so far, in the order of their ends."""
        self.provider.force_flush()
        return [
            span
            for request in self._received["traces"]
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    def metrics(self) -> list[Any]:
        """Every metric of a collection that is done now."""
        self._received["metrics"].clear()
        self.meters.force_flush()
        return [
            metric
            for request in self._received["metrics"]
            for resource in request.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        ]

    def close(self) -> None:
        self.provider.shutdown()
        if self._meters is not None:
            self._meters.shutdown()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def attributes(of: Any) -> dict[str, Any]:
    """The attributes of a span or a point as Python values."""
    return {
        each.key: getattr(each.value, each.value.WhichOneof("value") or "string_value")
        for each in of.attributes
    }
