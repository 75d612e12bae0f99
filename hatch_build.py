"""Hatch's hook: compiles the kernels when the package is built, or installed in place."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompileKernels(BuildHookInterface[Any]):
    """Puts the module with the machine code into the package. A wheel is then of its platform, and
    for every Python from 3.11 on."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before files are gathered, for a wheel or an installation in place."""
        root = Path(self.root)
        native = runpy.run_path(str(root / "src" / "native" / "build.py"))
        platform = native["this_platform"]()
        file = native["module_file"](root / "src" / "fairlead_kafka", platform)
        native["build"](file, platform)
        build_data["pure_python"] = False
        build_data["tag"] = f"cp311-abi3-{platform.wheel}"
        build_data["artifacts"].append(f"/{file.relative_to(root)}")
