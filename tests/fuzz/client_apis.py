"""The clients' blocking faces in virtual time, against real brokers behind a liar; and what must
come of every call."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from fairlead_kafka.base.errors import FairleadError, TimedOut
from fairlead_kafka.runtime import Completion, Handle, VirtualHost
from fairlead_kafka.wire import ApiKey
from tests.fuzz.liar import FIRST_PORT, Liar
from tests.fuzz.tape import Tape
from tests.fuzz.target_broker import ErrorLog
from tests.support.broker_driver import batch, produce_fields
from tests.support.virtual_cluster import FIRST_PORT as REAL_PORT
from tests.support.virtual_cluster import VirtualCluster
from tests.support.virtual_hosting import VirtualHosted

BROKERS = 2
PARTITIONS = 2
NEVER_S = 10_000.0
"""A call without a time-out of its own that is not over by then hangs."""
SLACK_S = 1.5
"""How much longer than its time-out a call may take, in virtual time."""
STEPS_MAX = 60_000
"""More steps of all machines than this in one run: somebody is busy with nothing. The busiest of
sound runs take a tenth."""
BROKER_CONFIG = {
    "group.min.session.timeout.ms": 500,
    "group.initial.rebalance.delay.ms": 0,
    "offsets.topic.num.partitions": 2,
}
CLIENT_CONFIG = {
    "bootstrap.servers": f"127.0.0.1:{FIRST_PORT}",
    "request.timeout.ms": 1000,
    "metadata.max.age.ms": 5000,
}


class Fault(Exception):
    """What no client may do, whatever it was told. `place`: what tells it from others."""

    def __init__(self, place: str, text: str = "") -> None:
        super().__init__(f"{place}: {text}")
        self.place = place


class _Hosted(VirtualHosted):
    """A host whose waits are those of the world."""

    def __init__(self, world: World, machine: Any) -> None:
        super().__init__(world.host, machine)
        self.world = world
        world.clients.append(self.handle)

    def wait(self, completion: Completion, timeout_s: float | None) -> Any:
        if not completion.done() and timeout_s == 0:
            raise TimedOut("no answer within 0 s")
        return self.world.wait(completion, timeout_s)


class World:
    """Two brokers with a little in them, the liar before them, and clients."""

    def __init__(self, tape: Tape) -> None:
        self.tape = tape
        self.cluster = VirtualCluster(BROKERS, BROKER_CONFIG)
        self.host: VirtualHost = self.cluster.host
        self.clients: list[Handle] = []
        self.cluster.topic("t", PARTITIONS)
        for number in range(PARTITIONS):
            records = b"".join(
                batch([b"v%d" % nth for nth in range(first, first + 3)], base_offset=0) for first in (0,)
            )
            for _ in range(3):
                self.cluster.ask(
                    number % BROKERS, ApiKey.PRODUCE, 9, **produce_fields({("t", number): records})
                )
        self.liar = Liar(tape, BROKERS, REAL_PORT, self.host.now_ns)
        self.host.add(self.liar)
        self.host.network.conditions = type(self.host.network.conditions)(1.0)
        self.host.advance(0)
        self.host._raise_errors = False
        self.host.steps_max = self.host.steps + STEPS_MAX

    def opener(self, machine_factory: Callable[[Any], Any], settings: object, name: str = "") -> _Hosted:
        """Run a client's machine in this world."""
        return _Hosted(self, machine_factory(random.Random(1)))

    def now_s(self) -> float:
        """Virtual time."""
        return self.host.now_ns() / 1e9

    def call(self, what: str, function: Callable[[], Any], timeout_s: float | None = None) -> Any:
        """Call a face: its result, or None if it raised one of our errors, in time. Fault
        otherwise."""
        started_s = self.now_s()
        try:
            result = function()
        except FairleadError as error:
            if "busy with nothing" in str(error) or "stays in the past" in str(error):
                raise Fault(f"{what} is busy with nothing", str(error)) from error
            result = None
        took_s = self.now_s() - started_s
        self.check()
        if timeout_s is not None and took_s > timeout_s + SLACK_S:
            raise Fault(f"{what} outlives its time-out", f"{took_s:.3f} s instead of {timeout_s:g}")
        if took_s >= NEVER_S:
            raise Fault(f"{what} hangs", f"{took_s:.0f} s")
        return result

    def check(self) -> None:
        """No machine has ended by what it raised."""
        for handle in [*self.clients, *self.cluster.handles.values()]:
            if handle.error is not None:
                raise handle.error

    def wait(self, completion: Completion, timeout_s: float | None) -> Any:
        """`Completion.result` in virtual time."""
        if not completion.done():
            limit_s = NEVER_S if timeout_s is None else max(timeout_s, 0)
            self.host.run_until(completion.done, limit_s * 1000)
        if completion.error() is not None:
            raise completion.error()  # type: ignore[misc]
        return completion._value


@contextmanager
def lying_world(tape: Tape) -> Iterator[World]:
    """A world whose faces are driven, and what it logs as an error is a finding."""
    with ExitStack() as stack:
        log = stack.enter_context(ErrorLog())
        world = World(tape)
        yield world
        world.check()
        log.check()
