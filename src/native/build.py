"""Compiles the kernels into the module `_native`, with the C compiler of the `ziglang` package: no
other one is needed.

    python src/native/build.py [TARGET_FILE]

The module uses CPython's stable ABI of 3.11, declared in `python_abi.h`, so one file serves every
later Python of its platform, and Python's own headers are not needed either.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
_FLAGS = ("-std=c11", "-O3", "-fwrapv", "-Wall", "-Wextra", "-Werror", "-shared", "-fvisibility=hidden")
_MACHINES = {"x86_64": "x86_64", "amd64": "x86_64", "aarch64": "aarch64", "arm64": "aarch64"}


class Platform(NamedTuple):
    """A platform that is compiled for: `target` as zig names it, `wheel` as a wheel's tag does, and
    its linker's arguments."""

    target: str
    wheel: str
    suffix: str
    linking: tuple[str, ...]


def platform_of(name: str, musl: bool = False) -> Platform:
    """The platform that `sysconfig.get_platform()` calls `name`. ValueError for one that kernels
    are not compiled for."""
    system, _, rest = name.partition("-")
    machine = _MACHINES.get(rest.rpartition("-")[2])
    if machine is None:
        raise ValueError(f"kernels are compiled for x86-64 and arm64, not for {name}")
    if system == "linux":
        # The oldest C library of Python's `manylinux2014`; of musl the one that zig brings.
        target, wheel = ("linux-musl", "musllinux_1_1") if musl else ("linux-gnu.2.17", "manylinux_2_17")
        return Platform(f"{machine}-{target}", f"{wheel}_{machine}", ".abi3.so", ("-fPIC", "-s"))
    if system == "macosx":
        least, apple = ("11.0", "arm64") if machine == "aarch64" else ("10.13", "x86_64")
        return Platform(
            f"{machine}-macos.{least}",
            f"macosx_{least.replace('.', '_')}_{apple}",
            ".abi3.so",
            ("-undefined", "dynamic_lookup"),
        )
    if system == "win":
        libraries = Path(sys.base_prefix) / "libs"
        return Platform(
            f"{machine}-windows-gnu",
            f"win_{'arm64' if machine == 'aarch64' else 'amd64'}",
            ".pyd",
            (f"-L{libraries}", "-lpython3"),
        )
    raise ValueError(f"kernels are compiled for Linux, macOS and Windows, not for {name}")


def this_platform() -> Platform:
    """The platform of this interpreter."""
    return platform_of(sysconfig.get_platform(), "musl" in (sysconfig.get_config_var("SOABI") or ""))


def build(file: Path, platform: Platform | None = None, flags: Sequence[str] = ()) -> None:
    """Compile and link the module into `file`. RuntimeError with the compiler's words if that
    fails."""
    platform = platform or this_platform()
    sources = sorted(str(source) for source in HERE.glob("*.c"))
    compiler = [sys.executable, "-m", "ziglang", "cc", "-target", platform.target]
    file.parent.mkdir(parents=True, exist_ok=True)
    fresh = file.with_suffix(".new")  # a process that has the old one loaded keeps it
    command = [*compiler, *_FLAGS, *platform.linking, *flags, "-o", str(fresh), *sources]
    with tempfile.TemporaryDirectory(
        prefix="fairlead-native-"
    ) as cache:  # zig's own cache needs a home, and would stay in it
        folders = {"ZIG_GLOBAL_CACHE_DIR": cache, "ZIG_LOCAL_CACHE_DIR": cache}
        ran = subprocess.run(
            command, capture_output=True, text=True, check=False, env={**os.environ, **folders}
        )
    if ran.returncode:
        raise RuntimeError(f"the kernels could not be compiled: {' '.join(command)}\n{ran.stderr}")
    fresh.replace(file)


def module_file(folder: Path, platform: Platform) -> Path:
    """Path of the compiled module for `platform` in the package's folder."""
    return folder / "base" / f"_native{platform.suffix}"


if __name__ == "__main__":
    build(
        Path(sys.argv[1])
        if len(sys.argv) > 1
        else module_file(HERE.parent / "fairlead_kafka", this_platform())
    )
