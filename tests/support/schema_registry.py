"""A Schema Registry that knows what it is told: the few requests that reading needs, over HTTP."""

from __future__ import annotations

import json
import threading
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

CONTENT_TYPE = "application/vnd.schemaregistry.v1+json"


class FakeRegistry:
    """Schemas by id, and by subject and version; `asked` is the path of every request."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[str] = []
        self.user_info: str | None = None
        """If set, user:password that every request must bring."""
        self._schemas: list[dict[str, Any]] = []
        self._subjects: dict[str, list[int]] = {}

    def register(
        self,
        subject: str,
        schema: Mapping[str, Any] | str,
        references: list[dict[str, Any]] | None = None,
        kind: str = "AVRO",
    ) -> int:
        """A new version of a subject; returns the schema's id."""
        self._schemas.append(
            {"schema": json.dumps(schema), "schemaType": kind, "references": references or []}
        )
        self._subjects.setdefault(subject, []).append(len(self._schemas))
        return len(self._schemas)

    def answer(self, path: str, authorization: str | None) -> tuple[int, dict[str, Any]]:
        """Status and body for a path."""
        self.asked.append(path)
        if (
            self.user_info is not None
            and authorization != "Basic " + b64encode(self.user_info.encode()).decode()
        ):
            return 401, {"error_code": 401, "message": "Unauthorized"}
        parts = [unquote(part) for part in path.strip("/").split("/")]
        if parts[:2] == ["schemas", "ids"] and len(parts) == 3:
            number = int(parts[2])
            if 1 <= number <= len(self._schemas):
                return 200, self._schemas[number - 1]
            return 404, {"error_code": 40403, "message": "Schema not found"}
        if parts[0] == "subjects" and parts[1] in self._subjects:
            ids = self._subjects[parts[1]]
            version = len(ids) if parts[3] == "latest" else int(parts[3])
            return 200, {
                "subject": parts[1],
                "version": version,
                "id": ids[version - 1],
                **self._schemas[ids[version - 1] - 1],
            }
        return 404, {"error_code": 40401, "message": "Subject not found"}


@contextmanager
def schema_registry() -> Iterator[FakeRegistry]:
    """A registry that listens on this machine."""
    registry = FakeRegistry()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = registry.answer(urlsplit(self.path).path, self.headers.get("Authorization"))
            content = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", CONTENT_TYPE)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing is logged."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            registry.url = f"http://127.0.0.1:{server.server_port}"
            yield registry
        finally:
            server.shutdown()
            thread.join()
