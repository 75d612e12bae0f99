"""`fairlead users list | set | remove`: SCRAM users. A password is never an argument of the
process, which others could see."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from fairlead_kafka.base.errors import ConfigError, ItemsFailed, UsageError
from fairlead_kafka.base.secret import Secret
from fairlead_kafka.cli.connecting import open_admin
from fairlead_kafka.cli.options import ClientOptions, expanded
from fairlead_kafka.cli.terminal import (
    JsonFile,
    output,
    print_each,
    rows_table,
    write_rows,
)
from fairlead_kafka.client import (
    Admin,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

app = typer.Typer(no_args_is_help=True, help="List, set and remove SCRAM users and their passwords.")

_MECHANISMS = {each.mechanism: each for each in ScramMechanism if each != ScramMechanism.UNKNOWN}
_USUAL = ScramMechanism.SCRAM_SHA_512


@app.command(name="list")
@expanded
def list_users(
    users: Annotated[list[str] | None, typer.Argument(help="Users; none: all.")] = None,
    json_file: JsonFile = None,
    *,
    client: ClientOptions,
) -> None:
    """List users who have a password for SCRAM."""
    failed: ItemsFailed | None = None
    with open_admin(client.settings()) as admin:
        try:
            found = admin.describe_user_scram_credentials(users or ())
        except ItemsFailed as error:
            failed, found = error, error.results
    rows = [
        {"user": user, "mechanism": info.mechanism.mechanism, "iterations": info.iterations}
        for user, own in found.items()
        for info in own
    ]
    if json_file != "-" and rows:
        output.print(rows_table(rows))
    write_rows(rows, json_file)
    if failed is not None:
        raise failed


@app.command(name="set")
@expanded
def set_password(
    user: Annotated[str, typer.Argument(help="The user, who need not be there yet.")],
    mechanism: Annotated[
        list[str] | None,
        typer.Option(
            "--mechanism",
            help=f"{' or '.join(_MECHANISMS)}; none given: {_USUAL.mechanism}. May be repeated.",
        ),
    ] = None,
    iterations: Annotated[
        int | None,
        typer.Option("--iterations", min=4096, max=16_384, help="How often it is hashed; none given: 8192."),
    ] = None,
    password: Annotated[
        str | None,
        typer.Option(
            "--password",
            metavar="REFERENCE",
            help="${env:NAME}, ${file:PATH} or ${file:PATH:KEY}; none given: it is asked for.",
        ),
    ] = None,
    *,
    client: ClientOptions,
) -> None:
    """Set a user's password.

    It is asked for without being shown, or is the first line of standard input, or what --password
    refers to.
    """
    mechanisms = _mechanisms(mechanism) or [_USUAL]
    secret = None if password is None else _referred(password)
    with open_admin(client.settings()) as admin:
        secret = secret or _asked(user)
        infos = [
            ScramCredentialInfo(each) if iterations is None else ScramCredentialInfo(each, iterations)
            for each in mechanisms
        ]
        admin.alter_user_scram_credentials(
            [UserScramCredentialUpsertion(user, info, secret) for info in infos]
        )
    for info in infos:
        output.print(f"set: {user}, {info}", markup=False)


@app.command()
@expanded
def remove(
    users: Annotated[list[str], typer.Argument(help="Users.")],
    mechanism: Annotated[
        list[str] | None,
        typer.Option(
            "--mechanism", help="Only the password for this mechanism; none given: all. May be repeated."
        ),
    ] = None,
    *,
    client: ClientOptions,
) -> None:
    """Take passwords back: the users cannot log in any more."""
    chosen = _mechanisms(mechanism)
    with open_admin(client.settings()) as admin:
        print_each("removed", lambda: _remove(admin, list(dict.fromkeys(users)), chosen))


def _remove(admin: Admin, users: list[str], chosen: list[ScramMechanism]) -> dict[str, None]:
    """Delete the users' passwords: all, or those of the mechanisms `chosen`. ItemsFailed names the
    users that have none; its results have the others."""
    missing: ItemsFailed | None = None
    wanted = [UserScramCredentialDeletion(user, each) for user in users for each in chosen]
    if not chosen:
        try:
            found = admin.describe_user_scram_credentials(users)
        except ItemsFailed as error:
            missing, found = error, error.results
        wanted = [
            UserScramCredentialDeletion(user, info.mechanism) for user, own in found.items() for info in own
        ]
    done = admin.alter_user_scram_credentials(wanted) if wanted else {}
    if missing is not None:
        raise ItemsFailed(missing.what, missing.errors, done)
    return done


def _mechanisms(names: list[str] | None) -> list[ScramMechanism]:
    for name in names or ():
        if name.upper() not in _MECHANISMS:
            raise ConfigError(f"--mechanism {name}: must be {' or '.join(_MECHANISMS)}")
    return list(dict.fromkeys(_MECHANISMS[name.upper()] for name in names or ()))


def _referred(reference: str) -> Secret:
    """The secret that a reference stands for.

    ConfigError for a password in place of a reference; the text does not repeat it.
    """
    from fairlead_kafka.security.references import references, resolve

    if not references(reference):
        raise ConfigError(
            "--password: others can see what stands in a command line; give ${env:NAME} or ${file:PATH}, "
            "or leave it out to be asked for it, or to have it read from standard input"
        )
    return Secret(resolve(reference, "--password"))


def _asked(user: str) -> Secret:
    """The password, typed twice, or the first line of standard input. UsageError if there is
    none."""
    if not sys.stdin.isatty():
        line = sys.stdin.readline().rstrip("\r\n")
        if not line:
            raise UsageError(
                "no password: standard input has no first line; pipe it in, or name it with --password "
                "'${env:NAME}'"
            )
        return Secret(line)
    from getpass import getpass

    try:
        typed = Secret(getpass(f"password of {user}: "))
        again = Secret(getpass("again: "))
    except EOFError:
        raise UsageError("no password was typed; nothing was changed") from None
    if typed != again:
        raise UsageError("the two passwords differ; nothing was changed")
    return typed
