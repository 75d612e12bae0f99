"""Checks the calls that a table of the moving guide shows against the libraries that are
installed."""

from __future__ import annotations

import ast
import inspect
import re
import warnings
from collections.abc import Mapping
from typing import Any

import aiokafka
import confluent_kafka
import confluent_kafka.admin
import confluent_kafka.aio

import fairlead_kafka
from fairlead_kafka.base.config_client import CLIENT_CONFIGS

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # kafka-python reads its schemas in an old way
    import kafka
    import kafka.admin

Names = Mapping[str, Any]
"""What a name of the table stands for: a class, whose instance it may be."""

OURS: Names = {
    "producer": fairlead_kafka.Producer,
    "consumer": fairlead_kafka.Consumer,
    "admin": fairlead_kafka.Admin,
    "record": fairlead_kafka.Record,
    **{name: getattr(fairlead_kafka, name) for name in fairlead_kafka.__all__ if name[0].isupper()},
}
OURS_ASYNC: Names = {
    **OURS,
    "producer": fairlead_kafka.AsyncProducer,
    "consumer": fairlead_kafka.AsyncConsumer,
}
PEERS: Mapping[str, Names] = {
    "confluent-kafka": {
        "Producer": confluent_kafka.Producer,
        "producer": confluent_kafka.Producer,
        "Consumer": confluent_kafka.Consumer,
        "consumer": confluent_kafka.Consumer,
        "TopicPartition": confluent_kafka.TopicPartition,
        "msg": confluent_kafka.Message,
        "AdminClient": confluent_kafka.admin.AdminClient,
        "admin": confluent_kafka.admin.AdminClient,
        "NewTopic": confluent_kafka.admin.NewTopic,
        "AIOProducer": confluent_kafka.aio.AIOProducer,
        "AIOConsumer": confluent_kafka.aio.AIOConsumer,
    },
    "aiokafka": {
        "AIOKafkaProducer": aiokafka.AIOKafkaProducer,
        "producer": aiokafka.AIOKafkaProducer,
        "AIOKafkaConsumer": aiokafka.AIOKafkaConsumer,
        "consumer": aiokafka.AIOKafkaConsumer,
        "ConsumerRebalanceListener": aiokafka.ConsumerRebalanceListener,
    },
    "kafka-python": {
        "KafkaProducer": kafka.KafkaProducer,
        "producer": kafka.KafkaProducer,
        "KafkaConsumer": kafka.KafkaConsumer,
        "consumer": kafka.KafkaConsumer,
        "KafkaAdminClient": kafka.KafkaAdminClient,
        "admin": kafka.KafkaAdminClient,
        "NewTopic": kafka.admin.NewTopic,
    },
}


def calls_checked(cell: str, names: Names) -> int:
    """The number of calls and attributes of `names` in the code of a cell; AssertionError for one
    that does not exist, or takes no such argument."""
    checked = 0
    for code in re.findall(r"`([^`]+)`", cell):
        for node in ast.walk(ast.parse(_statement(code))):
            if isinstance(node, ast.Call):
                checked += _call_checked(node, names, code)
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                if node.value.id in names:
                    owner = names[node.value.id]
                    assert hasattr(owner, node.attr), f"{code}: {owner.__name__} has no {node.attr}"
                    checked += 1
            elif isinstance(node, ast.Dict) and names.get("producer") in (
                fairlead_kafka.Producer,
                fairlead_kafka.AsyncProducer,
            ):
                keys = {each.value for each in node.keys if isinstance(each, ast.Constant)}
                known = {name for one in ("producer", "consumer", "admin") for name in _keys(one)}
                assert {key for key in keys if isinstance(key, str) and "." in key} <= known, code
    return checked


def _keys(scope: str) -> set[str]:
    return {key.name for key in CLIENT_CONFIGS.scope(scope)}


def _statement(code: str) -> str:
    body = f"{code} pass" if code.endswith(":") else code
    return f"async def shown():\n    {body}\n"


def _call_checked(call: ast.Call, names: Names, code: str) -> int:
    target, owner = call.func, None
    if isinstance(target, ast.Name) and target.id in names:
        called: Any = names[target.id]
    elif (
        isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id in names
    ):
        owner = names[target.value.id]
        called = getattr(owner, target.attr, None)
        assert called is not None, f"{code}: {owner.__name__} has no {target.attr}"
    else:
        return 0
    wanted = {keyword.arg for keyword in call.keywords if keyword.arg is not None}
    known = set(getattr(called, "DEFAULT_CONFIG", ()))
    try:
        signature = inspect.signature(called)
    except ValueError:  # made in C: the documentation is all there is
        missing = {name for name in wanted if name not in (called.__doc__ or "")}
        assert not missing, f"{code}: no argument {missing}"
        return 1
    takes_any = inspect.Parameter.VAR_KEYWORD in {one.kind for one in signature.parameters.values()}
    if takes_any and known:
        missing = wanted - known - set(signature.parameters)
        assert not missing, f"{code}: no argument {missing}"
        return 1
    bound = [None] * (len(call.args) + (owner is not None))
    signature.bind(*bound, **dict.fromkeys(wanted))
    return 1
