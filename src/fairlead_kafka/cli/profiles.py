"""Client settings of a command besides its own options: a properties file, or a stored profile.

`--command-config FILE` is that of Kafka's own tools: a Java properties file. A profile is such a
file under a name, in the user's folder of settings. Values may hold `${env:NAME}` and
`${file:PATH:KEY}`, and secrets in a profile must be such references: no secret is stored.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from fairlead_kafka.base.config import ConfigType
from fairlead_kafka.base.config_client import CLIENT_CONFIGS
from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.base.nearest import nearest

FILE_MAX_BYTES = 1 << 20
"""Largest file of settings that is read, in bytes; no real one is as large."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_given: dict[str, str] = {}


def folder() -> Path:
    """Folder of profiles: `$XDG_CONFIG_HOME/fairlead/profiles`; `~/.config` if that is not set."""
    base = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    return Path(base, "fairlead", "profiles")


def given() -> Mapping[str, str]:
    """The settings of the file and the profile that the present command was given."""
    return dict(_given)


def forget() -> None:
    """Forget the settings of an earlier command of this process: the present one was given none
    yet."""
    _given.clear()


def take_file(path: str | None) -> None:
    """Take the settings of the file that `--command-config` names. ConfigError if it cannot be
    read."""
    if path is not None:
        _given.update(_read(Path(path), "--command-config"))


def take_profile(name: str | None) -> None:
    """Take the settings of the profile that `--profile` names. ConfigError if there is none."""
    if name is not None:
        for key, value in _read(path_of(name), "--profile").items():
            _given.setdefault(key, value)  # a file beside it counts more


def path_of(name: str) -> Path:
    """The file of a profile that exists. ConfigError, with the nearest name, if it does not."""
    path = folder() / f"{checked(name)}.properties"
    if not path.exists():
        near = nearest(name, names())
        hint = f"did you mean {near}?" if near else f"`fairlead profile add {name}` makes it"
        raise ConfigError(f"profile {name}: there is none; {hint}")
    return path


def names() -> list[str]:
    """The names of all profiles."""
    return sorted(path.stem for path in folder().glob("*.properties"))


def checked(name: str) -> str:
    """`name`, if it is a valid name of a profile. ConfigError if not."""
    if not _NAME.fullmatch(name):
        raise ConfigError(
            f"profile {name!r}: a name is letters, digits, '.', '_' and '-', and begins with a letter or a "
            "digit"
        )
    return name


def write(name: str, settings: Mapping[str, str]) -> Path:
    """Write a profile to its file. ConfigError if a setting does not exist, or a secret would be
    written."""
    from fairlead_kafka.security.references import references

    for key, value in settings.items():
        own = CLIENT_CONFIGS.keys.get(CLIENT_CONFIGS.aliases.get(key, key))
        if own is None:
            near = nearest(key, [*CLIENT_CONFIGS.keys, *CLIENT_CONFIGS.aliases])
            raise ConfigError(f"{key}: unknown" + (f"; did you mean {near}?" if near else ""))
        if own.type is ConfigType.PASSWORD and not references(value):
            raise ConfigError(
                f"{key}: a profile keeps no secrets; give ${{env:NAME}} or ${{file:PATH:KEY}}, looked up "
                "when used"
            )
        if "\n" in value:
            raise ConfigError(f"{key}: must be one line")
    path = folder() / f"{checked(name)}.properties"
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    lines = [f"{key}={value.replace(chr(92), chr(92) * 2)}\n" for key, value in settings.items()]
    with open(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        file.writelines(lines)
    return path


def read(name: str) -> dict[str, str]:
    """The settings of a profile."""
    return _read(path_of(name), "profile")


def _read(path: Path, option: str) -> dict[str, str]:
    from fairlead_kafka.security.references import parse_properties

    try:
        with path.open("rb") as file:
            data = file.read(FILE_MAX_BYTES + 1)
        if len(data) > FILE_MAX_BYTES:
            raise ConfigError(
                f"{option} {path}: is larger than {FILE_MAX_BYTES >> 20} MiB; that is no file of settings"
            )
        return parse_properties(data.decode())
    except OSError as error:
        raise ConfigError(
            f"{option} {path}: cannot be read ({(error.strerror or str(error)).lower()})"
        ) from None
    except ValueError as error:
        raise ConfigError(f"{option} {path}: is no Java properties file ({error})") from None
