"""Numbers with bounds, as annotations: `base.checked` enforces them in public methods."""

from __future__ import annotations

from math import inf
from typing import Annotated, NamedTuple


class Within(NamedTuple):
    """The bounds of a number, both included."""

    least: float
    most: float = inf

    def __str__(self) -> str:
        if self.least + self.most == -1:
            return f"of {self.most.bit_length() + 1} bits" if isinstance(self.most, int) else ""
        return f"of {self.least} or more" if self.most == inf else f"from {self.least} to {self.most}"


_INT_MAX = 2**31 - 1
_LONG_MAX = 2**63 - 1
Int16 = Annotated[int, Within(-(2**15), 2**15 - 1)]
Int32 = Annotated[int, Within(-_INT_MAX - 1, _INT_MAX)]
Int64 = Annotated[int, Within(-_LONG_MAX - 1, _LONG_MAX)]
PartitionNumber = Annotated[int, Within(0, _INT_MAX)]
Offset = Annotated[int, Within(0, _LONG_MAX)]
Seconds = Annotated[float, Within(0)]
"""How long a call may take, in seconds: 0 or more."""
