"""Files that options name and that Spark ships to executors: `--files ca.pem`, `spark.files`,
`SparkContext.addFile`."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TypeVar

FILE_KEYS = (
    "ssl.truststore.location",
    "ssl.ca.location",
    "ssl.keystore.location",
    "ssl.certificate.location",
    "ssl.key.location",
    "sasl.kerberos.keytab",
)
Value = TypeVar("Value")


def with_shipped_files(client: Mapping[str, Value]) -> dict[str, Value]:
    """A client's settings with the names of shipped files as the paths that they have in this
    process.

    A name that is a file as it is stays so: an absolute path, or a file in the working directory
    (executors of YARN and of Spark's own cluster). A name that is found nowhere stays too, for the
    client to report.
    """
    found = dict(client)
    for key in FILE_KEYS:
        name = found.get(key)
        if isinstance(name, str) and name and not os.path.exists(name):
            path = _shipped(name)
            if path is not None:
                found[key] = path  # type: ignore[assignment]  # a text, as it was
    return found


def _shipped(name: str) -> str | None:
    if (
        "pyspark" not in sys.modules
    ):  # what is not loaded has shipped nothing, and is not to be loaded for this
        return None
    try:
        from pyspark import SparkFiles

        root = SparkFiles.getRootDirectory()
    except AssertionError:  # there is no SparkContext in this process, and it is none of Spark's workers
        return None
    # What plans a stream is told of a folder below the one that has the files, and which is not
    # even there (Spark 4.3).
    for folder in (root, os.path.dirname(root)) if root else ():
        path = os.path.abspath(os.path.join(folder, name))
        if os.path.exists(path):
            return path
    return None
