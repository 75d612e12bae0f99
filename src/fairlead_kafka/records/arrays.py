"""Types of the flat arrays that columns of records are made of."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Bytes: TypeAlias = npt.NDArray[np.uint8]
Int32: TypeAlias = npt.NDArray[np.int32]
Int64: TypeAlias = npt.NDArray[np.int64]
Table: TypeAlias = npt.NDArray[np.int64]
"""int64[n, k]."""
Bools: TypeAlias = npt.NDArray[np.bool_]
FlatColumns: TypeAlias = tuple[
    Bytes, Int64, Bools, Bytes, Int64, Bools, Int64, Bytes, Int64, Bytes, Int64, Bools, Int64
]
"""key data, offsets, valid; value data, offsets, valid; header offsets; header key data, offsets;
header value data, offsets, valid; timestamps. No offsets: all null (keys, values) or no headers. No
valid: no nulls. No timestamps: none given."""
