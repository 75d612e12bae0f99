"""`fairlead up`: an embedded cluster in the foreground."""

from __future__ import annotations

import gc
import os
import signal
import threading
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fairlead_kafka.base.config_broker_security import STANDARD_AUTHORIZER
from fairlead_kafka.base.errors import FairleadError, UsageError
from fairlead_kafka.cli.signals import handling
from fairlead_kafka.cli.terminal import output, settings

if TYPE_CHECKING:
    from fairlead_kafka.testing import BrokerHandle, Cluster


class LogIn(StrEnum):
    """How clients log in."""

    SCRAM = "scram"
    PLAIN = "plain"
    OAUTHBEARER = "oauthbearer"


_MECHANISMS = {LogIn.SCRAM: "SCRAM-SHA-512", LogIn.PLAIN: "PLAIN", LogIn.OAUTHBEARER: "OAUTHBEARER"}

PORT = 9092
LOOK_S = 0.25
"""Seconds between looks whether brokers have ended: they may be killed from outside."""


def up(
    brokers: Annotated[int, typer.Option(min=1, help="How many brokers.")] = 1,
    port: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=65_535,
            help="Port of the first broker, the others follow it (9092); 0: any free ports.",
        ),
    ] = None,
    host: Annotated[str, typer.Option(help="Address to listen on, and to tell clients.")] = "127.0.0.1",
    data_dir: Annotated[
        Path | None,
        typer.Option(help="Keep topics and records here; without it they go when the cluster stops."),
    ] = None,
    processes: Annotated[
        bool,
        typer.Option("--processes", help="A process of its own for each broker: all cores, and `kill -9`."),
    ] = False,
    racks: Annotated[
        str, typer.Option(help="Racks, separated by commas, in which the brokers stand in turn.")
    ] = "",
    tls: Annotated[
        bool, typer.Option("--tls", help="Connections are in TLS, with certificates made on the spot.")
    ] = False,
    sasl: Annotated[
        LogIn | None,
        typer.Option(
            help="Clients log in; the files of settings that are written say by what, the others are there, "
            "too."
        ),
    ] = None,
    users: Annotated[
        list[str] | None,
        typer.Option(
            "--user",
            metavar="NAME[:PASSWORD]",
            help="A user; may be repeated. Without a password one is made up.",
        ),
    ] = None,
    acls: Annotated[
        bool,
        typer.Option("--acls", help="Users may do what `fairlead acls` says, the user admin everything."),
    ] = False,
    faults: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Faults by request, in TOML: errors, delays, lost answers (docs/how-to/testing.md).",
        ),
    ] = None,
    properties: Annotated[
        list[str] | None,
        typer.Option("--property", "-X", metavar="KEY=VALUE", help="A broker config; may be repeated."),
    ] = None,
) -> None:
    """Start an embedded cluster and serve it until Ctrl-C.

    Every Kafka client may use it. With --tls or --sasl there is a file of settings for each user,
    for --command-config and Java's tools.
    """
    named, security = _users(users), _security(tls, sasl)
    if security is None and (named or acls):
        raise UsageError(
            f"{'--user' if named else '--acls'} needs users who log in: add --sasl scram, or --tls"
        )
    if faults is not None and processes:
        raise UsageError("--faults: brokers in processes of their own take none; leave --processes out")
    stop, again = threading.Event(), threading.Event()
    with (
        handling(lambda *_: stop.set(), signal.SIGINT, signal.SIGTERM),
        handling(lambda *_: again.set(), signal.SIGUSR1),
    ):
        from fairlead_kafka.testing import Cluster
        from fairlead_kafka.testing.faults_file import load_faults, set_faults

        rules = [] if faults is None else load_faults(faults)
        gc.collect()
        gc.freeze()  # what is loaded stays: no need to walk over it again whenever partitions come
        standing = [rack.strip() for rack in racks.split(",") if rack.strip()]
        config = settings(properties)
        if port is None:  # else `listeners` says it, and may not be given beside a port
            port = 0 if "listeners" in config else PORT
        if acls:
            config.setdefault("authorizer.class.name", STANDARD_AUTHORIZER)
        with Cluster(
            brokers, data_dir, config, port, host, processes, standing, security, named or ("alice", "bob")
        ) as cluster:
            if faults is not None:
                set_faults(cluster, faults, rules)
            _describe(cluster, data_dir, None if sasl is None else _MECHANISMS[sasl], processes=processes)
            _serve(cluster, stop, again)
            output.print("stopping")


def _describe(cluster: Cluster, data_dir: Path | None, mechanism: str | None, *, processes: bool) -> None:
    """Print how the cluster is reached, where its data is, its faults, and its users' settings for
    `mechanism` (None: as they are without SASL)."""
    brokers = len(cluster.brokers)
    output.print(
        f"{brokers} {'broker' if brokers == 1 else 'brokers'} up: "
        f"bootstrap.servers={cluster.bootstrap_servers}",
        markup=False,
    )
    for listener in cluster.listeners[1:]:
        output.print(
            f"listener {listener}: bootstrap.servers={cluster.bootstrap_servers_of(listener)}",
            markup=False,
            soft_wrap=True,
        )
    if processes:
        output.print(
            "processes: "
            + ", ".join(f"broker {broker.node_id} is {broker.pid}" for broker in cluster.brokers),
            markup=False,
        )
    kept = (
        f"data in {data_dir}"
        if data_dir
        else "data in a temporary folder, removed at the end (--data-dir keeps it)"
    )
    output.print(kept, markup=False)
    for fault in cluster.faults:
        output.print(str(fault).strip("<>"), markup=False, soft_wrap=True)
    for user in cluster.users:
        output.print(
            f"{user}: --command-config {cluster.settings_file(user, mechanism=mechanism)}",
            markup=False,
            soft_wrap=True,
        )
    output.print("Ctrl-C stops it")


def _security(tls: bool, sasl: LogIn | None) -> str | None:
    """The value of the cluster's argument `security` for these options; None: without security."""
    if sasl is None:
        return "ssl" if tls else None
    return "sasl_ssl" if tls else "sasl_plaintext"


def _users(given: list[str] | None) -> dict[str, str]:
    """{user name: password}, from `NAME:PASSWORD` texts; the password is empty if one is to be made
    up."""
    pairs = (each.partition(":") for each in given or ())
    return {name: password for name, _colon, password in pairs}


def _start_again(broker: BrokerHandle) -> None:
    try:
        broker.start()
    except (FairleadError, OSError) as error:  # the others run, whatever keeps this one from it
        output.print(f"broker {broker.node_id} did not start: {error}", markup=False, soft_wrap=True)
    else:
        output.print(f"broker {broker.node_id} is up again, process {broker.pid}", markup=False)


def _serve(cluster: Cluster, stop: threading.Event, again: threading.Event) -> None:
    """Wait for `stop`. Meanwhile report brokers' processes that have ended, start them again when
    `again` is set, and give freed memory back."""
    from fairlead_kafka.runtime import LongRunning

    memory, running = LongRunning(), dict.fromkeys(cluster.brokers, True)
    while not stop.wait(LOOK_S):
        memory.look()
        if not cluster.controller_running:
            raise FairleadError("the controller has ended (the log above says why): start the cluster again")
        if again.is_set():
            again.clear()
            for broker in cluster.brokers:
                if not broker.running:
                    _start_again(broker)
        for broker, ran in running.items():
            running[broker] = broker.running
            if ran and not broker.running:
                ended = f"broker {broker.node_id} has ended; others lead its partitions where they can."
                output.print(
                    f"{ended} To start it again: kill -USR1 {os.getpid()}", markup=False, soft_wrap=True
                )
