"""`fairlead up`: an embedded cluster in the foreground."""

from __future__ import annotations

import gc
import signal
import threading
from pathlib import Path
from typing import Annotated

import typer

from fairlead_kafka.cli.terminal import output, settings


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
        stop.wait()
        output.print("stopping")
