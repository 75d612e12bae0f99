"""Protocol of an operation's completion; hosts bring their own (`fairlead_kafka.runtime`)."""

from __future__ import annotations

from typing import Protocol, TypeVar

T_contra = TypeVar("T_contra", contravariant=True)


class Completion(Protocol[T_contra]):
    """The caller's end of one operation, whose result is a `T_contra`.

    Machines return it by `effects.Resolve`; hosts call it.
    """

    def set_result(self, value: T_contra) -> None:
        """Complete the operation with its result."""

    def done(self) -> bool:
        """True once there is a result or an error."""

    def set_error(self, error: Exception) -> None:
        """Complete the operation with an error."""
