"""Policies by `partitioner.class`: Fairlead's names, Kafka's class names, callables and dotted
paths."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import NamedTuple

from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.base.nearest import nearest
from fairlead_kafka.core.machine import Rng
from fairlead_kafka.partitioning.assignment import KeyedPartitions
from fairlead_kafka.partitioning.crc32 import crc32_partitions
from fairlead_kafka.partitioning.custom import CustomPartitioner
from fairlead_kafka.partitioning.hashing import keyed_partitions
from fairlead_kafka.partitioning.late import LatePolicy
from fairlead_kafka.partitioning.load import UnkeyedPolicy
from fairlead_kafka.partitioning.round_robin import RoundRobinPolicy
from fairlead_kafka.partitioning.sticky import StickyPolicy
from fairlead_kafka.partitioning.uniform import AdaptivePolicy, KafkaUniformPolicy, UniformPolicy


class PolicySettings(NamedTuple):
    """Settings that a policy of one topic is made with."""

    batch_size_bytes: int
    """`batch.size`, the header included."""
    skew_bytes: int | None
    """`partitioner.max.skew.bytes`; None: by traffic."""
    together: bool
    """Quanta that come at once may be put together."""
    rng: Rng


class PolicyKind(NamedTuple):
    """One policy that `partitioner.class` can name."""

    make: Callable[[PolicySettings], UnkeyedPolicy | LatePolicy]
    avoids_unready: bool = False
    """It passes over brokers that take nothing: partitioner.availability.timeout.ms has an
    effect."""


POLICIES: Mapping[str, PolicyKind] = {
    "round_robin": PolicyKind(lambda its: RoundRobinPolicy()),
    "sticky": PolicyKind(lambda its: StickyPolicy(batch_size_bytes=its.batch_size_bytes, rng=its.rng)),
    "uniform": PolicyKind(
        lambda its: UniformPolicy(batch_size_bytes=its.batch_size_bytes, rng=its.rng, together=its.together)
    ),
    "uniform.kafka": PolicyKind(
        lambda its: KafkaUniformPolicy(batch_size_bytes=its.batch_size_bytes, rng=its.rng)
    ),
    "adaptive": PolicyKind(
        lambda its: AdaptivePolicy(batch_size_bytes=its.batch_size_bytes, rng=its.rng, together=its.together),
        avoids_unready=True,
    ),
    "late": PolicyKind(
        lambda its: LatePolicy(batch_size_bytes=its.batch_size_bytes, skew_bytes=its.skew_bytes, rng=its.rng),
        avoids_unready=True,
    ),
}
"""All policies by the name that `partitioner.class` takes. A new one is entered here and nowhere
else."""
POLICY_NAMES = tuple(POLICIES)
"""The names of all policies."""
DEFAULT_POLICY = "late"
"""The policy without `partitioner.class`: even, as Kafka's uniform partitioner means to be, and
quicker than Kafka's adaptive one."""
_KAFKA_PACKAGE = "org.apache.kafka.clients.producer."
_KAFKA_CLASSES = {
    f"{_KAFKA_PACKAGE}RoundRobinPartitioner": ("round_robin", True),
    f"{_KAFKA_PACKAGE}UniformStickyPartitioner": ("sticky", True),
    f"{_KAFKA_PACKAGE}internals.DefaultPartitioner": ("sticky", False),
}
"""Kafka's class → its policy, and whether it ignores keys (KIP-480)."""
_DEPRECATED = {
    f"{_KAFKA_PACKAGE}UniformStickyPartitioner": "remove it, and set partitioner.ignore.keys=true instead",
    f"{_KAFKA_PACKAGE}internals.DefaultPartitioner": "remove it",
}
_LIBRDKAFKA = (
    "leave it out (null): records with a key go where librdkafka's murmur2_random and Java put "
    "them, others where the policy says"
)
CONSISTENT_RANDOM = "consistent_random"
"""librdkafka's name for its default, which places keys by their CRC-32."""
_FNV = "there is no placing of keys by FNV-1a here; give a callable"
_OTHERS_NAMES = {
    "late.any": "write late, with partitioner.max.skew.bytes=9223372036854775807: so the plots name it",
    "murmur2_random": _LIBRDKAFKA,
    "murmur2": _LIBRDKAFKA,
    "random": "leave it out (null): records without a key go where the policy says; with one, see "
    "partitioner.ignore.keys",
    "fnv1a_random": _FNV,
    "fnv1a": _FNV,
    "consistent": f"write {CONSISTENT_RANDOM}, which places records with a key alike",
}
"""Name in our plots or in librdkafka → what to write instead."""
_BUILT_IN = ("", "null")
_CONFIG_KEY = "partitioner.class"


class Partitioner(NamedTuple):
    """A producer's parsed `partitioner.class`; `make_policy` makes each topic's policy of it."""

    policy_name: str
    """One of POLICY_NAMES; with a custom partitioner, what places the records for which it answers
    -1."""
    ignore_keys: bool
    """Keyed records are placed as unkeyed ones: pass it to `assign_partitions`."""
    custom: CustomPartitioner | None = None
    """A custom partitioner, or None: pass it to `assign_partitions`."""
    keyed: KeyedPartitions = keyed_partitions
    """Places records that have a key: pass it to `assign_partitions`."""


def resolve_partitioner(
    partitioner: object, *, adaptive: bool = True, ignore_keys: bool = False
) -> Partitioner:
    """Resolve `partitioner.class`, given `partitioner.adaptive.partitioning.enable` and
    `partitioner.ignore.keys`.

    None, "null" and "": the default, `late`, or `uniform` if not `adaptive`. A policy's name: that
    policy, whatever `adaptive` says. Kafka's RoundRobinPartitioner and UniformStickyPartitioner by
    full name: `round_robin` and `sticky` with keys ignored; its DefaultPartitioner: `sticky`. The
    last two are deprecated and behave as they always did (KIP-794; `deprecation`). librdkafka's
    `consistent_random`: the default, but keys are placed by CRC-32. A callable, or
    the dotted path of one (of a class: it is called without arguments): a custom partitioner;
    `adaptive` and `ignore_keys` then govern the records it leaves open with -1.

    Raises ConfigError for an unknown name, naming the nearest known one, for a path that cannot be
    imported, and for what is not callable.
    """
    built_in = DEFAULT_POLICY if adaptive else "uniform"
    if partitioner is None or (isinstance(partitioner, str) and partitioner.strip() in _BUILT_IN):
        return Partitioner(built_in, ignore_keys)
    if not isinstance(partitioner, str):
        return Partitioner(built_in, ignore_keys, _checked(partitioner, repr(partitioner)))
    name = partitioner.strip()
    if name in POLICY_NAMES:
        return Partitioner(name, ignore_keys)
    if name == CONSISTENT_RANDOM:
        return Partitioner(built_in, ignore_keys, keyed=crc32_partitions)
    if name in _OTHERS_NAMES:
        raise ConfigError(f"{_CONFIG_KEY}: {name}: {_OTHERS_NAMES[name]}")
    name = _full(name)
    if name in _KAFKA_CLASSES:
        policy_name, ignores_keys = _KAFKA_CLASSES[name]
        return Partitioner(policy_name, ignores_keys or ignore_keys)
    if "." not in name or name.startswith(_KAFKA_PACKAGE):
        raise _unknown(name)
    return Partitioner(built_in, ignore_keys, _checked(_imported(name), name))


def make_policy(
    partitioner: Partitioner | str | CustomPartitioner | None,
    *,
    batch_size_bytes: int,
    rng: Rng,
    adaptive: bool = True,
    skew_bytes: int = -1,
    together: bool = False,
) -> UnkeyedPolicy | LatePolicy:
    """A new policy for one topic; `partitioner` as `resolve_partitioner` takes or gives it.

    `batch_size_bytes` is `batch.size`, header included, 0 or more; `skew_bytes` is
    `partitioner.max.skew.bytes`, for `late` only (-1: by traffic). `adaptive`:
    `partitioner.adaptive.partitioning.enable`. `together`: with `uniform` and `adaptive`, several
    quanta that are submitted at once become one batch. `rng` may be shared among topics.
    Raises ConfigError as `resolve_partitioner` does.
    """
    skew = None if skew_bytes < 0 else skew_bytes
    resolved = (
        partitioner
        if isinstance(partitioner, Partitioner)
        else resolve_partitioner(partitioner, adaptive=adaptive)
    )
    return POLICIES[resolved.policy_name].make(PolicySettings(batch_size_bytes, skew, together, rng))


def deprecation(partitioner: object) -> str | None:
    """Advice if `partitioner.class` names a class that KIP-794 deprecated, else None."""
    return _DEPRECATED.get(_full(partitioner.strip())) if isinstance(partitioner, str) else None


def is_kafka_class(partitioner: object) -> bool:
    """True if `partitioner.class` names one of Kafka's classes that is known here."""
    return isinstance(partitioner, str) and _full(partitioner.strip()) in _KAFKA_CLASSES


def _full(name: str) -> str:
    """The full name of the class `name`. Kafka's DefaultPartitioner is also recognised without its
    package `internals`."""
    return (
        f"{_KAFKA_PACKAGE}internals.DefaultPartitioner"
        if name == f"{_KAFKA_PACKAGE}DefaultPartitioner"
        else name
    )


def _checked(candidate: object, name: str) -> CustomPartitioner:
    """`candidate` as a custom partitioner, or an instance of it if it is a class. ConfigError if it
    is neither a function nor a class that can be made."""
    made: object = candidate() if isinstance(candidate, type) else candidate
    if not callable(made):
        raise ConfigError(
            f"{_CONFIG_KEY}: {name} is of type {type(made).__name__}, which cannot be called; "
            "give a callable (topic, keys, values, partition_count), or a policy: " + ", ".join(POLICY_NAMES)
        )
    return made


def _imported(path: str) -> object:
    """The object at a dotted path: a module, then an attribute of it. ConfigError if it cannot be
    imported."""
    module_name, _, attribute = path.rpartition(".")
    try:
        found: object = getattr(import_module(module_name), attribute)
        return found
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(
            f"{_CONFIG_KEY}: cannot import {path!r} ({error}); give the dotted path of a callable in an "
            "importable module, "
            f"or a policy: {', '.join(POLICY_NAMES)}"
        ) from error


def _unknown(name: str) -> ConfigError:
    known = [*POLICY_NAMES, CONSISTENT_RANDOM, *_KAFKA_CLASSES]
    hint = nearest(name, known, cutoff=0.0)
    return ConfigError(
        f"{_CONFIG_KEY}: no partitioner is named {name!r}; did you mean {hint!r}? Known are "
        f"{', '.join(known)}, "
        "null for the default, a callable, and the dotted path of a callable"
    )
