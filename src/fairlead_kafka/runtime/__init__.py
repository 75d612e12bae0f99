"""Runtime: hosts that run machines; the only package below the client with clocks, sockets,
threads.

A host runs any number of machines and imports none of them. It gives a machine its events
(`receive`), steps it, carries its effects out in order, and steps it again when something arrives
or its deadline has come. There are two, with one test suite:

- `SelectorHost` is a loop on one daemon thread. Per turn: wait for sockets, the inbox or the
  nearest deadline; give the events that arrived to their machines; step each of those once. Frames
  that one step writes to a connection leave in one `sendmsg`, as views, without copies. The host
  does not bound answers that wait because a peer reads slowly: a machine can ask to be notified
  once they are sent (`AwaitSent`). Names are looked up on threads, syncs done on another; both come
  back through the inbox.
- `VirtualHost` has a clock of its own, which jumps to the next event; machines in it connect to
  each other in memory, over links that take time, lose, reset and can be cut, and their files are
  byte arrays. Machines are the same, nothing waits, and the only randomness is the rng it was
  given: the same seed gives the same run.

Other threads reach a machine only by `submit`: an operation is put into the inbox, and a byte
through a socket pair wakes the loop if it sleeps; while it is awake, or was woken already,
submitting is an append to a deque. The answer comes back in a `Completion`, which a caller waits
for, awaits (`wrap_async`), or is called back by.

Errors. A machine that raises is logged with its traceback and ended: its connections close, its
optional `crashed(error)` may fail the operations it holds, later ones are refused; other machines
continue. A host that is closed, or lost with its thread in a forked child, raises UsageError.
Ctrl-C interrupts any wait, because the loop runs on a daemon thread; hosts still open at the end of
the process are closed by then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead_kafka.base.lazy import lazily

if TYPE_CHECKING:
    from fairlead_kafka.runtime.allocated_memory import MemoryUse, memory_use
    from fairlead_kafka.runtime.clock import thread_work_ns
    from fairlead_kafka.runtime.completion import Completion, wrap_async
    from fairlead_kafka.runtime.freed_memory import LongRunning, give_back_freed_memory, keep_freed_memory
    from fairlead_kafka.runtime.handle import Handle, Host
    from fairlead_kafka.runtime.host import SelectorHost
    from fairlead_kafka.runtime.rng import system_rng
    from fairlead_kafka.runtime.virtual import VirtualHost
    from fairlead_kafka.runtime.virtual_link import Conditions, VirtualLink

__all__ = [
    "Completion",
    "Conditions",
    "Handle",
    "Host",
    "LongRunning",
    "MemoryUse",
    "SelectorHost",
    "VirtualHost",
    "VirtualLink",
    "give_back_freed_memory",
    "keep_freed_memory",
    "memory_use",
    "system_rng",
    "thread_work_ns",
    "wrap_async",
]

_HOMES = {
    "fairlead_kafka.runtime.clock": ("thread_work_ns",),
    "fairlead_kafka.runtime.completion": (
        "Completion",
        "wrap_async",
    ),
    "fairlead_kafka.runtime.rng": ("system_rng",),
    "fairlead_kafka.runtime.freed_memory": ("LongRunning", "give_back_freed_memory", "keep_freed_memory"),
    "fairlead_kafka.runtime.handle": (
        "Handle",
        "Host",
    ),
    "fairlead_kafka.runtime.host": ("SelectorHost",),
    "fairlead_kafka.runtime.allocated_memory": ("MemoryUse", "memory_use"),
    "fairlead_kafka.runtime.virtual": ("VirtualHost",),
    "fairlead_kafka.runtime.virtual_link": (
        "Conditions",
        "VirtualLink",
    ),
}
__getattr__, __dir__ = lazily(__name__, _HOMES)
