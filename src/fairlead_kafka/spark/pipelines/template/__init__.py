"""The project that `fairlead pipeline init` writes: an access log, parsed, checked against
expectations and summed up.

Its files lie beside this one and are copied as they are, but for what is in double braces. Those in
Python end in `.txt` here, for they are programs of a pipeline, which gives them `spark`.
"""

from __future__ import annotations

from pathlib import Path

from fairlead_kafka.base.errors import ConfigError

TOPICS = {"access": 6, "access.quarantine": 1, "access.by-host": 3}
"""Partitions of each topic that the project reads or writes."""
_FILES = ("spark-pipeline.yml", "transformations/access_log.py.txt")
_HERE = Path(__file__).parent


def write_project(folder: Path, name: str, bootstrap_servers: str) -> list[Path]:
    """Write a new project's files into a new or empty folder, and return their paths. Raises
    ConfigError if the folder is not empty."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"{folder}: is there already, and is not an empty folder; name another")
    storage = (folder / "storage").absolute()
    values = {"{{name}}": name, "{{storage}}": storage.as_uri(), "{{servers}}": bootstrap_servers}
    written = []
    for file in _FILES:
        text = (_HERE / file).read_text(encoding="utf-8")
        for mark, value in values.items():
            text = text.replace(mark, value)
        target = folder / file.removesuffix(".txt")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        written.append(target)
    return written
