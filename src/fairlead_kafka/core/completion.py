"""Protocol of an operation's completion; hosts bring their own (`fairlead_kafka.runtime`)."""

from __future__ import annotations

from typing import Any, Protocol


class Completion(Protocol):
    """The caller's end of one operation. Machines return it by `effects.Resolve`; hosts call it."""

    def set_result(self, value: Any) -> None:
        """Complete the operation with its result."""

    def set_error(self, error: Exception) -> None:
        """Complete the operation with an error."""
