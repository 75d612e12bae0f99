"""Hatch's hook for the package's description: the README as an index can show it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_RELATIVE = re.compile(r"\[([^\]]+)\]\((?![a-z]+:)[^)]*\)")


class Description(MetadataHookInterface):
    """Takes the links to files out of the README: an index has no files beside it."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Called when the metadata is built."""
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": _RELATIVE.sub(r"\1", text)}
