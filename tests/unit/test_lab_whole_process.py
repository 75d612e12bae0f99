"""A command from start to end: its seconds, CPU seconds, peak of memory and words are its own."""

from __future__ import annotations

import sys

import pytest

from fairlead_kafka.lab.bounded import NotFinished
from fairlead_kafka.lab.whole_process import run_whole

GROWING = (
    "import sys, time; b = bytearray(80_000_000); time.sleep(0.3); print('said'); print('complained', "
    "file=sys.stderr); sys.exit(3)"
)


def test_what_a_command_took_is_its_own() -> None:
    ours = bytearray(300_000_000)
    ran = run_whole([sys.executable, "-c", GROWING], 30)
    assert ran.returncode == 3
    assert sorted(ran.said.split()) == ["complained", "said"]
    assert 0.3 <= ran.seconds < 30
    assert 0 < ran.cpu_s < ran.seconds + 1
    assert 80 <= ran.rss_mb < 250, f"ours has {len(ours)} bytes more"


def test_what_takes_too_long_is_killed() -> None:
    with pytest.raises(NotFinished, match=r"not finished within 0\.2 s"):
        run_whole([sys.executable, "-c", "import time; time.sleep(60)"], 0.2)
