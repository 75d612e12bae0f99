"""A Schema Registry on this machine, over HTTP or TLS: the part of Confluent's REST API that
clients of it need. confluent-kafka's own client is its judge
(tests/unit/test_formats_registry.py)."""

from __future__ import annotations

import json
import ssl
import threading
import uuid
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

CONTENT_TYPE = "application/vnd.schemaregistry.v1+json"
Answer = tuple[int, Any]


class FakeRegistry:
    """Schemas by id, and by subject and version; `asked` is the path of every request."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[str] = []
        self.user_info: str | None = None
        """If set, user:password that every request must bring."""
        self.token: str | None = None
        """If set, the bearer token that every request must bring."""
        self.levels: dict[str, str] = {}
        """Compatibility level by subject; BACKWARD where there is none."""
        self._schemas: list[dict[str, Any]] = []
        self._subjects: dict[str, list[int]] = {}

    def register(
        self,
        subject: str,
        schema: Mapping[str, Any] | str,
        references: list[dict[str, Any]] | None = None,
        kind: str = "AVRO",
    ) -> int:
        """A version of a subject; returns the schema's id. `schema`: JSON, or a text of another
        kind."""
        text = schema if kind == "PROTOBUF" and isinstance(schema, str) else json.dumps(schema)
        return self._register(subject, {"schema": text, "schemaType": kind, "references": references or []})

    def answer(self, method: str, path: str, body: Any, authorization: str | None) -> Answer:
        """Status and body for a request."""
        parsed = urlsplit(path)
        self.asked.append(parsed.path)
        if not self._allowed(authorization):
            return 401, {"error_code": 401, "message": "Unauthorized"}
        parts = [unquote(part) for part in parsed.path.strip("/").split("/")]
        query = {name: values[-1].lower() for name, values in parse_qs(parsed.query).items()}
        if method == "GET" and parts[0] in ("schemas", "subjects"):
            return self._schema(parts) if parts[0] == "schemas" else self._version(parts)
        if parts[0] == "config":
            return self._level(method, parts, body)
        if method != "POST":  # associations, which clients of Confluent's ask for and most registries lack
            return 404, {"error_code": 404, "message": f"{method} {path}"}
        schema = {
            "schema": body["schema"],
            "schemaType": body.get("schemaType", "AVRO"),
            "references": body.get("references") or [],
        }
        if query.get("normalize") == "true" and schema["schemaType"] != "PROTOBUF":
            schema["schema"] = json.dumps(json.loads(schema["schema"]), sort_keys=True)
        if parts[0] == "compatibility":
            version = parts[4] if len(parts) > 4 else "latest"
            return 200, {"is_compatible": self._fits(parts[2], schema, version)}
        subject = parts[1]
        if len(parts) == 2:
            return self._looked_up(subject, schema)
        if not self._fits(subject, schema, "latest"):
            return 409, {"error_code": 409, "message": "Schema being registered is incompatible"}
        return 200, {
            "id": self._register(subject, schema),
            **schema,
            "subject": subject,
            "guid": guid_of(schema),
        }

    def _allowed(self, authorization: str | None) -> bool:
        if self.user_info is not None:
            return authorization == "Basic " + b64encode(self.user_info.encode()).decode()
        return self.token is None or authorization == f"Bearer {self.token}"

    def _register(self, subject: str, schema: dict[str, Any]) -> int:
        if schema not in self._schemas:
            self._schemas.append(schema)
        number = self._schemas.index(schema) + 1
        versions = self._subjects.setdefault(subject, [])
        if number not in versions:
            versions.append(number)
        return number

    def _looked_up(self, subject: str, schema: dict[str, Any]) -> Answer:
        versions = self._subjects.get(subject)
        if versions is None:
            return 404, {"error_code": 40401, "message": "Subject not found"}
        number = self._schemas.index(schema) + 1 if schema in self._schemas else 0
        if number not in versions:
            return 404, {"error_code": 40403, "message": "Schema not found"}
        return 200, self._told(subject, versions.index(number) + 1)

    def _schema(self, parts: list[str]) -> Answer:
        for number, schema in enumerate(self._schemas, start=1):
            if parts[1:] in (["ids", str(number)], ["guids", guid_of(schema)]):
                return 200, {**schema, "guid": guid_of(schema)}
        return 404, {"error_code": 40403, "message": "Schema not found"}

    def _version(self, parts: list[str]) -> Answer:
        if parts == ["subjects"]:
            return 200, list(self._subjects)
        versions = self._subjects.get(parts[1])
        if versions is None:
            return 404, {"error_code": 40401, "message": "Subject not found"}
        version = len(versions) if parts[3] == "latest" else int(parts[3])
        if not 1 <= version <= len(versions):
            return 404, {"error_code": 40402, "message": "Version not found"}
        return 200, self._told(parts[1], version)

    def _told(self, subject: str, version: int) -> dict[str, Any]:
        number = self._subjects[subject][version - 1]
        schema = self._schemas[number - 1]
        return {"subject": subject, "version": version, "id": number, "guid": guid_of(schema), **schema}

    def _level(self, method: str, parts: list[str], body: Any) -> Answer:
        subject = parts[1] if len(parts) > 1 else ""
        if method == "PUT":
            self.levels[subject] = body["compatibility"]
            return 200, body
        if subject and subject not in self.levels:
            return 404, {"error_code": 40408, "message": "Subject has no compatibility level"}
        return 200, {"compatibilityLevel": self.levels.get(subject, "BACKWARD")}

    def _fits(self, subject: str, schema: dict[str, Any], version: str) -> bool:
        """The one rule of BACKWARD that tests need: a new field of an Avro record has a default."""
        versions = self._subjects.get(subject, [])
        if not versions or self.levels.get(subject, "BACKWARD") == "NONE" or schema["schemaType"] != "AVRO":
            return True
        number = versions[-1] if version == "latest" else versions[int(version) - 1]
        new, old = (json.loads(each["schema"]) for each in (schema, self._schemas[number - 1]))
        if not isinstance(new, dict) or "fields" not in new:
            return bool(new == old)
        known = {field["name"] for field in old["fields"]}
        return all(field["name"] in known or "default" in field for field in new["fields"])


def guid_of(schema: Mapping[str, Any]) -> str:
    """The GUID of a schema: made of what it is."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, json.dumps(schema, sort_keys=True)))


@contextmanager
def schema_registry(tls: ssl.SSLContext | None = None) -> Iterator[FakeRegistry]:
    """A registry that listens on this machine; with `tls` by https."""
    registry = FakeRegistry()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            status, answer = registry.answer(self.command, self.path, body, self.headers.get("Authorization"))
            content = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", CONTENT_TYPE)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_POST = do_PUT = do_GET  # noqa: N815

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing is logged."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            """A client that was not let in breaks off; nothing is to be said of it."""

    with Server(("127.0.0.1", 0), Handler) as server:
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            registry.url = f"http{'' if tls is None else 's'}://127.0.0.1:{server.server_port}"
            yield registry
        finally:
            server.shutdown()
            thread.join()
