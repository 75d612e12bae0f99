"""A Schema Registry, asked through confluent-kafka's client (extra `registry`): by subject when a
read is planned, by id in tasks.

Options `schemaRegistry.*` are that client's settings: `schemaRegistry.url`,
`schemaRegistry.basic.auth.user.info`, `schemaRegistry.ssl.ca.location` and so on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Self, TypeVar

from fairlead_kafka.base.errors import ConfigError, FairleadError
from fairlead_kafka.spark.formats.avro_types import AvroSchema

if TYPE_CHECKING:
    from confluent_kafka.schema_registry import Schema

T = TypeVar("T")
_NOT_FOUND = 404
_AVRO = "AVRO"
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
_SCHEMAS_KEPT_MAX = 1024


class RegistryFailed(FairleadError):
    """The Schema Registry did not answer, or refused: the task fails, and Spark tries it again; no
    row is lost by it."""


class UnknownSchema(ValueError):
    """There is no such schema in the registry, or it is not Avro."""


class Registry:
    """Schemas by subject and by id, within `with`: it holds connections."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        """Raises ConfigError if the client is not installed or does not take a setting."""
        try:
            from confluent_kafka.schema_registry import SchemaRegistryClient, SchemaRegistryError
        except ImportError as error:
            raise ConfigError(
                f"schemaRegistry.url: needs confluent-kafka's client of it ({error}); pip install "
                "'fairlead-kafka[registry]', also where "
                "executors run"
            ) from None
        self._refusal = SchemaRegistryError
        self._url = settings.get("url", "")
        try:
            numbers = {name: float(settings[name]) for name in _NUMBERS if name in settings}
            self._client = SchemaRegistryClient({"timeout": _TIMEOUT_S, **settings, **numbers})
        except (ValueError, TypeError, OSError) as error:
            raise ConfigError(f"schemaRegistry.*: {error}") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def latest(self, subject: str) -> AvroSchema:
        """The newest schema of a subject. Raises UnknownSchema or RegistryFailed."""
        found = self._ask(f"the subject {subject}", lambda: self._client.get_latest_version(subject))
        return self._avro(f"the subject {subject}", found.schema)

    def by_id(self, schema_id: int) -> AvroSchema:
        """The schema that a message was written with. Raises UnknownSchema or RegistryFailed."""
        what = f"schema id {schema_id}"
        return self._avro(what, self._ask(what, lambda: self._client.get_schema(schema_id)))

    def _avro(self, what: str, schema: Schema) -> AvroSchema:
        kind = schema.schema_type or _AVRO
        if kind != _AVRO:
            raise UnknownSchema(f"{what} is {kind} in the Schema Registry, not AVRO")
        return AvroSchema(_text(schema), tuple(dict.fromkeys(self._referred_to(schema))))

    def _referred_to(self, schema: Schema) -> list[str]:
        texts = []
        for one in schema.references or ():
            assert one.subject is not None, "a reference has both"
            assert one.version is not None, "a reference has both"
            what = f"version {one.version} of the subject {one.subject}"
            found = self._ask(what, partial(self._client.get_version, one.subject, one.version)).schema
            texts += [*self._referred_to(found), _text(found)]
        return texts

    def _ask(self, what: str, ask: Callable[[], T]) -> T:
        try:
            return ask()
        except self._refusal as error:
            if error.http_status_code == _NOT_FOUND:
                raise UnknownSchema(f"{what} is not in the Schema Registry") from None
            raise RegistryFailed(
                f"schemaRegistry.url: {self._url} refused {what} ({error}); check "
                "schemaRegistry.basic.auth.user.info"
            ) from None
        except Exception as error:
            # The client lets its HTTP library's errors through, whichever that library is.
            raise RegistryFailed(
                f"schemaRegistry.url: {self._url} gave no answer about {what} ({type(error).__name__}: "
                f"{error}); check that it runs and is "
                "reachable from here and from executors"
            ) from error


def _text(schema: Schema) -> str:
    """The text of a schema. UnknownSchema for one that the registry gave without its text."""
    if schema.schema_str is None:
        raise UnknownSchema("the Schema Registry has a schema without its text")
    return schema.schema_str


@lru_cache(_SCHEMAS_KEPT_MAX)
def schema_by_id(settings: tuple[tuple[str, str], ...], schema_id: int) -> AvroSchema:
    """`Registry.by_id`, asked once in a process: Spark has its workers do many tasks, and what an
    id stands for never changes."""
    with Registry(dict(settings)) as registry:
        return registry.by_id(schema_id)
