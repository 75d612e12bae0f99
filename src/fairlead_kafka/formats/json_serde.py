"""JSON without a schema in a registry."""

from __future__ import annotations

import json

import pyarrow as pa

from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.base.json_types import Json, read_json
from fairlead_kafka.formats.building import Decode, Reasons
from fairlead_kafka.formats.context import SerializationContext
from fairlead_kafka.formats.json_columns import json_columns_decoder
from fairlead_kafka.formats.json_types import wire_type
from fairlead_kafka.formats.json_writing import json_texts


class JsonSerializer:
    """Writes objects as JSON in UTF-8, without spaces; in tables, columns of structs, lists and so
    on."""

    def __call__(self, value: object, context: SerializationContext | None = None) -> bytes | None:
        """The JSON of a value, as bytes; None stays null. ValueError or TypeError for a value that
        JSON has no form for."""
        if value is None:
            return None
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()

    def encode_column(
        self, array: pa.Array, context: SerializationContext | None = None
    ) -> tuple[pa.Array, Reasons]:
        """A binary column of JSON; TypeError for a type that JSON has no form for."""
        return json_texts(array)


class JsonDeserializer:
    """Reads JSON as objects; in tables, as columns of `type`, which are read in whole blocks."""

    def __init__(self, type: pa.DataType | pa.Schema | None = None) -> None:
        """`type`: what `poll_table` gives, a type or a struct's fields as a schema. ConfigError for
        a type that JSON cannot be read into."""
        self._decode: Decode | None = None
        if type is not None:
            target = pa.struct(list(type)) if isinstance(type, pa.Schema) else type
            try:
                self._decode = json_columns_decoder(wire_type(target), target)
            except ValueError as error:
                raise ConfigError(f"JsonDeserializer: {error}") from None

    def __call__(self, data: bytes | None, context: SerializationContext | None = None) -> Json:
        """The value that the bytes hold. ValueError for bytes that are not JSON; JSON that does not
        fit `type` is no error here."""
        return None if data is None else read_json(data)

    def decode_column(
        self, array: pa.Array, context: SerializationContext | None = None
    ) -> tuple[pa.Array, Reasons]:
        """A column of `type` and the reasons by row; values that do not fit it whole are null in
        it. ConfigError if the deserializer was made without a type."""
        if self._decode is None:
            raise ConfigError("JsonDeserializer: columns need a type: JsonDeserializer(pa.struct([...]))")
        return self._decode(array.cast(pa.binary()))
