"""What an operation carries so that its machine can answer it; hosts bring their own (`fairlead_kafka.runtime.Completion`)."""

from __future__ import annotations

from typing import Any, Protocol


class Completion(Protocol):
    """The caller's end of one operation. Machines hand it back in `effects.Resolve` and never call it themselves."""

    def set_result(self, value: Any) -> None:
        """The operation succeeded."""

    def set_error(self, error: Exception) -> None:
        """The operation failed."""
