"""`fairlead up`: an embedded cluster in the foreground."""

from __future__ import annotations

import gc
import os
import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fairlead_kafka.cli.terminal import output, settings

if TYPE_CHECKING:
    from fairlead_kafka.testing import Cluster

LOOK_S = 0.25
"""How often it is looked whether brokers have ended: they may be killed from outside."""


def up(
    brokers: Annotated[int, typer.Option(min=1, help="How many brokers.")] = 1,
    port: Annotated[int, typer.Option(min=0, max=65_535, help="Port of the first broker, the others follow it; 0: any free ports.")] = 9092,
    host: Annotated[str, typer.Option(help="Address to listen on, and to tell clients.")] = "127.0.0.1",
    data_dir: Annotated[Path | None, typer.Option(help="Keep topics and records here; without it they go when the cluster stops.")] = None,
    processes: Annotated[bool, typer.Option("--processes", help="A process of its own for each broker: all cores, and `kill -9`.")] = False,
    racks: Annotated[str, typer.Option(help="Racks, separated by commas, in which the brokers stand in turn.")] = "",
    properties: Annotated[
        list[str] | None, typer.Option("--property", "-X", metavar="KEY=VALUE", help="A broker config; may be repeated.")
    ] = None,
) -> None:
    """Start an embedded cluster and serve it until Ctrl-C.

    Any Kafka client may use it.
    """
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    from fairlead_kafka.testing import Cluster

    gc.collect()
    gc.freeze()  # what is loaded stays: no need to walk over it again whenever partitions come
    standing = [rack.strip() for rack in racks.split(",") if rack.strip()]
    with Cluster(brokers, data_dir, settings(properties), port, host, processes, standing) as cluster:
        output.print(f"{brokers} {'broker' if brokers == 1 else 'brokers'} up: bootstrap.servers={cluster.bootstrap_servers}", markup=False)
        if processes:
            output.print("processes: " + ", ".join(f"broker {broker.node_id} is {broker.pid}" for broker in cluster.brokers), markup=False)
        kept = f"data in {data_dir}" if data_dir else "data in a temporary folder, removed at the end (--data-dir keeps it)"
        output.print(kept, markup=False)
        output.print("Ctrl-C stops it")
        _serve(cluster, stop)
        output.print("stopping")


def _serve(cluster: Cluster, stop: threading.Event) -> None:
    """Wait for `stop`. Says which brokers' processes have ended, and starts those again when it is told to."""
    again = threading.Event()
    signal.signal(signal.SIGUSR1, lambda *_: again.set())
    running = dict.fromkeys(cluster.brokers, True)
    while not stop.wait(LOOK_S):
        if again.is_set():
            again.clear()
            for broker in cluster.brokers:
                if not broker.running:
                    broker.start()
                    output.print(f"broker {broker.node_id} is up again, process {broker.pid}", markup=False)
        for broker, ran in running.items():
            running[broker] = broker.running
            if ran and not broker.running:
                ended = f"broker {broker.node_id} has ended; others lead its partitions where they can."
                output.print(f"{ended} To start it again: kill -USR1 {os.getpid()}", markup=False, soft_wrap=True)
