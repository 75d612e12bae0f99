"""Protobuf messages that options name, in the form sent to executors: a name, with the files that
describe the message."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.base.units import MIB

if TYPE_CHECKING:
    from google.protobuf.message import Message

    from fairlead_kafka.formats.protobuf_serde import ProtobufDeserializer

_FILE_MAX_BYTES = 64 * MIB
"""Largest descriptor file that is read: it goes to every task. That of all of Google's APIs is 20
MiB."""
_CLASSES_MAX = 100


@dataclass(frozen=True)
class MessageOf:
    """A message by its full name, in a FileDescriptorSet."""

    name: str
    files: bytes

    def message(self) -> type[Message]:
        """The message's class. ValueError if the files do not describe it."""
        return _message(self.name, self.files)

    def deserializer(self, framed: bool) -> ProtobufDeserializer:
        """A deserializer of the message into Spark's types, which are signed."""
        from fairlead_kafka.formats.protobuf_serde import ProtobufDeserializer

        return ProtobufDeserializer(self.message(), framed=framed, unsigned=False)


@lru_cache(_CLASSES_MAX)
def _message(name: str, files: bytes) -> type[Message]:
    from fairlead_kafka.formats.protobuf_types import message_of

    return message_of(name, files)


def read_message(path: str, name: str) -> MessageOf:
    """A message, by its full name, of the descriptor file at `path`. ValueError if the file or the
    message does not exist, or no column can hold the message."""
    try:
        file = Path(path)
        if file.stat().st_size > _FILE_MAX_BYTES:
            raise ValueError(f"{path} is larger than {_FILE_MAX_BYTES} bytes")
        found = MessageOf(name, file.read_bytes())
    except OSError as error:
        raise ValueError(f"{path} cannot be read ({error.strerror})") from None
    try:
        found.deserializer(framed=False).arrow_type()
    except ImportError as error:
        raise ValueError(
            f"protobuf is needed ({error}); pip install 'fairlead-kafka[protobuf]', also where executors run"
        ) from None
    except ConfigError as error:
        raise ValueError(str(error)) from None
    return found
