"""A test that hangs is a run that fails, and says where."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
IN_A_LOCK = """
import threading

def test_first():
    threading.Lock().acquire()
    threading.Event().wait()

def test_after():
    pass
"""
IN_C_AND_NO_OTHER_THREAD_RUNS = """
import ctypes

def test_first():
    library, lock = ctypes.PyDLL(None), ctypes.create_string_buffer(128)
    library.pthread_mutex_lock(lock)
    library.pthread_mutex_lock(lock)
"""
AT_THE_END_OF_A_FIXTURE = """
import pytest, subprocess, sys

@pytest.fixture(scope="module")
def thing():
    yield
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        process.wait()

def test_first(thing):
    pass
"""


@pytest.mark.skipif(sys.platform != "linux", reason="makes the sizes of Linux's locks")
@pytest.mark.parametrize("hang", [IN_A_LOCK, IN_C_AND_NO_OTHER_THREAD_RUNS, AT_THE_END_OF_A_FIXTURE])
def test_a_hang_ends_the_run_and_says_where(tmp_path: Path, hang: str) -> None:
    flags = re.search(r"-m pytest tests (.*)", (ROOT / "Makefile").read_text())
    assert flags is not None
    (tmp_path / "test_hangs.py").write_text(hang)
    command = [sys.executable, "-m", "pytest", *flags[1].split(), "-n", "1", "-p", "no:fairlead"]
    settings = ["-c", str(ROOT / "pyproject.toml"), "--rootdir", str(tmp_path), "-p", "no:cacheprovider"]
    ran = subprocess.run(
        [*command, *settings, "-o", "faulthandler_timeout=1", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert f'"{tmp_path}/test_hangs.py", line ' in ran.stderr
    assert "1 failed" in ran.stdout, "and is not tried again"
    assert re.search(r"crashed while running '.*test_hangs\.py::test_first'", ran.stdout)
