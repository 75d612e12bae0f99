"""The blocking and the awaiting faces have the same names, parameters and docstrings."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import fairlead_kafka.client as client
from fairlead_kafka.client.handles import Ack, AsyncAck, AsyncTableAck, TableAck

PAIRS = [(Ack, AsyncAck), (TableAck, AsyncTableAck)] + [
    (getattr(client, name), getattr(client, f"Async{name}"))
    for name in ("Producer", "Consumer", "ShareConsumer", "Admin")
]
ONLY_BLOCKING = {"__enter__", "__exit__", "__iter__", "__next__"}
ONLY_AWAITING = {"__aenter__", "__aexit__", "__await__", "__aiter__", "__anext__"}
LANGUAGE = {
    "__dict__", "__weakref__", "__module__", "__doc__", "__slots__", "__qualname__", "__firstlineno__",
    "__static_attributes__",
    "__annotations__", "__repr__",
}  # fmt: skip


def members(api: type) -> dict[str, Any]:
    """Public names of a face and the special methods it defines, bases of ours included."""
    found: dict[str, Any] = {}
    for base in reversed(api.__mro__):
        if base.__module__ != "builtins":
            found.update(vars(base))
    return {
        name: value
        for name, value in found.items()
        if not name.startswith("_") or (name.startswith("__") and name not in LANGUAGE)
    }


@pytest.mark.parametrize(("blocking", "awaiting"), PAIRS, ids=lambda api: api.__name__)
def test_faces_have_the_same_names(blocking: type, awaiting: type) -> None:
    assert members(blocking).keys() - ONLY_BLOCKING == members(awaiting).keys() - ONLY_AWAITING


@pytest.mark.parametrize(("blocking", "awaiting"), PAIRS, ids=lambda api: api.__name__)
def test_methods_have_the_same_parameters_and_docstrings(blocking: type, awaiting: type) -> None:
    for name, method in members(blocking).items():
        if name in ONLY_BLOCKING:
            continue
        counterpart = members(awaiting)[name]
        if isinstance(method, property):
            method, counterpart = method.fget, counterpart.fget
        if not callable(method):
            continue
        assert [str(each) for each in inspect.signature(method).parameters.values()] == [
            str(each) for each in inspect.signature(counterpart).parameters.values()
        ], name
        assert method.__doc__ or name.startswith("__"), name
        assert method.__doc__ == counterpart.__doc__, name
