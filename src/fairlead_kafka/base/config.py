"""Tables of configs: one entry per key, from which parsing, errors and the documentation all come.

The tables themselves are `config_client.CLIENT_CONFIGS` and `config_broker.BROKER_CONFIGS`. Keys
are Kafka's own, dotted, with Kafka's defaults. A key that is unknown is refused with the nearest
known name; one error names all invalid keys and values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import wraps
from typing import SupportsFloat, SupportsIndex, TypeVar, overload

from fairlead_kafka.base.config_names import (
    BooleanKey,
    DoubleKey,
    IntegerKey,
    ListKey,
    NullableIntegerKey,
    NullableListKey,
    NullablePasswordKey,
    NullableStringKey,
    StringKey,
)
from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.base.guarded_log import GuardedLogger
from fairlead_kafka.base.limits import STRING_MAX_BYTES
from fairlead_kafka.base.nearest import nearest
from fairlead_kafka.base.secret import HIDDEN, Secret

LOGGER = GuardedLogger("fairlead_kafka.config")

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
    SHORT = "short"
    INT = "int"
    LONG = "long"
    DOUBLE = "double"
    STRING = "string"
    LIST = "list"
    CLASS = "class"
    PASSWORD = "password"
    ANY = "any"

    @property
    def expected(self) -> str:
        """The values of this type in words: "a whole number (long)"."""
        return f"{_IN_WORDS[self]} ({self.value})" if self in _IN_WORDS else self.value


_IN_WORDS = {
    ConfigType.BOOLEAN: "true or false",
    ConfigType.SHORT: "a whole number",
    ConfigType.INT: "a whole number",
    ConfigType.LONG: "a whole number",
    ConfigType.DOUBLE: "a number",
}

V = TypeVar("V")
Validator = Callable[[object], str | None]
"""Given a parsed value, None if it is fine, else what is wrong with it ("must be ...")."""


def validates(*kinds: type[V]) -> Callable[[Callable[[V], str | None]], Validator]:
    """Decorator: make a validator of a function that takes values of one type, or of `kinds`.

    The function says what is wrong with a value, or None. The validator raises TypeError for a
    value of another type: its key is declared wrongly.
    """

    def decorate(check: Callable[[V], str | None]) -> Validator:
        @wraps(check)
        def validate(value: object) -> str | None:
            if not isinstance(value, kinds):
                raise TypeError(f"{check.__name__} does not judge a {type(value).__name__}")
            return check(value)

        return validate

    return decorate


def at_least(low: float) -> Validator:
    """A validator: the value is `low` or more."""
    text = f"at least {_number(low)}"
    return _of_numbers(text, lambda value: None if value >= low else f"must be {text}")


def between(low: float, high: float) -> Validator:
    """A validator: the value lies between `low` and `high`, both included."""
    first, last = _number(low), _number(high)
    return _of_numbers(
        f"{first} to {last}",
        lambda value: None if low <= value <= high else f"must lie between {first} and {last}",
    )


def above(low: float, high: float) -> Validator:
    """A validator: the value lies above `low`, and is `high` at most."""
    first, last = _number(low), _number(high)
    return _of_numbers(
        f"above {first}, {last} at most",
        lambda value: None if low < value <= high else f"must lie above {first} and be {last} at most",
    )


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else f"{value:g}"


def _of_numbers(text: str, check: Callable[[float], str | None]) -> Validator:
    validator = validates(int, float)(check)
    validator.__doc__ = text
    return validator


def one_of(*values: object) -> Validator:
    """A validator: the value is one of `values`."""
    names = ", ".join(str(value) for value in values)

    def validate(value: object) -> str | None:
        return None if value in values else f"must be one of {names}"

    validate.__doc__ = names
    return validate


def one_of_any_case(*values: str) -> Validator:
    """A validator: the value is one of `values`, in whatever case."""
    names = ", ".join(values)
    known = {value.upper() for value in values}

    @validates(str)
    def validate(value: str) -> str | None:
        return None if value.upper() in known else f"must be one of {names}"

    validate.__doc__ = f"{names}, in any case"
    return validate


def all_of(*values: str) -> Validator:
    """A validator: every item of the list is one of `values`."""
    names = ", ".join(values)

    @validates(tuple)
    def validate(items: tuple[str, ...]) -> str | None:
        wrong = [item for item in items if item not in values]
        return f"must be of {names}; {wrong[0]} is none of them" if wrong else None

    validate.__doc__ = f"of {names}"
    return validate


def not_empty(value: object) -> str | None:
    """A validator: the text or list has something in it."""
    return None if value else "must not be empty"


@validates(str)
def name_on_the_wire(value: str) -> str | None:
    """1 to 32767 bytes of UTF-8

    A validator: it says what is wrong with a value, or None. Its first line, above, is what the
    documentation says is allowed.
    """
    size_bytes = len(value.encode())
    return (
        None
        if 0 < size_bytes <= STRING_MAX_BYTES
        else f"must be 1 to {STRING_MAX_BYTES} bytes of UTF-8, and is {size_bytes}"
    )


def name_or_none(value: object) -> str | None:
    """32767 bytes of UTF-8 at most

    A validator: it says what is wrong with a value, or None. Its first line, above, is what the
    documentation says is allowed.
    """
    return name_on_the_wire(value) if value else None


@dataclass(frozen=True)
class ConfigKey:
    """One config key. `scopes` names where it is taken: producer, consumer, admin, broker,
    topic."""

    name: str
    type: ConfigType
    default: object
    doc: str
    scopes: tuple[str, ...]
    validator: Validator | None = None
    nullable: bool = False
    required: bool = False
    dynamic: bool = False
    """Can be changed while the broker runs (brokers and topics only)."""
    per_broker: bool = False
    """If dynamic, for one broker alone, not for the whole cluster (Kafka's update mode)."""
    upper: bool = False
    """The value is a text in any case; it is parsed to upper case."""
    lower: bool = False
    """The value is a text in any case; it is parsed to lower case."""
    aliases: tuple[str, ...] = ()
    """Other clients' names for this key; they take the same values."""
    no_effect: str = ""
    """Why a key that is taken, checked, kept and listed changes nothing; empty: it does."""
    fixed: str = ""
    """Why the config cannot be set: brokers report its value, and it is not read from settings;
    empty: it can."""
    unlisted: bool = False
    """Listed only where it is set (Kafka's internal configs)."""
    kafka_type: ConfigType | None = None
    """Kafka's type, where the value is parsed to another."""

    def parse(self, value: object) -> object:
        """The value as its type, from that type or from text. ConfigError if it does not fit."""
        if self.fixed:
            raise ConfigError(f"{self.name}: not supported ({self.fixed})")
        if value is None or (self.nullable and value == ""):
            if self.nullable:
                return None
            raise ConfigError(f"{self.name}: a value is needed, not None")
        try:
            parsed = _PARSERS[self.type](value)
        except (TypeError, ValueError):
            raise ConfigError(
                f"{self.name}: expected {self.type.expected}, got {self._shown(value)}"
            ) from None
        if self.upper and isinstance(parsed, str):
            parsed = parsed.upper()
        if self.lower and isinstance(parsed, str):
            parsed = parsed.lower()
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

    def _shown(self, value: object) -> str:
        shown = HIDDEN if self.type is ConfigType.PASSWORD else repr(value)
        return shown if len(shown) <= _SHOWN_MAX else f"{shown[:_SHOWN_MAX]}…"


def _parse_boolean(value: object) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.strip().lower() in ("true", "false"):
        return value.strip().lower() == "true"
    raise ValueError(value)


def _parse_integer(bits: int) -> Callable[[object], int]:
    def parse(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, (int, str)):
            raise ValueError(value)
        number = int(value)
        if not -(2 ** (bits - 1)) <= number < 2 ** (bits - 1):
            raise ValueError(value)
        return number

    return parse


def _parse_double(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (str, SupportsFloat, SupportsIndex)):
        raise ValueError(value)
    return float(value)


def _parse_string(value: object) -> str:
    if isinstance(value, (bool, int, float)):
        return str(value).lower() if isinstance(value, bool) else str(value)
    if not isinstance(value, str):
        raise ValueError(value)
    return value.strip()


def _parse_list(value: object) -> tuple[str, ...]:
    if not isinstance(value, Iterable):
        raise ValueError(value)
    items = value.split(",") if isinstance(value, str) else value
    return tuple(text for text in (_parse_string(item) for item in items) if text)


def _parse_password(value: object) -> Secret:
    return value if isinstance(value, Secret) else Secret(_parse_string(value))


_PARSERS: dict[ConfigType, Callable[[object], object]] = {
    ConfigType.BOOLEAN: _parse_boolean,
    ConfigType.SHORT: _parse_integer(16),
    ConfigType.INT: _parse_integer(32),
    ConfigType.LONG: _parse_integer(64),
    ConfigType.DOUBLE: _parse_double,
    ConfigType.STRING: _parse_string,
    ConfigType.LIST: _parse_list,
    ConfigType.CLASS: _parse_string,
    ConfigType.PASSWORD: _parse_password,
    ConfigType.ANY: lambda value: value,
}


@dataclass(frozen=True)
class Settings(Mapping[str, object]):
    """Parsed configs of one scope: every key of the scope has a value. Read by key:
    `settings["linger.ms"]`.

    Type checkers know the type of each key's value from its name (`config_names`)."""

    values_by_key: Mapping[str, object]
    given: frozenset[str] = field(default_factory=frozenset)
    """The keys that were given, not taken from the defaults."""

    @overload
    def __getitem__(self, key: BooleanKey) -> bool: ...
    @overload
    def __getitem__(self, key: IntegerKey) -> int: ...
    @overload
    def __getitem__(self, key: DoubleKey) -> float: ...
    @overload
    def __getitem__(self, key: StringKey) -> str: ...
    @overload
    def __getitem__(self, key: ListKey) -> tuple[str, ...]: ...
    @overload
    def __getitem__(self, key: NullableIntegerKey) -> int | None: ...
    @overload
    def __getitem__(self, key: NullableStringKey) -> str | None: ...
    @overload
    def __getitem__(self, key: NullableListKey) -> tuple[str, ...] | None: ...
    @overload
    def __getitem__(self, key: NullablePasswordKey) -> Secret | None: ...
    @overload
    def __getitem__(self, key: str) -> object: ...
    def __getitem__(self, key: str) -> object:
        return self.values_by_key[key]

    def integer(self, key: str) -> int:
        """The value of a key whose name is made at run time; TypeError if the value is no
        integer."""
        value = self.values_by_key[key]
        if not isinstance(value, int):
            raise TypeError(f"{key} is {value!r}, which is no integer")
        return value

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

    def parse(self, scope: str, given: Mapping[str, object]) -> Settings:
        """Settings of `scope` from `given`. Raises one ConfigError that lists all that is wrong."""
        keys = {key.name: key for key in self.scope(scope)}
        values = {key.name: key.default for key in keys.values()}
        wrong: list[str] = []
        names = self._by_name(given, wrong)
        wrong += [
            f"{key.name}: required, and not given: {key.doc.rstrip('.')}"
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

    def _by_name(self, given: Mapping[str, object], wrong: list[str]) -> dict[str, object]:
        """Return `given` with aliases replaced by our names. A message is added to `wrong` for each
        config that was given by two names."""
        names: dict[str, object] = {}
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
            if known in (name, dotted) or (known.endswith(".") and dotted.startswith(known)):
                return f"{name}: not supported ({reason})"
        if name in self.keys:
            return f"{name}: belongs to {' and '.join(self.keys[name].scopes)}, not to {scope}"
        near = nearest(dotted, [*keys, *self.aliases])
        return f"{name}: unknown" + (
            f"; did you mean {near}?" if near else "; `docs/reference/configuration.md` lists them all"
        )
