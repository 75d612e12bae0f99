"""Faults by request from a file: the format of `fairlead up --faults FILE`.

    [[fault]]
    api = "PRODUCE"
    topic = "orders"
    answer = "NOT_ENOUGH_REPLICAS"
    times = 2

Each table is a rule, in the order of the file. It has the arguments of `Cluster.on`, except
functions; `times` and `after`; and one of `answer` (an error, with `message` and `whole`),
`delay_ms`, `drop` and `disconnect` (true, with `served`).
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from fairlead_kafka.base.errors import ConfigError, UsageError
from fairlead_kafka.base.nearest import nearest
from fairlead_kafka.testing.cluster import Cluster

T = TypeVar("T")

_ON: Mapping[str, type] = {
    "api": str,
    "topic": str,
    "partition": int,
    "group": str,
    "transactional_id": str,
    "client_id": str,
    "principal": str,
    "broker": int,
}
_HOW: Mapping[str, type] = {"times": int, "after": int}
_ACTIONS: Mapping[str, tuple[type, Mapping[str, type]]] = {
    "answer": (str, {"message": str, "whole": bool}),
    "delay_ms": (float, {}),
    "drop": (bool, {"served": bool}),
    "disconnect": (bool, {"served": bool}),
}
"""Action → type of its value, and the keys that go with it."""
_TYPES = {str: "a text", int: "a whole number", float: "a number", bool: "true or false"}


def load_faults(path: Path) -> list[Mapping[str, object]]:
    """Read a file of faults and check its form. ConfigError says what is wrong, and in which
    fault."""
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: no TOML: {error}") from None
    faults = found.pop("fault", None)
    if found:
        raise ConfigError(f"{path}: {next(iter(found))!r} is unknown; each fault is a table [[fault]]")
    if not isinstance(faults, list) or not all(isinstance(each, dict) for each in faults):
        raise ConfigError(f"{path}: it has no fault; each is a table [[fault]]")
    for number, fault in enumerate(faults, 1):
        try:
            _check(fault)
        except ConfigError as error:
            raise ConfigError(f"{path}: fault {number}: {error}") from None
    return faults


def set_faults(cluster: Cluster, path: Path, faults: Sequence[Mapping[str, object]]) -> None:
    """Give a cluster the faults that a file has. ConfigError, naming `path` and the fault's number,
    for a fault that the cluster cannot have."""
    for number, fault in enumerate(faults, 1):
        try:
            _set(cluster, fault)
        except UsageError as error:
            raise ConfigError(f"{path}: fault {number}: {error}") from None


def _check(fault: Mapping[str, object]) -> None:
    actions = [name for name in _ACTIONS if name in fault]
    if len(actions) != 1:
        given = " and ".join(actions) or "none"
        raise ConfigError(f"it takes one of {', '.join(_ACTIONS)}; there is {given}")
    (action,) = actions
    kind, beside = _ACTIONS[action]
    known = {**_ON, **_HOW, **beside, action: kind}
    for key, value in fault.items():
        if key not in known:
            others = {name for _, more in _ACTIONS.values() for name in more}
            near = None if key in others else nearest(key, [*known, *_ACTIONS])
            hint = f"; did you mean {near}?" if near else f"; with {action} it takes {', '.join(known)}"
            raise ConfigError(f"{key} is unknown{hint}")
        wanted = known[key]
        fits = isinstance(value, (int, float) if wanted is float else wanted)
        if not fits or (isinstance(value, bool) and wanted is not bool):
            raise ConfigError(f"{key} must be {_TYPES[wanted]}, not {value!r}")
    if fault[action] is False:
        raise ConfigError(f"{action} must be true; leave the fault out instead")


def _set(cluster: Cluster, fault: Mapping[str, object]) -> None:
    def value(key: str, kind: type[T]) -> T | None:
        found = fault.get(key)
        return found if isinstance(found, kind) else None

    on = cluster.on(
        value("api", str),
        topic=value("topic", str),
        partition=value("partition", int),
        group=value("group", str),
        transactional_id=value("transactional_id", str),
        client_id=value("client_id", str),
        principal=value("principal", str),
        broker=value("broker", int),
    )
    times, after, served = value("times", int), value("after", int) or 0, value("served", bool) or False
    if "answer" in fault:
        error = value("answer", str) or ""
        on.answer(error, times=times, after=after, message=value("message", str), whole=value("whole", bool))
    elif "delay_ms" in fault:
        found = fault["delay_ms"]
        assert isinstance(found, (int, float)), "it was checked"
        on.delay(found, times=times, after=after)
    elif "drop" in fault:
        on.drop(times=times, after=after, served=served)
    else:
        on.disconnect(times=times, after=after, served=served)
