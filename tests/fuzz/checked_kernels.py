"""Kernels that check what they touch: compiled with CHECKED, they look at every index and at every
piece before it is copied."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import runpy
from collections.abc import Callable, Mapping
from functools import cache
from importlib.machinery import ExtensionFileLoader
from pathlib import Path
from typing import Any

from fairlead_kafka.base.kernel import KERNELS

NATIVE = Path(__file__).parents[2] / "src" / "native"
_NAME = "fairlead_kafka.base._native"


@cache
def load() -> Mapping[str, Callable[..., Any]]:
    """Every kernel by its name, compiled once for each state of its sources. What it raises for a
    wrong index is an IndexError."""
    digest = hashlib.sha256(
        b"".join(file.read_bytes() for file in sorted(NATIVE.iterdir()) if file.is_file())
    ).hexdigest()[:16]
    native = runpy.run_path(str(NATIVE / "build.py"))
    folder = NATIVE.parents[1] / "build" / "checked-kernels"
    file = folder / f"{digest}{native['this_platform']().suffix}"
    if not file.exists():
        fresh = folder / f"{digest}-{os.getpid()}{native['this_platform']().suffix}"
        native["build"](fresh, flags=("-DCHECKED",))
        fresh.replace(file)
    loader = ExtensionFileLoader(_NAME, str(file))
    spec = importlib.util.spec_from_file_location(_NAME, file, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return {kernel.__name__: getattr(module, kernel.__name__) for kernel in KERNELS}
