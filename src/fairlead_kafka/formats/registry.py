"""A Schema Registry (Confluent's REST API, which Karapace and Apicurio serve too), through
confluent-kafka's client (extra `registry`).

Settings are that client's: `url`, `basic.auth.user.info`, `bearer.auth.*`, `ssl.ca.location`,
`ssl.certificate.location`, `ssl.key.location`, `timeout`, `max.retries` and so on. A text may hold
references to secrets (`${env:NAME}`, `security.references`).
"""

from __future__ import annotations

import re
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING, NamedTuple, Self, TypeVar

from fairlead_kafka.base.errors import ConfigError, FairleadError
from fairlead_kafka.security.references import resolve

if TYPE_CHECKING:
    from confluent_kafka.schema_registry import RegisteredSchema, Schema, SchemaRegistryClient

T = TypeVar("T")
AVRO, PROTOBUF, JSON = "AVRO", "PROTOBUF", "JSON"
_NOT_FOUND = 404
_NOT_ALLOWED = (401, 403)
_TIMEOUT_S = 30
"""Seconds to wait for the registry; its client by itself would wait for ever."""
_NUMBERS = (
    "timeout",
    "max.retries",
    "retries.wait.ms",
    "retries.max.wait.ms",
    "cache.capacity",
    "cache.latest.ttl.sec",
)
"""Settings that the client wants as numbers; Spark's options are text."""
SCHEMAS_KEPT_MAX = 1000
"""Bound on the schemas that a process, and a `SchemaRegistry`, remember; as confluent-kafka's
`cache.capacity`, which bounds only those asked for by subject."""


REFERENCES_MAX = 1000
"""Bound on the schemas that a schema refers to, directly or not: as many as are remembered."""
REFERENCES_DEEP_MAX = 100
"""Bound on the length of a chain of references. A registry that answers without end would be asked
without end."""


def _without_password(text: str) -> str:
    """The text without the name and password of a URL in it, for messages."""
    return re.sub(r"//.*@", "//", text)


class RegistryFailed(FairleadError):
    """The Schema Registry did not answer, or refused. No record is to blame: try again."""


class UnknownSchema(ValueError):
    """There is no such schema in the registry, or it is not of the kind asked for."""


class SchemaReference(NamedTuple):
    """A schema that another one refers to: its name in that other, and the subject and version
    under which the registry has it."""

    name: str
    subject: str
    version: int


class StoredSchema(NamedTuple):
    """A schema as the registry has it. `imports`: name and text of what it refers to, directly or
    not, each after what it refers to itself. `guid` and `version`: None if it was not asked for."""

    kind: str
    text: str
    imports: tuple[tuple[str, str], ...] = ()
    schema_id: int | None = None
    guid: str | None = None
    version: int | None = None

    def of_kind(self, kind: str, what: str) -> StoredSchema:
        """The schema itself if it is of this kind. UnknownSchema if not."""
        if self.kind != kind:
            raise UnknownSchema(f"{what} is {self.kind} in the Schema Registry, not {kind}")
        return self


class SchemaRegistry:
    """Schemas by subject, id and GUID. Safe for several threads.

    `with` closes its connections, as does dropping it; a client that it was given stays open then.
    """

    def __init__(self, config: Mapping[str, object] | SchemaRegistryClient) -> None:
        """`config`: settings of confluent-kafka's `SchemaRegistryClient`, or one of its clients.

        Raises ConfigError if the client is not installed or does not take a setting.
        """
        try:
            from confluent_kafka.schema_registry import SchemaRegistryClient, SchemaRegistryError
        except ImportError as error:
            raise ConfigError(
                f"a Schema Registry needs confluent-kafka's client of it ({error}); pip install "
                "'fairlead-kafka[registry]', in Spark also where "
                "executors run"
            ) from None
        self._refusal = SchemaRegistryError
        self._lock = threading.Lock()
        self._asked = 0
        if not isinstance(config, Mapping):
            self.url = "the Schema Registry"
            self._client = config
            return
        self.url = _without_password(str(config.get("url", "")))
        try:
            given: dict[str, object] = {
                name: resolve(value, f"schema registry {name}") if isinstance(value, str) else value
                for name, value in config.items()
            }
            numbers = {name: float(str(given[name])) for name in _NUMBERS if name in given}
            self._client = SchemaRegistryClient({"timeout": _TIMEOUT_S, **given, **numbers})
            # A serializer made of settings has nobody who closes it.
            weakref.finalize(self, self._client.close)
        except ConfigError:
            raise
        except (ValueError, TypeError, OSError) as error:
            raise ConfigError(f"settings of the Schema Registry: {error}") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections to the registry; it cannot be asked any more."""
        self._client.close()

    def latest(self, subject: str) -> StoredSchema:
        """The newest schema of a subject. Raises UnknownSchema if there is none, RegistryFailed if
        the registry does not answer."""
        what = f"the subject {subject}"
        return self._registered(what, self._ask(what, lambda: self._client.get_latest_version(subject)))

    def by_id(self, schema_id: int) -> StoredSchema:
        """The schema that a message was written with. Raises UnknownSchema if there is none,
        RegistryFailed if the registry does not answer."""
        what = f"schema id {schema_id}"
        found = self._stored(what, self._ask(what, lambda: self._client.get_schema(schema_id)))
        return found._replace(schema_id=schema_id)

    def by_guid(self, guid: str) -> StoredSchema:
        """The schema of a GUID (8-4-4-4-12 hex digits). Raises UnknownSchema if there is none,
        RegistryFailed if the registry does not answer."""
        what = f"schema GUID {guid}"
        found = self._stored(what, self._ask(what, lambda: self._client.get_schema_by_guid(guid)))
        return found._replace(guid=guid)

    def register(
        self,
        subject: str,
        kind: str,
        text: str,
        references: Sequence[SchemaReference] = (),
        *,
        normalize: bool = False,
    ) -> StoredSchema:
        """Register a schema under a subject, or find it there. Returns the schema with its id.

        RegistryFailed also for a schema that is not compatible with those of the subject.
        """
        what = f"to register a schema under the subject {subject}"
        schema = self._written(kind, text, references)
        found = self._ask(
            what, lambda: self._client.register_schema_full_response(subject, schema, normalize)
        )
        return StoredSchema(
            kind, text, self._imports(schema), found.schema_id, found.guid or None, found.version or None
        )

    def lookup(
        self,
        subject: str,
        kind: str,
        text: str,
        references: Sequence[SchemaReference] = (),
        *,
        normalize: bool = False,
    ) -> StoredSchema:
        """A schema, with its id, that is registered under a subject already. UnknownSchema if it is
        not registered there."""
        what = f"the schema given, under the subject {subject},"
        schema = self._written(kind, text, references)
        found = self._ask(what, lambda: self._client.lookup_schema(subject, schema, normalize))
        return StoredSchema(
            kind, text, self._imports(schema), found.schema_id, found.guid or None, found.version or None
        )

    def is_compatible(
        self,
        subject: str,
        kind: str,
        text: str,
        references: Sequence[SchemaReference] = (),
        version: int | str = "latest",
    ) -> bool:
        """Whether a schema may follow a version of a subject, by the subject's compatibility
        level."""
        schema = self._written(kind, text, references)
        what = f"whether a schema fits version {version} of the subject {subject}:"
        return self._ask(what, lambda: self._client.test_compatibility(subject, schema, version))

    def compatibility(self, subject: str) -> str:
        """The compatibility level of a subject, or, if it has none of its own, the registry's:
        BACKWARD, FULL, NONE and so on."""
        what = f"the compatibility level of the subject {subject}"
        try:
            found = self._ask(what, lambda: self._client.get_config(subject))
        except UnknownSchema:
            found = self._ask("the compatibility level", self._client.get_config)
        return str(getattr(found.compatibility_level, "value", found.compatibility_level))

    def set_compatibility(self, subject: str, level: str) -> None:
        """Set the compatibility level of a subject."""
        what = f"the compatibility level of the subject {subject}"
        self._ask(what, lambda: self._client.set_compatibility(subject, level))

    def _written(self, kind: str, text: str, references: Sequence[SchemaReference]) -> Schema:
        from confluent_kafka.schema_registry import Schema
        from confluent_kafka.schema_registry import SchemaReference as Reference

        return Schema(text, kind, [Reference(*reference) for reference in references])

    def _registered(self, what: str, found: RegisteredSchema) -> StoredSchema:
        stored = self._stored(what, found.schema)
        return stored._replace(schema_id=found.schema_id, guid=found.guid or None, version=found.version)

    def _stored(self, what: str, schema: Schema) -> StoredSchema:
        return StoredSchema(schema.schema_type or AVRO, self._text(what, schema), self._imports(schema))

    def _imports(self, schema: Schema) -> tuple[tuple[str, str], ...]:
        found: dict[str, str] = {}
        self._collect(schema, found)
        return tuple(found.items())

    def _collect(self, schema: Schema, found: dict[str, str], depth: int = 0) -> None:
        for one in schema.references or ():
            name, subject, version = one.name, one.subject, one.version
            if not (isinstance(name, str) and isinstance(subject, str) and isinstance(version, int)):
                raise RegistryFailed(
                    f"the Schema Registry at {self.url} gave a schema that refers to another without saying "
                    f"which: name {name!r}, subject {subject!r}, version {version!r}"
                )
            if name in found:
                continue
            what = f"version {version} of the subject {subject}"
            if depth >= REFERENCES_DEEP_MAX or len(found) >= REFERENCES_MAX:
                raise RegistryFailed(
                    f"the Schema Registry at {self.url} gave a schema that refers to {what} in a circle, or "
                    f"to more than {REFERENCES_DEEP_MAX} one after the other or {REFERENCES_MAX} in all"
                )
            inner = self._ask(what, partial(self._client.get_version, subject, version)).schema
            self._collect(inner, found, depth + 1)
            found[name] = self._text(what, inner)

    def _text(self, what: str, schema: Schema) -> str:
        """The text of a schema. UnknownSchema for one that the registry gave without its text,
        RegistryFailed if that is no text."""
        text: object = schema.schema_str
        if text is None:
            raise UnknownSchema(f"{what} comes without its text from the Schema Registry")
        if not isinstance(text, str):
            raise RegistryFailed(
                f"the Schema Registry at {self.url} gave {what} as {type(text).__name__}, not as text"
            )
        return text

    def _ask(self, what: str, ask: Callable[[], T]) -> T:
        with self._lock:
            self._asked += 1
            if self._asked % SCHEMAS_KEPT_MAX == 0:
                # What it has by id it keeps for ever; what is needed is asked for once more.
                self._client.clear_caches()  # type: ignore[no-untyped-call]
        try:
            return ask()
        except self._refusal as error:
            if error.http_status_code == _NOT_FOUND:
                raise UnknownSchema(f"{what} is not in the Schema Registry") from None
            hint = "; check basic.auth.user.info, or what else says who asks"
            raise RegistryFailed(
                f"the Schema Registry at {self.url} refused {what} ({error})"
                f"{hint if error.http_status_code in _NOT_ALLOWED else ''}"
            ) from None
        except Exception as error:
            # The client lets its HTTP library's errors through, whichever that library is.
            raise RegistryFailed(
                f"the Schema Registry at {self.url} gave no answer about {what} ({type(error).__name__}: "
                f"{_without_password(str(error))}); check that it runs and is reachable from here, and in "
                "Spark from executors"
            ) from error


def registry_of(given: SchemaRegistry | Mapping[str, object] | SchemaRegistryClient) -> SchemaRegistry:
    """`given` if it is a SchemaRegistry; else a SchemaRegistry made of settings or of
    confluent-kafka's client."""
    return given if isinstance(given, SchemaRegistry) else SchemaRegistry(given)


@lru_cache(SCHEMAS_KEPT_MAX)
def schema_by_id(settings: tuple[tuple[str, str], ...], schema_id: int) -> StoredSchema:
    """The schema of an id, asked for once in a process: Spark has its workers do many tasks, and
    the schema of an id never changes."""
    with SchemaRegistry(dict(settings)) as registry:
        return registry.by_id(schema_id)
