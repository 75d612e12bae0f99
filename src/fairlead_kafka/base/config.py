"""Tables of configs: one entry per key, from which parsing, errors and the documentation all come.

The tables themselves are `config_client.CLIENT_CONFIGS` and `config_broker.BROKER_CONFIGS`. Keys
are Kafka's own, dotted, with Kafka's defaults. A key that is unknown, or a value that does not fit,
is refused with the nearest right name; all that is wrong is said at once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.base.limits import STRING_MAX_BYTES
from fairlead_kafka.base.nearest import nearest
from fairlead_kafka.base.secret import HIDDEN, Secret

LOGGER = logging.getLogger("fairlead_kafka.config")

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1
_SHOWN_MAX = 200
"""Characters of a wrong value that an error shows."""


class ConfigType(Enum):
    """Kafka's config types (`ConfigDef.Type`); ANY is for values that only Python can hold, such as
    a callable.

    A PASSWORD is parsed to a `Secret`.
    """

    BOOLEAN = "boolean"
    INT = "int"
    LONG = "long"
    DOUBLE = "double"
    STRING = "string"
    LIST = "list"
    PASSWORD = "password"
    ANY = "any"


Validator = Callable[[Any], str | None]
"""Given a parsed value, None if it is fine, else what is wrong with it ("must be ...")."""


def at_least(low: float) -> Validator:
    """A validator: the value is `low` or more."""
    text = f"at least {_number(low)}"
    return _described(text, lambda value: None if value >= low else f"must be {text}")


def between(low: float, high: float) -> Validator:
    """A validator: the value lies between `low` and `high`, both included."""
    first, last = _number(low), _number(high)
    return _described(
        f"{first} to {last}",
        lambda value: None if low <= value <= high else f"must lie between {first} and {last}",
    )


def above(low: float, high: float) -> Validator:
    """A validator: the value lies above `low`, and is `high` at most."""
    first, last = _number(low), _number(high)
    return _described(
        f"above {first}, {last} at most",
        lambda value: None if low < value <= high else f"must lie above {first} and be {last} at most",
    )


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else f"{value:g}"


def one_of(*values: Any) -> Validator:
    """A validator: the value is one of `values`."""
    names = ", ".join(str(value) for value in values)
    return _described(names, lambda value: None if value in values else f"must be one of {names}")


def not_empty(value: Any) -> str | None:
    """A validator: the text or list has something in it."""
    return None if value else "must not be empty"


def name_on_the_wire(value: Any) -> str | None:
    """1 to 32767 bytes of UTF-8"""
    size_bytes = len(value.encode())
    return (
        None
        if 0 < size_bytes <= STRING_MAX_BYTES
        else f"must be 1 to {STRING_MAX_BYTES} bytes of UTF-8, and is {size_bytes}"
    )


def name_or_none(value: Any) -> str | None:
    """32767 bytes of UTF-8 at most"""
    return name_on_the_wire(value) if value else None


def _described(text: str, check: Validator) -> Validator:
    check.__doc__ = text
    return check


@dataclass(frozen=True)
class ConfigKey:
    """One config key. `scopes` names who takes it: producer, consumer, admin, broker, topic."""

    name: str
    type: ConfigType
    default: Any
    doc: str
    scopes: tuple[str, ...]
    validator: Validator | None = None
    nullable: bool = False
    required: bool = False
    dynamic: bool = False
    """Can be changed while the broker runs (brokers and topics only)."""
    upper: bool = False
    """The value is a text in any case; it is parsed to upper case."""
    aliases: tuple[str, ...] = ()
    """Other clients' names for this key; they take the same values."""

    def parse(self, value: Any) -> Any:
        """The value as its type, from that type or from text. ConfigError if it does not fit."""
        if value is None or (self.nullable and value == ""):
            if self.nullable:
                return None
            raise ConfigError(f"{self.name}: a value is needed, not None")
        try:
            parsed = _PARSERS[self.type](value)
        except (TypeError, ValueError):
            raise ConfigError(f"{self.name}: expected {self.type.value}, got {self._shown(value)}") from None
        if self.upper:
            parsed = parsed.upper()
        wrong = self.validator(parsed) if self.validator else None
        if wrong:
            raise ConfigError(f"{self.name}: {wrong}, got {self._shown(value)}")
        return parsed

    def allowed(self) -> str:
        """The allowed values in words, for the documentation; empty if any value of the type will
        do."""
        return (
            (self.validator.__doc__ or "").split("\n")[0]
            if self.validator and self.validator is not not_empty
            else ""
        )

    def _shown(self, value: Any) -> str:
        shown = HIDDEN if self.type is ConfigType.PASSWORD else repr(value)
        return shown if len(shown) <= _SHOWN_MAX else f"{shown[:_SHOWN_MAX]}…"


def _parse_boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.strip().lower() in ("true", "false"):
        return value.strip().lower() == "true"
    raise ValueError(value)


def _parse_integer(bits: int) -> Callable[[Any], int]:
    def parse(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, (int, str)):
            raise ValueError(value)
        number = int(value)
        if not -(2 ** (bits - 1)) <= number < 2 ** (bits - 1):
            raise ValueError(value)
        return number

    return parse


def _parse_double(value: Any) -> float:
    if isinstance(value, bool):
        raise ValueError(value)
    return float(value)


def _parse_string(value: Any) -> str:
    if isinstance(value, (bool, int, float)):
        return str(value).lower() if isinstance(value, bool) else str(value)
    if not isinstance(value, str):
        raise ValueError(value)
    return value.strip()


def _parse_list(value: Any) -> tuple[str, ...]:
    items = value.split(",") if isinstance(value, str) else list(value)
    return tuple(text for text in (_parse_string(item) for item in items) if text)


def _parse_password(value: Any) -> Secret:
    return value if isinstance(value, Secret) else Secret(_parse_string(value))


_PARSERS: dict[ConfigType, Callable[[Any], Any]] = {
    ConfigType.BOOLEAN: _parse_boolean,
    ConfigType.INT: _parse_integer(32),
    ConfigType.LONG: _parse_integer(64),
    ConfigType.DOUBLE: _parse_double,
    ConfigType.STRING: _parse_string,
    ConfigType.LIST: _parse_list,
    ConfigType.PASSWORD: _parse_password,
    ConfigType.ANY: lambda value: value,
}


@dataclass(frozen=True)
class Settings(Mapping[str, Any]):
    """Parsed configs of one scope: every key of the scope has a value. Read by key:
    `settings["linger.ms"]`."""

    values_by_key: Mapping[str, Any]
    given: frozenset[str] = field(default_factory=frozenset)
    """The keys that were given, not taken from the defaults."""

    def __getitem__(self, key: str) -> Any:
        return self.values_by_key[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.values_by_key)

    def __len__(self) -> int:
        return len(self.values_by_key)


class ConfigTable:
    """All config keys of one side (clients, or brokers and topics), by name."""

    def __init__(
        self,
        keys: Iterable[ConfigKey],
        unsupported: Mapping[str, str] | None = None,
        ignored: Mapping[str, str] | None = None,
        narrowed: Callable[[str], str | None] = lambda _name: None,
    ) -> None:
        self.keys = {key.name: key for key in keys}
        self.aliases = {alias: key.name for key in self.keys.values() for alias in key.aliases}
        self.unsupported = dict(unsupported or {})
        """Keys of Kafka that are refused, with the reason; a name ending in a dot is a prefix."""
        self.ignored = dict(ignored or {})
        """Keys of other clients that are accepted and ignored, with the reason: logged once."""
        self.narrowed = narrowed
        """Name → the key that it sets for one part, such as one listener; None for other names."""
        self._warned: set[str] = set()
        self._scopes: dict[str, list[ConfigKey]] = {}

    def scope(self, scope: str) -> list[ConfigKey]:
        """The keys that `scope` takes, by name."""
        if scope not in self._scopes:
            self._scopes[scope] = sorted(
                (key for key in self.keys.values() if scope in key.scopes), key=lambda key: key.name
            )
        return self._scopes[scope]

    def parse(self, scope: str, given: Mapping[str, Any]) -> Settings:
        """Settings of `scope` from `given`. Raises one ConfigError that lists all that is wrong."""
        keys = {key.name: key for key in self.scope(scope)}
        values = {key.name: key.default for key in keys.values()}
        wrong: list[str] = []
        names = self._by_name(given, wrong)
        wrong += [
            f"{key.name}: required, and not given"
            for key in keys.values()
            if key.required and names.get(key.name) is None
        ]
        for name, value in names.items():
            key = keys.get(name) or keys.get(self.narrowed(str(name)) or "")
            if key is None:
                if name in self.ignored:
                    self._warn_once(name)
                else:
                    wrong.append(self._unknown(scope, str(name), keys))
                continue
            if value is None and key.required:
                continue
            try:
                values[name] = key.parse(value)
            except ConfigError as error:
                wrong.append(str(error) if name == key.name else f"{name}: {error}")
        if wrong:
            raise ConfigError(f"{scope} config: " + "; ".join(wrong))
        return Settings(values, frozenset(names))

    def _by_name(self, given: Mapping[str, Any], wrong: list[str]) -> dict[str, Any]:
        """`given` with our names for aliases; adds to `wrong` what was given by two names."""
        names: dict[str, Any] = {}
        said: dict[str, str] = {}
        for name, value in given.items():
            own = self.aliases.get(name, name)
            if own in names:
                wrong.append(f"{name}: {said[own]} says the same and was given too; leave one of them out")
            names[own] = value
            said[own] = name
        return names

    def _warn_once(self, name: str) -> None:
        if name not in self._warned:
            self._warned.add(name)
            LOGGER.warning("%s means nothing here and is left out: %s", name, self.ignored[name])

    def _unknown(self, scope: str, name: str, keys: Mapping[str, ConfigKey]) -> str:
        dotted = name.replace("_", ".")
        for known, reason in self.unsupported.items():
            if dotted == known or (known.endswith(".") and dotted.startswith(known)):
                return f"{name}: not supported ({reason})"
        if name in self.keys:
            return f"{name}: belongs to {' and '.join(self.keys[name].scopes)}, not to {scope}"
        near = nearest(dotted, [*keys, *self.aliases])
        return f"{name}: unknown" + (
            f"; did you mean {near}?" if near else "; `docs/configuration.md` lists them all"
        )
