"""The exceptions Fairlead raises: few classes, whose type says whose fault it is.

What to do about an error code of a broker is in `fairlead_kafka.base.codes`.

FairleadError
├── ConfigError            a config is unknown, of a wrong type or out of range (also a ValueError)
├── UsageError             a call that cannot be served now: closed, not assigned, in a wrong order
├── InvalidRecord          a record or a table that can never be sent as it is (also a ValueError)
│   └── RecordTooLarge     larger than max.request.size, buffer.memory or broker's message.max.bytes
├── BatchRefused           the record is fine, but others of its batch were refused; send it again
├── DecodeError            bytes that are not what the protocol says; names the byte offset
├── DeserializationFailed  a deserializer refuses a key or value; has its offset (also a ValueError)
├── TimedOut               no answer within the time allowed (also a TimeoutError)
│   └── BufferExhausted    no room in buffer.memory within max.block.ms
├── ConnectionFailed       no broker can be reached, or a connection broke (also a ConnectionError)
│   └── NoBrokerReached    this client has never reached a broker: check bootstrap.servers
├── AuthenticationFailed   a certificate or log-in is not accepted; trying again does not help
├── UnsupportedVersion     the broker and this client share no version of an API
├── TransactionFailed      the transaction can only be aborted, or was; `.__cause__` says why
└── BrokerError            a broker answered with an error code; `.code`, `.name`, `.retriable`
    ├── ProducerFenced     a newer producer with the same identity took over; this one must stop
    ├── OffsetOutOfRange   the offset asked for is not in the partition's log; says what is
    ├── LogTruncated       records that were read are lost after an unclean leader election
    └── ItemsFailed        some items of an admin call failed: `.errors`; `.results` has the others
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fairlead_kafka.base import codes
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.base.limits import ERROR_TEXT_MAX_LENGTH


class FairleadError(Exception):
    """Root of everything Fairlead raises on purpose."""


class ConfigError(FairleadError, ValueError):
    """A setting is unknown, of the wrong type, or out of its range."""


class UsageError(FairleadError, RuntimeError):
    """A call that this object cannot serve: in its present state, or with these arguments."""


class InvalidRecord(FairleadError, ValueError):
    """A record or a table that can never be sent as it is."""


class RecordTooLarge(InvalidRecord):
    """One record exceeds a size limit; the message says which one and by how much."""


class BatchRefused(FairleadError):
    """A record was not written because a broker refused others in its batch.

    Nothing is wrong with the record, and it may be sent again.
    """


class DecodeError(FairleadError, ValueError):
    """Bytes that are not what the protocol says.

    `offset` is the position, in bytes from the start of the buffer given to the decoder, where
    decoding failed.
    """

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(f"{message} (at byte {offset})")
        self.message = message
        self.offset = offset

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.message, self.offset)


class DeserializationFailed(FairleadError, ValueError):
    """A key or value that a deserializer does not take; Kafka's RecordDeserializationException.

    `partition`, `offset`: the record; seek past it to go on. `field`: key or value. `data`: its
    bytes.
    """

    def __init__(
        self, partition: TopicPartition, offset: int, field: str, data: bytes | None, reason: str
    ) -> None:
        super().__init__(f"{partition} offset {offset}: {field}: {reason}; seek past it to go on")
        self.partition, self.offset, self.field, self.data, self.reason = (
            partition,
            offset,
            field,
            data,
            reason,
        )

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.partition, self.offset, self.field, self.data, self.reason)


class TimedOut(FairleadError, TimeoutError):
    """No answer within the time allowed."""


class BufferExhausted(TimedOut):
    """No room in `buffer.memory` within `max.block.ms`."""


class ConnectionFailed(FairleadError, ConnectionError):
    """No broker could be reached, or a connection broke before its answer came."""


class NoBrokerReached(ConnectionFailed):
    """A client has never reached a broker: most often its `bootstrap.servers` are wrong, or nothing
    runs there.

    Trying again helps only if a broker is about to start.
    """

    HINT = "; check bootstrap.servers, and that a broker runs there"
    """Advice at the end of its message, unless a broker has answered ApiVersions."""


class AuthenticationFailed(FairleadError):
    """One end of a connection does not accept who the other one is: a certificate, a password, a
    token, a mechanism.

    Final for the call that it is raised from. The client goes on trying at its reconnect back-off,
    so that what is mended (a certificate renewed on disk, a user added) works without a restart.
    (Kafka's SslAuthenticationException and SaslAuthenticationException.)
    """


class UnsupportedVersion(FairleadError):
    """The broker and this client share no version of an API."""


class TransactionFailed(FairleadError):
    """The open transaction can only be aborted, or was: nothing of it is committed. Abort it, and
    begin again.

    `__cause__` is the error that brought it about; None if the application aborted.
    """


class BrokerError(FairleadError):
    """A broker answered with an error code (`fairlead_kafka.base.codes`)."""

    def __init__(self, code: int, context: str = "") -> None:
        self.code = code
        self.context = context
        self.policy = codes.policy(code)
        self.name = self.policy.name
        self.retriable = self.policy.retriable
        super().__init__(f"{self.name} ({code}): {context or self.policy.meaning}")

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.code, self.context)


class ProducerFenced(BrokerError):
    """A newer producer with the same identity took over; this one must stop."""


class OffsetOutOfRange(BrokerError):
    """The offset asked for is not in the partition's log: retention or deletion took it, or it was
    never written.

    `partition` and `offset` say what was asked for; `log_start_offset` and `log_end_offset` what is
    there (-1: not known).
    """

    def __init__(
        self, partition: TopicPartition, offset: int, log_start_offset: int, log_end_offset: int
    ) -> None:
        self.partition = partition
        self.offset = offset
        self.log_start_offset = log_start_offset
        self.log_end_offset = log_end_offset
        super().__init__(
            codes.ErrorCode.OFFSET_OUT_OF_RANGE,
            f"offset {offset} of {partition} was asked for, but its log holds {log_start_offset} to "
            f"{log_end_offset} (end excluded); "
            "seek to an offset in that range, or set auto.offset.reset",
        )

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.partition, self.offset, self.log_start_offset, self.log_end_offset)


class LogTruncated(BrokerError):
    """Records that were read are not in the partition's log any more: a leader that did not have
    them was elected (KIP-320), or the topic was deleted and made again.

    The log and what was read are the same up to `diverging_offset` (excluded); `offset` is where
    reading was to go on.
    """

    def __init__(self, partition: TopicPartition, offset: int, diverging_offset: int) -> None:
        self.partition = partition
        self.offset = offset
        self.diverging_offset = diverging_offset
        super().__init__(
            codes.ErrorCode.OFFSET_OUT_OF_RANGE,
            f"{partition} was read up to offset {offset}, and lost its records from {diverging_offset} on, "
            "in an unclean election or when its topic was made again; "
            "seek to where reading should go on, or set auto.offset.reset",
        )

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.partition, self.offset, self.diverging_offset)


class ItemsFailed(BrokerError):
    """Some items of one call failed, each with an error of its own.

    `errors` maps the name of every failed item to its error, `results` that of every other item to
    its result; `code` is that of the first error, so that a call about one item reads like a plain
    `BrokerError`.
    """

    def __init__(
        self, what: str, errors: Mapping[Any, BrokerError], results: Mapping[Any, Any] | None = None
    ) -> None:
        self.what = what
        self.errors = dict(errors)
        self.results = dict(results or {})
        details = "; ".join(f"{name}: {error}" for name, error in self.errors.items())
        of = len(self.errors) + len(self.results)
        super().__init__(
            next(iter(self.errors.values())).code, f"{what} failed for {len(self.errors)} of {of}: {details}"
        )

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.what, self.errors, self.results)


def cut_short(text: str) -> str:
    """The text for an answer, cut to ERROR_TEXT_MAX_LENGTH characters: it may quote a name of a
    request, which may be as long as any string."""
    return text if len(text) <= ERROR_TEXT_MAX_LENGTH else text[: ERROR_TEXT_MAX_LENGTH - 4] + " ..."
