"""The producer's settings: parsed configs in the units that the machine works in, and the conflicts
among them."""

from __future__ import annotations

from typing import NamedTuple

from fairlead_kafka.base.config import Settings
from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.base.limits import BATCH_OVERHEAD_BYTES, BROKER_BATCH_WINDOW
from fairlead_kafka.base.units import MIB, ms_to_ns
from fairlead_kafka.partitioning import Partitioner, resolve_partitioner
from fairlead_kafka.producer.advice import config_warnings
from fairlead_kafka.records import Compression

ACKS = {"0": 0, "1": 1, "all": -1, "-1": -1}


class ProducerSettings(NamedTuple):
    """Settings of a producer, ready for use; see `base.config_client` for the keys."""

    acks: int
    """0, 1, or -1 for all."""
    idempotent: bool
    batch_size_bytes: int
    batch_limit_bytes: int
    """Record bytes in one batch: batch.size less the header; 0: one record per batch."""
    coalesce_limit_bytes: int
    """Record bytes in one batch if more than batch.size waits: batch.max.size less the header; 0:
    no batch is larger."""
    linger_ns: int
    max_block_ns: int
    max_block_ms: int
    max_request_bytes: int
    delivery_timeout_ns: int
    delivery_timeout_ms: int
    request_timeout_ms: int
    request_timeout_ns: int
    retries: int
    max_in_flight: int
    retry_backoff_ms: int
    retry_backoff_max_ms: int
    compression: Compression
    compression_level: int | None
    availability_timeout_ns: int
    partitioner: Partitioner
    skew_bytes: int = -1
    """partitioner.max.skew.bytes; -1: by traffic (`LatePolicy`)."""
    skew_includes_keyed: bool = False
    adaptive_window: bool = True
    share_bytes: int | None = None
    """Bytes of buffer.memory that the bound records of one broker may hold; None: no bound."""
    buffer_memory_bytes: int = 32 * MIB
    warnings: tuple[str, ...] = ()
    """Warnings about configs that have no effect together (`advice`), for the client API to log."""
    transactional_id: str | None = None
    transaction_timeout_ms: int = 60_000

    @property
    def unknown_topic_ns(self) -> int:
        """How long records wait for metadata, ns: max.block.ms, but delivery.timeout.ms at most."""
        return min(self.max_block_ns, self.delivery_timeout_ns)

    @property
    def unknown_topic_limit(self) -> str:
        """The config that limits `unknown_topic_ns`, with its value, for messages."""
        if self.delivery_timeout_ns < self.max_block_ns:
            return f"delivery.timeout.ms={self.delivery_timeout_ms}"
        return f"max.block.ms={self.max_block_ms}"

    @property
    def keeps_order_by_muting(self) -> bool:
        """True if one request is in flight at most: a partition waits for its batch's answer
        (Kafka's `guaranteeMessageOrder`)."""
        return self.max_in_flight == 1


def producer_settings(settings: Settings) -> ProducerSettings:
    """Settings of scope "producer" made ready; ConfigError for configs that contradict each other
    (`ProducerConfig.postProcess...`)."""
    partitioner = resolve_partitioner(
        settings["partitioner.class"],
        adaptive=settings["partitioner.adaptive.partitioning.enable"],
        ignore_keys=settings["partitioner.ignore.keys"],
    )
    compression = Compression.named(settings["compression.type"])
    delivery_timeout_ms = _delivery_timeout_ms(settings)
    return ProducerSettings(
        acks=ACKS[settings["acks"]],
        idempotent=_idempotent(settings),
        batch_size_bytes=settings["batch.size"],
        batch_limit_bytes=max(settings["batch.size"] - BATCH_OVERHEAD_BYTES, 0),
        coalesce_limit_bytes=_coalesce_limit_bytes(settings),
        linger_ns=ms_to_ns(settings["linger.ms"]),
        max_block_ns=ms_to_ns(settings["max.block.ms"]),
        max_block_ms=settings["max.block.ms"],
        max_request_bytes=settings["max.request.size"],
        delivery_timeout_ns=ms_to_ns(delivery_timeout_ms),
        delivery_timeout_ms=delivery_timeout_ms,
        request_timeout_ms=settings["request.timeout.ms"],
        request_timeout_ns=ms_to_ns(settings["request.timeout.ms"]),
        retries=settings["retries"],
        max_in_flight=settings["max.in.flight.requests.per.connection"],
        retry_backoff_ms=settings["retry.backoff.ms"],
        retry_backoff_max_ms=settings["retry.backoff.max.ms"],
        compression=compression,
        compression_level=_level(settings, compression),
        availability_timeout_ns=ms_to_ns(settings["partitioner.availability.timeout.ms"]),
        partitioner=partitioner,
        skew_bytes=settings["partitioner.max.skew.bytes"],
        skew_includes_keyed=settings["partitioner.skew.include.keyed"],
        adaptive_window=settings["max.in.flight.requests.adaptive.enable"],
        share_bytes=_share_bytes(settings),
        buffer_memory_bytes=settings["buffer.memory"],
        warnings=config_warnings(settings, partitioner),
        transactional_id=settings["transactional.id"],
        transaction_timeout_ms=settings["transaction.timeout.ms"],
    )


def _idempotent(settings: Settings) -> bool:
    transactional = settings["transactional.id"] is not None
    if not settings["enable.idempotence"]:
        if transactional:
            raise ConfigError(
                "transactional.id needs enable.idempotence=true; set that, or leave transactional.id out"
            )
        return False
    conflicts = []
    if ACKS[settings["acks"]] != -1:
        conflicts.append(f"acks=all, not {settings['acks']}")
    if settings["retries"] == 0:
        conflicts.append("retries above 0")
    if settings["max.in.flight.requests.per.connection"] > BROKER_BATCH_WINDOW:
        key = "max.in.flight.requests.per.connection"
        conflicts.append(f"{key} of at most {BROKER_BATCH_WINDOW}, not {settings[key]}")
    if conflicts and transactional:
        raise ConfigError(
            f"transactional.id needs {' and '.join(conflicts)}; change that, or leave transactional.id out"
        )
    if conflicts and "enable.idempotence" in settings.given:
        raise ConfigError(
            f"enable.idempotence=true needs {' and '.join(conflicts)}; change that, or set "
            "enable.idempotence=false"
        )
    return not conflicts


def _delivery_timeout_ms(settings: Settings) -> int:
    least = settings["linger.ms"] + settings["request.timeout.ms"]
    given = settings["delivery.timeout.ms"]
    if given >= least:
        return given
    if "delivery.timeout.ms" in settings.given:
        raise ConfigError(
            f"delivery.timeout.ms={given} is below linger.ms + request.timeout.ms = {settings['linger.ms']} "
            "+ "
            f"{settings['request.timeout.ms']}; raise it, or lower one of those"
        )
    return least


def _share_bytes(settings: Settings) -> int | None:
    ratio = settings["buffer.memory.per.broker.ratio"]
    return None if ratio >= 1.0 else int(ratio * settings["buffer.memory"])


def _coalesce_limit_bytes(settings: Settings) -> int:
    if settings["batch.size"] <= BATCH_OVERHEAD_BYTES:  # a batch for each record was asked for
        return 0
    return max(settings["batch.max.size"] - BATCH_OVERHEAD_BYTES, 0)


def _level(settings: Settings, compression: Compression) -> int | None:
    key = f"compression.{compression.name}.level"
    if key not in settings or (compression is Compression.gzip and settings[key] == -1):
        return None
    return settings.integer(key)
