"""The context that a serializer is given, and the strategies that name the subject of its schema in
a Schema Registry."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol, TypeVar, cast

from fairlead_kafka.base.errors import ConfigError, InvalidRecord

if TYPE_CHECKING:
    import pyarrow as pa

    from fairlead_kafka.formats.building import Reasons

Headers = Sequence[tuple[str, bytes | None]] | Mapping[str, bytes | None] | None

T = TypeVar("T")


class MessageField(StrEnum):
    """The part of a record that is serialized: key or value."""

    KEY = "key"
    VALUE = "value"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class SerializationContext:
    """Topic, field and headers of the key or value that is serialized. confluent-kafka's
    serializers take it in place of their own."""

    topic: str
    field: MessageField
    headers: Headers = None


class Serializer(Protocol):
    """A function that makes bytes of an object, such as those of confluent-kafka.

    An exception that it raises reaches the caller of `send` as InvalidRecord.
    """

    def __call__(self, value: object, context: SerializationContext, /) -> bytes | None:
        """The bytes of a value; None for a null, which Kafka keeps as such."""


class Deserializer(Protocol):
    """A function that makes an object of bytes, such as those of confluent-kafka.

    An exception that it raises reaches the caller of `poll` as DeserializationFailed.
    """

    def __call__(self, data: bytes | None, context: SerializationContext, /) -> object:
        """The object that the bytes hold; `data` is None for a null."""


Conversion = Callable[[object, SerializationContext], object]
"""A user's `to_dict` or `from_dict`: from an object to what the format writes, or back."""


def conversion(given: Callable[[T, SerializationContext], object] | None) -> Conversion | None:
    """A user's `to_dict` or `from_dict`, typed as a function of any object. The user's function
    takes objects of one type only; that is not checked here."""
    return cast("Conversion | None", given)


class ColumnSerializer(Protocol):
    """A serializer that takes whole columns as well, for `send_table`."""

    def encode_column(self, array: pa.Array, context: SerializationContext) -> tuple[pa.Array, Reasons]:
        """A binary array, null where a value cannot be written, and the reasons by row.

        TypeError for a column whose type the format does not have.
        """


class ColumnDeserializer(Protocol):
    """A deserializer that takes whole columns as well, for `poll_table`."""

    def decode_column(self, array: pa.Array, context: SerializationContext) -> tuple[pa.Array, Reasons]:
        """An array of the format's type, null where bytes do not parse, and the reasons by row."""


SubjectNameStrategy = Callable[[SerializationContext, str | None], str | None]
"""Function from the context and the schema's full name to a subject, such as those of
confluent-kafka."""


def topic_name(context: SerializationContext, record: str | None) -> str:
    """The subject TOPIC-key or TOPIC-value: a topic has one schema. Confluent's
    TopicNameStrategy."""
    return f"{context.topic}-{context.field}"


def record_name(context: SerializationContext, record: str | None) -> str:
    """The schema's full name as the subject, whatever the topic. Confluent's RecordNameStrategy."""
    return _named(record, "RecordNameStrategy")


def topic_record_name(context: SerializationContext, record: str | None) -> str:
    """The subject TOPIC-NAME, NAME being the schema's full name: a topic may have several schemas.
    Confluent's TopicRecordNameStrategy."""
    return f"{context.topic}-{_named(record, 'TopicRecordNameStrategy')}"


_STRATEGIES: Mapping[str, SubjectNameStrategy] = {
    "TopicNameStrategy": topic_name,
    "RecordNameStrategy": record_name,
    "TopicRecordNameStrategy": topic_record_name,
}


def strategy_of(given: object) -> SubjectNameStrategy:
    """The strategy of `subject.name.strategy`: a function, or Java's class by its name. ConfigError
    for any other value."""
    if callable(given):
        found: SubjectNameStrategy = given
        return found
    strategy = _STRATEGIES.get(str(given).rpartition(".")[2])
    if strategy is None:
        raise ConfigError(
            f"subject.name.strategy: must be a function or one of {', '.join(_STRATEGIES)}, got {given!r}"
        )
    return strategy


def _named(record: str | None, strategy: str) -> str:
    if not record:
        raise InvalidRecord(
            f"subject.name.strategy={strategy}: the schema has no name; use TopicNameStrategy"
        )
    return record
