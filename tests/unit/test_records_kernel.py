"""`base.kernel`: machine code answers, its reference implementation can, and what a kernel is given
is looked at."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import fairlead_kafka.records  # noqa: F401  (its kernels are among those that are looked at)
from fairlead_kafka.base.kernel import KERNELS, MACHINE_CODE, kernel, read_only
from fairlead_kafka.partitioning.hashing import hash_keys, murmur2
from fairlead_kafka.records.encode_kernels import cut_by_size

KEYS = np.frombuffer(b"one21", np.uint8)
OFFSETS = np.array([0, 3, 5], np.int64)


def test_machine_code_serves_every_kernel_and_its_reference_can() -> None:
    assert MACHINE_CODE
    assert {"encode_batches", "measure_records", "cut_by_size", "decode_records", "hash_keys"} <= {
        each.__name__ for each in KERNELS
    }
    assert all(each.machine_code is not None for each in KERNELS)
    for body in (None, hash_keys.machine_code):
        hashes = np.empty(2, np.int32)
        try:
            hash_keys.serve(body)
            hash_keys(KEYS, OFFSETS, hashes)
        finally:
            hash_keys.serve(hash_keys.machine_code)
        assert hashes.tolist() == [murmur2(b"one"), murmur2(b"21")]


def test_a_kernel_has_machine_code_of_its_name() -> None:
    def unheard_of() -> None:
        """Assumes nothing."""

    with pytest.raises(AttributeError, match="unheard_of"):
        kernel(unheard_of)


@pytest.mark.parametrize(
    ("arguments", "wrong"),
    [
        ((KEYS, OFFSETS), "too few arguments: 2"),
        ((KEYS, OFFSETS, np.empty(2, np.int32), 1), "too many arguments: 4, not 3"),
        ((KEYS, OFFSETS, 3), "bytes-like"),
        ((KEYS, OFFSETS.astype(np.int32), np.empty(2, np.int32)), "argument 2 has items of 4 bytes, not 8"),
    ],
)
def test_what_is_not_what_a_kernel_takes_is_refused(arguments: tuple[object, ...], wrong: str) -> None:
    with pytest.raises(TypeError, match=wrong):
        hash_keys(*arguments)  # type: ignore[arg-type]


def test_what_cannot_be_written_to_or_is_not_contiguous_is_refused() -> None:
    with pytest.raises((ValueError, BufferError), match="read-only"):
        hash_keys(KEYS, OFFSETS, read_only(np.empty(2, np.int32)))
    with pytest.raises((ValueError, BufferError), match="contiguous"):
        hash_keys(KEYS, OFFSETS, np.empty(4, np.int32)[::2])
    with pytest.raises(OverflowError):
        cut_by_size(OFFSETS, OFFSETS, 1 << 64, 0, 0, 0, np.empty(3, np.int64))


def test_every_kernel_says_what_it_assumes() -> None:
    for each in KERNELS:
        assert "ssumes" in (each.__doc__ or ""), each


def test_without_machine_code_the_reference_serves_and_that_is_said() -> None:
    program = """
import sys
sys.modules["fairlead_kafka.base._native"] = None
import numpy as np
from fairlead_kafka.partitioning.hashing import hash_keys
hashes = np.empty(1, np.int32)
hash_keys(np.frombuffer(b"21", np.uint8), np.array([0, 2]), hashes)
print(hashes[0])
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout == "-973932308\n"
    assert ran.stderr.count("no machine code for this platform") == 1
