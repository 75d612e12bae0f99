"""The application: commands put together, errors said in one line."""

from __future__ import annotations

import signal
import sys

import typer

import fairlead
from fairlead.base.errors import FairleadError
from fairlead.cli import cluster, demo_command, lab, perf, records, topics
from fairlead.cli.terminal import errors

app = typer.Typer(name="fairlead", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help=fairlead.__doc__)
app.add_typer(topics.app, name="topics")
app.add_typer(perf.app, name="perf")
app.add_typer(lab.app, name="lab")
app.command("up")(cluster.up)
app.command("produce")(records.produce)
app.command("consume")(records.consume)
app.command("demo")(demo_command.demo)

INTERRUPTED_EXIT_CODE = 128 + signal.SIGINT


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", help="Print the version and leave."),
) -> None:
    if version:
        typer.echo(f"fairlead {fairlead.__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main() -> None:
    """Runs a command; exit code 1 for an error of ours, 130 for Ctrl-C, 2 for a command line that makes no sense."""
    try:
        app()
    except FairleadError as error:
        errors.print(f"[red]{type(error).__name__}[/]: {error}", highlight=False, soft_wrap=True)
        sys.exit(1)
    except KeyboardInterrupt:
        errors.print("interrupted")
        sys.exit(INTERRUPTED_EXIT_CODE)
    except BrokenPipeError:
        sys.stderr.close()  # The reader of a pipe left, as `head` does: nothing to say.
        sys.exit(0)


if __name__ == "__main__":
    main()
