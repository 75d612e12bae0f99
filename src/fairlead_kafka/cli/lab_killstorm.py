"""`fairlead lab killstorm`: whether anything is lost when brokers are killed over and over."""

from __future__ import annotations

from typing import Annotated

import typer

from fairlead_kafka.cli.lab_options import Peers, chosen, chosen_all
from fairlead_kafka.cli.terminal import JsonFile, output, progress, rows_table, write_json


def killstorm(
    kills: Annotated[int, typer.Option(min=1, help="How often a broker is killed.")] = 20,
    peers: Peers = None,
    security: Annotated[
        str, typer.Option(help="plaintext, ssl, sasl_plaintext or sasl_ssl: of clients and between brokers.")
    ] = "plaintext",
    seed: Annotated[int, typer.Option(help="Draws who is killed, and when.")] = 1,
    json_file: JsonFile = None,
) -> None:
    """`kill -9` over and over on brokers under load.

    Fails if a record that was acknowledged is lost, or there twice.
    """
    from fairlead_kafka.lab.experiment import report
    from fairlead_kafka.lab.killstorm import SECURITIES, SYSTEMS, run

    systems = chosen_all("--peers", peers, tuple(SYSTEMS))
    security = chosen("--security", security, SECURITIES)
    with progress("lab killstorm") as status:
        rows = run(
            status,
            kills=kills,
            systems=systems,
            seed=seed,
            security=security,
        )
    if json_file != "-":
        output.print(rows_table(rows, thousands=True))
    parameters = {
        "kills": kills,
        "systems": systems,
        "seed": seed,
        "security": security,
    }
    write_json(report("killstorm", parameters, rows), json_file)
    if any(row.get("lost") or row.get("duplicated") for row in rows):
        raise typer.Exit(1)
