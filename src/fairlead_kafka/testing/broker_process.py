"""A broker's own process: runs one broker and carries out the launcher's commands from the channel.

    {"faults": {...}}   be slow, be cut off, have a full disk   → {}
    {"memory": true}    give back what is free, and say what
                        memory is in use                        → {"blocks", "heap_bytes"}
    {"stop": true}      stop in good order                      → {}, and the process ends

An answer with "error" has the message of a failure. The process ends with the launcher, and with
its broker.
"""

from __future__ import annotations

import os
import signal
import traceback
from collections.abc import Callable, Mapping
from functools import partial

from fairlead_kafka.base.config_broker import BROKER_CONFIGS
from fairlead_kafka.base.errors import ConfigError, ConnectionFailed, FairleadError, UsageError
from fairlead_kafka.base.guarded_log import GuardedLogger
from fairlead_kafka.base.json_types import (
    Json,
    integer_at,
    integer_list_at,
    integers_at,
    number_at,
    object_at,
    text_at,
)
from fairlead_kafka.broker import Broker, Faults, SetFaults, StartBroker, StopBroker
from fairlead_kafka.broker.control import RemoteController
from fairlead_kafka.runtime import (
    Completion,
    Handle,
    LongRunning,
    SelectorHost,
    memory_use,
    thread_work_ns,
)
from fairlead_kafka.testing.brokers import broker_transport, make_broker
from fairlead_kafka.testing.channel import Channel

_logger = GuardedLogger("fairlead_kafka.testing")
_WATCH_S = 1.0
TIMEOUT_S = 60.0
ERRORS: dict[str, type[FairleadError]] = {
    each.__name__: each for each in (ConfigError, ConnectionFailed, FairleadError, UsageError)
}
"""Errors that are sent to the launcher under their own name; others are sent as FairleadError."""


class _Terminated(BaseException):
    pass


def faults_of(message: Mapping[str, Json]) -> Faults:
    """Faults from the JSON that the launcher sends."""
    return Faults(
        produce_service_time_ms=number_at(message, "produce_service_time_ms"),
        latency_ms=number_at(message, "latency_ms"),
        cut_from=frozenset(integer_list_at(message, "cut_from")),
        cut_from_controller=message["cut_from_controller"] is True,
        disk_full=message["disk_full"] is True,
    )


def serve(channel: Channel, config: Mapping[str, Json]) -> int:
    """Run a broker until the launcher stops it or is gone. Returns the process's exit code."""
    signal.signal(signal.SIGTERM, _terminate)
    parent = os.getppid()
    try:
        host = SelectorHost(f"fairlead-broker-{config['node_id']}")
        try:
            machine = _machine(config)
            handle = host.add(machine, broker_transport(machine, machine.controller))
        except FairleadError as error:
            _refuse(channel, error)
            return 1
        machine.wake = lambda: host.wake(handle)
        host.start()
        try:
            channel.send({"ports": _started(host, handle)})
        except FairleadError as error:
            _refuse(channel, error)
            return 1
        return _watch(channel, host, handle, parent)
    except _Terminated:
        _submit(host, handle, StopBroker)
        return 0
    except ConnectionFailed:
        return 1  # the launcher is gone, and with it the cluster
    except Exception:
        traceback.print_exc()
        return 1


def _watch(channel: Channel, host: SelectorHost, handle: Handle, parent: int) -> int:
    """Carry out the launcher's messages, and give freed memory back to the system now and then,
    until the broker has stopped or the launcher is gone. Returns the process's exit code."""
    memory = LongRunning()
    while os.getppid() == parent and not handle.ended:
        if channel.ready(_WATCH_S) and not _obey(channel, host, handle, memory):
            return 0
        memory.look()
    return 1


def _machine(config: Mapping[str, Json]) -> Broker:
    settings = BROKER_CONFIGS.parse("broker", object_at(config, "config"))
    view = RemoteController(
        settings,
        text_at(config, "controller_host"),
        integer_at(config, "controller_port"),
        text_at(config, "token"),
    )
    broker = make_broker(
        integer_at(config, "node_id"),
        view,
        text_at(config, "folder"),
        text_at(config, "host"),
        integers_at(config, "ports"),
    )
    broker.rack = None if config["rack"] is None else text_at(config, "rack")
    broker.faults = faults_of(object_at(config, "faults"))
    broker.handler_clock = thread_work_ns
    view.cut(broker.faults.cut_from_controller)
    return broker


def _obey(channel: Channel, host: SelectorHost, handle: Handle, memory: LongRunning) -> bool:
    """Carry out the launcher's next message. False: it was the last one, and the process is to
    end."""
    message = channel.receive()
    try:
        if "faults" in message:
            faults = faults_of(object_at(message, "faults"))
            _submit(host, handle, partial(SetFaults, faults))
            channel.send({})
            return True
        if "memory" in message:
            memory.give_back()
            channel.send(memory_use()._asdict())
            return True
        _submit(host, handle, StopBroker)
        channel.send({})
    except ConnectionFailed:
        raise
    except FairleadError as error:
        _refuse(channel, error)
        return "faults" in message
    return False


def _started(host: SelectorHost, handle: Handle) -> Mapping[str, int]:
    """Start the broker and wait until it serves; returns its ports by listener."""
    completion: Completion[Mapping[str, int]] = Completion()
    host.submit(handle, StartBroker(completion))
    return completion.result(TIMEOUT_S)


def _submit(
    host: SelectorHost, handle: Handle, made: Callable[[Completion[None]], StopBroker | SetFaults]
) -> None:
    completion: Completion[None] = Completion()
    host.submit(handle, made(completion))
    completion.result(TIMEOUT_S)


def _refuse(channel: Channel, error: FairleadError) -> None:
    kind = type(error).__name__
    channel.send({"error": {"kind": kind if kind in ERRORS else FairleadError.__name__, "text": str(error)}})


def _terminate(_number: int, _frame: object) -> None:
    raise _Terminated
