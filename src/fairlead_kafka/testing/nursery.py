"""The process that broker processes are forked from: modules are loaded once, and a broker starts
in milliseconds.

    launcher ──start it, once──▶ nursery ──fork──▶ broker process ◀──channel──▶ launcher

It has one thread, so that a fork is safe, and loads nothing but what brokers run. While idle it
compiles codecs, which each broker would otherwise do at first use. Brokers that are started later
have all of these. It ends with the launcher, and its children end with it.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from functools import partial

from fairlead_kafka.base.json_types import JsonObject
from fairlead_kafka.broker.dispatch import REGISTRY
from fairlead_kafka.testing.broker_process import serve
from fairlead_kafka.testing.channel import Channel
from fairlead_kafka.wire import ApiKey, prepare

WATCH_S = 1.0
"""Seconds between checks that the parent still runs, in case the end of its channel is not seen."""
QUIET_S = 0.3
"""Seconds after a fork in which no codec is made: more starts may be coming."""
OTHERS_AFTER_S = 10.0
"""Seconds after the nursery's start before codecs of rarely used API versions are made."""


def main() -> None:
    """Serve the launcher, whose channel's descriptor is the one argument."""
    parent = os.getppid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the launcher, which stops us
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # children leave nothing behind
    channel = Channel(socket.socket(fileno=int(sys.argv[1])))
    prepare(ApiKey.API_VERSIONS, REGISTRY[ApiKey.API_VERSIONS].high)  # brings the schemas
    gc.freeze()
    begun_s = quiet_s = time.monotonic()
    chores = _chores()
    while os.getppid() == parent:
        due_s = max(begun_s + chores[0][0], quiet_s) - time.monotonic() if chores else WATCH_S
        if channel.ready(min(max(due_s, 0), WATCH_S)):
            if channel.ended():
                return
            _fork(channel, channel.receive())
            quiet_s = time.monotonic() + QUIET_S
        elif due_s <= 0:
            chores.pop(0)[1]()


def _chores() -> list[tuple[float, Callable[[], object]]]:
    """Codecs to compile, in order, each with its earliest time, in seconds after the nursery's
    start. Each is short, so that it does not delay the start of a broker."""
    latest = [partial(prepare, key, api.high) for key, api in REGISTRY.items()]
    others = [
        partial(prepare, key, version)
        for key, api in REGISTRY.items()
        for version in range(api.low, api.high)
    ]
    return [
        *((0.0, chore) for chore in latest),
        *((OTHERS_AFTER_S, chore) for chore in others),
    ]


def _fork(channel: Channel, config: JsonObject) -> None:
    attached = channel.take_attached()
    try:
        pid = os.fork()
    except OSError as error:  # all brokers that run are children of this process: it goes on
        attached.close()
        channel.send({"error": f"no process can be made: {error.strerror}"})
        return
    if pid:
        attached.close()
        channel.send({"pid": pid})
        return
    code = 1
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        channel.close()
        code = serve(Channel(attached), config)
    finally:
        # Not through the nursery's frames and exit handlers: they are the parent's.
        os._exit(code)


if __name__ == "__main__":
    main()
