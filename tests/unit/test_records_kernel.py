"""`base.kernel`: the twin serves until the kernel is compiled, and compiling is safe at any time."""

from __future__ import annotations

import subprocess
import sys
import threading

import numpy as np
import pytest

from fairlead_kafka.base import kernel as kernels
from fairlead_kafka.base.kernel import READ_INT64, Kernel, copy_bytes, read_only, signature


def total(numbers: np.ndarray) -> int:
    """Assumes nothing; the sum of `numbers`."""
    result = 0
    for number in numbers:
        result += number
    return result


def plain_total(numbers: np.ndarray) -> int:
    return sum(numbers.tolist())


@pytest.fixture
def made() -> Kernel[[np.ndarray], int]:
    return Kernel(total, (signature("int64", READ_INT64),), plain_total)


def test_plain_twin_serves_until_compiled(made: Kernel[[np.ndarray], int]) -> None:
    assert not made.ready
    assert made(np.arange(5)) == 10
    assert "plain" in repr(made)
    made.compile()
    assert made.ready
    assert made(np.arange(5)) == 10
    assert "compiled" in repr(made)


def test_compiled_kernel_takes_read_only_and_writable_arrays(made: Kernel[[np.ndarray], int]) -> None:
    made.compile()
    assert made(np.arange(4)) == made(read_only(np.arange(4))) == 6


def test_compiled_kernel_refuses_other_types_instead_of_compiling_again(made: Kernel[[np.ndarray], int]) -> None:
    made.compile()
    with pytest.raises(TypeError):
        made(np.arange(4, dtype=np.float64))


def test_kernel_answers_while_other_threads_compile_it(made: Kernel[[np.ndarray], int]) -> None:
    failures: list[BaseException] = []

    def work() -> None:
        try:
            made.compile()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        assert made(np.arange(5)) == 10
    for thread in threads:
        thread.join()
    assert failures == []
    assert made.ready


def test_source_without_directory_for_the_cache_is_compiled_for_the_process() -> None:
    namespace: dict[str, object] = {}
    exec("def double(number):\n    return 2 * number\n", namespace)
    made = Kernel(namespace["double"], ("int64(int64)",), lambda number: 2 * number)  # type: ignore[arg-type]
    made.compile()
    assert made(21) == 42


def test_registered_kernels_are_those_that_compile_all_compiles() -> None:
    import fairlead_kafka.records  # noqa: F401

    kernels.compile_all()
    names = {each.__name__ for each in kernels.KERNELS}
    assert {"encode_batches", "measure_records", "cut_by_size", "decode_records", "check_records", "scan_batches"} <= names
    assert all(each.ready for each in kernels.KERNELS)


def test_every_kernel_says_what_it_assumes() -> None:
    import fairlead_kafka.records  # noqa: F401

    for each in kernels.KERNELS:
        if each.source.__module__.startswith("fairlead_kafka.records"):
            assert (each.__doc__ or "").startswith("Assumes"), each


def test_copy_bytes_copies() -> None:
    target = np.zeros(6, np.uint8)
    copy_bytes(target, 1, np.arange(10, dtype=np.uint8), 4, 3)
    assert target.tolist() == [0, 4, 5, 6, 0, 0]


def test_importing_records_imports_neither_numba_nor_a_kernel_compiled() -> None:
    code = "import sys, fairlead_kafka.records; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
