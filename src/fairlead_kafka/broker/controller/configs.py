"""Configs of brokers and topics: the source of each value, and the checks of new values.

A broker's value comes from, in order of precedence: a value set on the broker at run time, one set
for the whole cluster, one it was started with, Kafka's default. A topic's value comes from the
topic's own configs, then from the broker's counterpart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.config import ConfigKey, ConfigType, Settings, name_or_none
from fairlead_kafka.base.config_broker import BROKER_CONFIGS, TOPIC_COUNTERPARTS, config_text, topic_settings
from fairlead_kafka.base.config_broker_groups import GROUP_COUNTERPARTS, group_bounds
from fairlead_kafka.base.config_broker_security import key_of_listener
from fairlead_kafka.base.errors import BrokerError, ConfigError
from fairlead_kafka.base.secret import HIDDEN
from fairlead_kafka.broker.controller.image import CLUSTER_WIDE, ClusterImage, TopicImage


class ConfigSource(IntEnum):
    """Source of a config's value, by the protocol's numbers (Kafka's
    `DescribeConfigsResponse.ConfigSource`)."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_CLUSTER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    CLIENT_METRICS = 7
    GROUP = 8


class AlterOperation(IntEnum):
    """Operation on the value of a config key (KIP-339)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ConfigAlteration(NamedTuple):
    """One change: APPEND and SUBTRACT are for lists; `value` is None for DELETE."""

    key: str
    operation: AlterOperation
    value: str | None = None


class ConfigSynonym(NamedTuple):
    """One place a value could come from, and the value there as text."""

    key: str
    value: str | None
    source: ConfigSource


class DescribedConfig(NamedTuple):
    """One key of a broker or topic: its value as text, and the places it could come from, the one
    that counts first."""

    key: ConfigKey
    value: str | None
    source: ConfigSource
    read_only: bool
    synonyms: Sequence[ConfigSynonym]


_FIXED_ON_INTERNAL_TOPICS = ("cleanup.policy", "retention.ms", "retention.bytes")
"""Committed offsets must not fall to retention, so these cannot be changed on internal topics."""


CLIENT_METRICS = "client-metrics"
"""Scope of subscriptions to clients' metrics."""
_REFUSED = {
    "topic": ErrorCode.INVALID_CONFIG,
    "broker": ErrorCode.INVALID_REQUEST,
    "group": ErrorCode.INVALID_CONFIG,
    CLIENT_METRICS: ErrorCode.INVALID_REQUEST,
}
"""Scope → error for a config that is unknown or has a value that does not fit, as in Kafka."""

_COARSER = {
    names[0][0]: [name for name, _factor in names[1:]] for names in TOPIC_COUNTERPARTS.values() if names
}
"""Broker's key → keys that say the same in a coarser unit, or less directly."""
_LEAST_LAG, _MOST_LAG = "min.compaction.lag.ms", "max.compaction.lag.ms"

_NO_TOPIC = ""
"""Stands for all topics that have no configs of their own."""


class Configs:
    """The settings of brokers, topics and groups, parsed from an image's configs. They are kept
    until a config that they depend on changes."""

    def __init__(self, image: ClusterImage, static: Settings) -> None:
        self._image = image
        self._static = static
        self._brokers: dict[str, Settings] = {}
        self._topics: dict[str, dict[str, Settings]] = {}

    def forget(self, topic: str | None = None) -> None:
        """Called when the configs of `topic` changed, or (None) those of brokers, on which all
        settings depend."""
        if topic is not None:
            self._topics.pop(topic, None)
            return
        self._brokers.clear()
        self._topics.clear()

    def broker_settings(self, name: str = CLUSTER_WIDE) -> Settings:
        """Settings (scope "broker") of the broker `name`, a node id as text; CLUSTER_WIDE: of a
        broker with nothing of its own."""
        settings = self._brokers.get(name)
        if settings is None:
            dynamic = {**self._dynamic(CLUSTER_WIDE), **self._dynamic(name)}
            values = {**self._static.values_by_key, **_parsed("broker", dynamic)}
            settings = self._brokers[name] = Settings(values, self._static.given | frozenset(dynamic))
        return settings

    def topic_settings(self, topic: TopicImage, name: str = CLUSTER_WIDE) -> Settings:
        """Settings (scope "topic") of a topic on the broker `name`: its own, over the broker's.
        Topics with none of their own share one."""
        by_broker = self._topics.setdefault(topic.name if topic.configs else _NO_TOPIC, {})
        settings = by_broker.get(name)
        if settings is None:
            settings = by_broker[name] = topic_settings(
                self.broker_settings(name), topic_overrides(topic.internal, topic.configs)
            )
        return settings

    def describe_broker(self, name: str, given: Mapping[str, str] | None = None) -> list[DescribedConfig]:
        """Every key of scope "broker", by name; unlisted keys only if they are set. `given` has
        values that the broker itself knows."""
        known = {**self._broker_values(name), **(given or {})}
        return [
            _described(key, self._all_broker_synonyms(key.name, name, known), not key.dynamic)
            for key in BROKER_CONFIGS.scope("broker")
            if not key.unlisted or self._is_set(key.name, name)
        ]

    def _broker_values(self, name: str) -> dict[str, str]:
        """Values that nobody sets: who the broker is and where it listens."""
        info = next((one for one in self._image.brokers.values() if str(one.node.node_id) == name), None)
        if info is None:
            return {}
        places = info.endpoints or {"PLAINTEXT": (info.node.host, info.node.port)}
        listeners = ",".join(f"{listener}://{host}:{port}" for listener, (host, port) in places.items())
        own = {
            "node.id": name,
            "broker.id": name,
            "listeners": listeners,
            "advertised.listeners": listeners,
        }
        return own if info.node.rack is None else {**own, "broker.rack": info.node.rack}

    def _is_set(self, key_name: str, name: str) -> bool:
        places = (self._static.given, self._dynamic(CLUSTER_WIDE), self._dynamic(name))
        return any(key_name in place for place in places)

    def group_settings(self, group_id: str) -> Settings:
        """Settings (scope "group") of a group: its own, over the broker's."""
        own = self._image.group_configs.get(group_id, {})
        broker = self.broker_settings()
        inherited = {
            key.name: broker.values_by_key.get(GROUP_COUNTERPARTS.get(key.name, ""), key.default)
            for key in BROKER_CONFIGS.scope("group")
        }
        return Settings({**inherited, **_parsed("group", own)}, frozenset(own))

    def describe_group(self, group_id: str) -> list[DescribedConfig]:
        """Every key of scope "group", by name."""
        own = self._image.group_configs.get(group_id, {})
        described = []
        for key in BROKER_CONFIGS.scope("group"):
            counterpart = GROUP_COUNTERPARTS.get(key.name)
            below = (
                [ConfigSynonym(key.name, config_text(key.default), ConfigSource.DEFAULT)]
                if counterpart is None
                else self._broker_synonyms(counterpart, CLUSTER_WIDE)
            )
            mine = [ConfigSynonym(key.name, own[key.name], ConfigSource.GROUP)] if key.name in own else []
            described.append(_described(key, mine + below, False))
        return described

    def describe_topic(self, configs: Mapping[str, str], name: str = CLUSTER_WIDE) -> list[DescribedConfig]:
        """Every key of scope "topic", by name, for a topic with `configs` of its own, as the broker
        `name` has it."""
        inherited = topic_settings(self.broker_settings(name), {})
        return [
            self._describe_topic_key(key, configs, inherited, name)
            for key in BROKER_CONFIGS.scope("topic")
            if not key.unlisted or key.name in configs
        ]

    def _describe_topic_key(
        self, key: ConfigKey, configs: Mapping[str, str], inherited: Settings, name: str
    ) -> DescribedConfig:
        own = [ConfigSynonym(key.name, configs[key.name], ConfigSource.TOPIC)] if key.name in configs else []
        below = [
            synonym
            for counterpart, _ in TOPIC_COUNTERPARTS[key.name]
            for synonym in self._broker_synonyms(counterpart, name)
        ]
        synonyms = own + [synonym for synonym in below if synonym.value is not None]
        if not synonyms:  # no broker has one for it
            return DescribedConfig(key, config_text(key.default), ConfigSource.DEFAULT, False, ())
        described = _described(key, synonyms, False)
        return described if own else described._replace(value=config_text(inherited[key.name]))

    def _dynamic(self, name: str) -> dict[str, str]:
        return self._image.broker_configs.get(name, {})

    def _all_broker_synonyms(self, key_name: str, name: str, given: Mapping[str, str]) -> list[ConfigSynonym]:
        """The synonyms of a key, and, behind them, those of the coarser keys (hours for ms) that
        would count without it."""
        own = self._broker_synonyms(key_name, name, given)
        if own[0].source is ConfigSource.DEFAULT or name == CLUSTER_WIDE:
            return own
        coarser = [
            one for other in _COARSER.get(key_name, ()) for one in self._broker_synonyms(other, name, given)
        ]
        return sorted([*own, *coarser], key=lambda one: one.source)

    def _broker_synonyms(
        self, key_name: str, name: str, given: Mapping[str, str] | None = None
    ) -> list[ConfigSynonym]:
        synonyms = []
        places = [(CLUSTER_WIDE, ConfigSource.DYNAMIC_CLUSTER)]
        if name != CLUSTER_WIDE:
            places.insert(0, (name, ConfigSource.DYNAMIC_BROKER))
        for place, source in places:
            if key_name in self._dynamic(place):
                synonyms.append(ConfigSynonym(key_name, self._dynamic(place)[key_name], source))
        if key_name in self._static.given:
            synonyms.append(
                ConfigSynonym(key_name, config_text(self._static[key_name]), ConfigSource.STATIC_BROKER)
            )
        elif given and key_name in given:
            synonyms.append(ConfigSynonym(key_name, given[key_name], ConfigSource.STATIC_BROKER))
        synonyms.append(
            ConfigSynonym(key_name, config_text(BROKER_CONFIGS.keys[key_name].default), ConfigSource.DEFAULT)
        )
        return synonyms


def client_metrics_settings(configs: Mapping[str, str]) -> Settings:
    """Settings of a subscription to clients' metrics with these configs."""
    return BROKER_CONFIGS.parse(CLIENT_METRICS, configs)


def describe_client_metrics(configs: Mapping[str, str]) -> list[DescribedConfig]:
    """Every key of a subscription to clients' metrics, by name."""
    described = []
    for key in BROKER_CONFIGS.scope(CLIENT_METRICS):
        own = (
            [ConfigSynonym(key.name, configs[key.name], ConfigSource.CLIENT_METRICS)]
            if key.name in configs
            else []
        )
        default = ConfigSynonym(key.name, config_text(key.default), ConfigSource.DEFAULT)
        described.append(_described(key, own or [default], False))
    return described


def _described(key: ConfigKey, synonyms: list[ConfigSynonym], read_only: bool) -> DescribedConfig:
    first = synonyms[0]
    return DescribedConfig(key, first.value, first.source, read_only, synonyms)


def topic_overrides(internal: bool, configs: Mapping[str, str]) -> dict[str, object]:
    """A topic's own configs, parsed. An internal topic may be marked compact, which others may
    not."""
    own = dict(configs)
    policy = own.pop("cleanup.policy", None) if internal else None
    return _parsed("topic", own) | ({} if policy is None else {"cleanup.policy": (policy,)})


def _parsed(scope: str, configs: Mapping[str, str]) -> dict[str, object]:
    settings = BROKER_CONFIGS.parse(scope, configs)
    return {key: settings[key] for key in configs}


def check_topic_configs(configs: Mapping[str, str | None]) -> dict[str, str]:
    """The configs of a topic to be created. BrokerError(INVALID_CONFIG), which says all that is
    wrong, if one is invalid."""
    if not configs:
        return {}
    missing = [key for key, value in configs.items() if value is None]
    if missing:
        raise BrokerError(ErrorCode.INVALID_CONFIG, f"a value is needed for {', '.join(missing)}")
    given = {key: value for key, value in configs.items() if value is not None}
    _check("topic", given)
    return given


def alter(
    scope: str,
    current: Mapping[str, str],
    inherited: Settings,
    alterations: Sequence[ConfigAlteration],
) -> dict[str, str]:
    """`current` after `alterations` (KIP-339); lists that `current` lacks start from `inherited`.

    Raises BrokerError: INVALID_REQUEST for a key named twice or a value missing, INVALID_CONFIG for
    an invalid key or value.
    """
    keys = [alteration.key for alteration in alterations]
    twice = sorted({key for key in keys if keys.count(key) > 1})
    if twice:
        raise BrokerError(
            ErrorCode.INVALID_REQUEST, f"named more than once in one request: {', '.join(twice)}"
        )
    altered = dict(current)
    for alteration in alterations:
        if alteration.operation is AlterOperation.DELETE:
            _check_known(scope, alteration.key)
            altered.pop(alteration.key, None)
            continue
        if alteration.value is None:
            raise BrokerError(
                ErrorCode.INVALID_REQUEST,
                f"{alteration.key}: a value is needed to {alteration.operation.name.lower()}",
            )
        altered[alteration.key] = _altered_value(scope, altered, inherited, alteration)
    _check_dynamic(scope, keys)
    _check(scope, altered)
    return altered


def _altered_value(
    scope: str, altered: Mapping[str, str], inherited: Settings, alteration: ConfigAlteration
) -> str:
    assert alteration.value is not None
    if alteration.operation is AlterOperation.SET:
        return alteration.value
    _check_known(scope, alteration.key)
    key = BROKER_CONFIGS.keys.get(alteration.key)
    if key is None or key.type is not ConfigType.LIST:
        raise BrokerError(
            ErrorCode.INVALID_CONFIG,
            f"{alteration.key}: is not a list, so nothing can be added to it or taken from it",
        )
    text = altered.get(alteration.key)
    listed = inherited[alteration.key]  # None: a list that has no default, such as `listeners`
    items = text.split(",") if text is not None else list(listed) if isinstance(listed, tuple) else []
    named = alteration.value.split(",")
    if alteration.operation is AlterOperation.APPEND:
        there = set(items)
        return ",".join(items + [item for item in named if item not in there])
    gone = set(named)
    return ",".join(item for item in items if item not in gone)


def _check(scope: str, configs: Mapping[str, str]) -> None:
    try:
        settings = BROKER_CONFIGS.parse(scope, configs)
    except ConfigError:
        said = [text for name, value in configs.items() if (text := _wrong(scope, name, value))]
        raise BrokerError(_REFUSED[scope], "; ".join(said)) from None
    for name, value in configs.items():
        too_long = name_or_none(value)  # a list that has grown: no answer could tell of it
        if too_long is not None:
            raise BrokerError(ErrorCode.INVALID_CONFIG, f"{name}: {too_long}")
    wrong = contradiction(settings) if scope == "topic" else None
    if wrong is not None:
        raise BrokerError(ErrorCode.INVALID_CONFIG, wrong)


def _wrong(scope: str, name: str, value: str) -> str | None:
    """The message for an invalid config, which begins as Kafka's does; None if the config is
    valid."""
    try:
        BROKER_CONFIGS.parse(scope, {name: value})
    except ConfigError as error:
        text = str(error).removeprefix(f"{scope} config: ").removeprefix(f"{name}: ")
    else:
        return None
    key = _key(name)
    if key is None or scope not in key.scopes:
        return f"Unknown {scope} config name: {name}: {text.removeprefix('unknown; ')}"
    shown = HIDDEN if key.type is ConfigType.PASSWORD else value
    return f"Invalid value {shown} for configuration {name}: {text.rpartition(', got ')[0] or text}"


def _key(name: str) -> ConfigKey | None:
    """The key that `name` sets, for all listeners or for one; None: there is none."""
    return BROKER_CONFIGS.keys.get(name) or BROKER_CONFIGS.keys.get(key_of_listener(name) or "")


def contradiction(settings: Settings) -> str | None:
    """The message for two settings of a topic that contradict each other (Kafka's
    `LogConfig.validateValues`); None if none do."""
    least, most = settings.integer(_LEAST_LAG), settings.integer(_MOST_LAG)
    if least > most:
        return f"conflict topic config setting {_LEAST_LAG} ({least}) > {_MOST_LAG} ({most})"
    return None


def _check_known(scope: str, key: str) -> None:
    """Raise BrokerError INVALID_CONFIG for a key to delete that is unknown. A key that only Kafka
    has passes: it is never set, but kafka-reassign-partitions deletes some, for its throttles."""
    known = BROKER_CONFIGS.keys.get(key)
    refused = any(
        key == name or (name.endswith(".") and key.startswith(name)) for name in BROKER_CONFIGS.unsupported
    )
    if not refused and (known is None or scope not in known.scopes):
        _check(scope, {key: ""})


def _check_dynamic(scope: str, changed: Iterable[str]) -> None:
    known = [(name, _key(name)) for name in sorted(changed)]
    fixed = [
        name for name, key in known if key is not None and scope in key.scopes and not _is_dynamic(name, key)
    ]
    if fixed:
        raise BrokerError(
            ErrorCode.INVALID_REQUEST,
            f"Cannot update these configs dynamically: [{', '.join(fixed)}]",
        )


def _is_dynamic(name: str, key: ConfigKey) -> bool:
    """True if what `name` sets can be changed while a broker runs: none is, for one listener."""
    return key.dynamic and name == key.name


def check_cluster_wide(alterations: Sequence[ConfigAlteration]) -> None:
    """Raise BrokerError INVALID_REQUEST if a key is altered for all brokers that can be set for
    single ones alone."""
    known = (BROKER_CONFIGS.keys.get(one.key) for one in alterations)
    single = sorted(key.name for key in known if key is not None and key.dynamic and key.per_broker)
    if single:
        raise BrokerError(
            ErrorCode.INVALID_REQUEST,
            f"Cannot update these configs at default cluster level, broker id must be specified: "
            f"[{', '.join(single)}]",
        )


def alter_topic(
    topic: TopicImage, inherited: Settings, alterations: Sequence[ConfigAlteration]
) -> dict[str, str]:
    """A topic's own configs after `alterations`: `alter`, and BrokerError INVALID_CONFIG if an
    internal topic's records could fall to retention."""
    if not topic.internal:
        return alter("topic", topic.configs, inherited, alterations)
    fixed = {key: value for key, value in topic.configs.items() if key in _FIXED_ON_INTERNAL_TOPICS}
    wrong = [alteration.key for alteration in alterations if alteration.key in _FIXED_ON_INTERNAL_TOPICS]
    if wrong:
        raise BrokerError(
            ErrorCode.INVALID_CONFIG, f"{topic.name} is internal: {', '.join(wrong)} cannot be changed on it"
        )
    rest = {key: value for key, value in topic.configs.items() if key not in fixed}
    return fixed | alter("topic", rest, inherited, alterations)


def alter_group(
    group_id: str, current: Mapping[str, str], configs: Configs, alterations: Sequence[ConfigAlteration]
) -> dict[str, str]:
    """A group's own configs after `alterations`: `alter`, and BrokerError INVALID_CONFIG for a
    value outside of the broker's bounds, or for sessions that end between two heartbeats."""
    if not group_id:
        raise BrokerError(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
    settings = configs.group_settings(group_id)
    altered = alter("group", current, settings, alterations)
    broker = configs.broker_settings().values_by_key
    values = Settings({**settings.values_by_key, **_parsed("group", altered)}, frozenset(altered))
    for key in (key for key in altered if key in GROUP_COUNTERPARTS):
        value, *bounds = (values[key], *(broker[bound] for bound in group_bounds(key)))
        assert isinstance(value, int), key
        if not int(str(bounds[0])) <= value <= int(str(bounds[1])):
            raise BrokerError(
                ErrorCode.INVALID_CONFIG,
                f"{key} is {value}, and must be between {bounds[0]} and {bounds[1]} "
                f"({' and '.join(group_bounds(key))})",
            )
    for protocol in ("consumer", "share"):
        timeout, interval = f"{protocol}.session.timeout.ms", f"{protocol}.heartbeat.interval.ms"
        if values.integer(timeout) <= values.integer(interval):
            raise BrokerError(ErrorCode.INVALID_CONFIG, f"{timeout} must be greater than {interval}")
    return altered


def changeable_configs(topic: TopicImage) -> dict[str, str]:
    """A topic's own configs without those that may not change on an internal topic."""
    return {
        key: value
        for key, value in topic.configs.items()
        if not (topic.internal and key in _FIXED_ON_INTERNAL_TOPICS)
    }


def replacing(current: Mapping[str, str], wanted: Mapping[str, str | None]) -> list[ConfigAlteration]:
    """The alterations that leave exactly `wanted` of `current` (the older AlterConfigs, which
    replaces all)."""
    dropped = [ConfigAlteration(key, AlterOperation.DELETE) for key in current if key not in wanted]
    return dropped + [ConfigAlteration(key, AlterOperation.SET, value) for key, value in wanted.items()]
