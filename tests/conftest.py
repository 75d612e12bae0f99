"""What all tests share: the Hypothesis profile, Ctrl-C, how Java is started, which files run in one
process, and a garbage collector that passes over what was loaded before the first test."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.support.class_archive import java_options
from tests.support.scheduling import FilesTogether

gc.disable()  # until `pytest_collection_finish`

settings.register_profile(
    "house", derandomize=True, deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("house")

# A Java of a test lives for seconds. With one compiler, one collecting thread and classes that are
# not verified, Apache Kafka or a tool starts in a third of the time (2.3 CPU seconds, not 7.5). The
# lab measures without this.
os.environ.setdefault(
    "JDK_JAVA_OPTIONS",
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC "
    "-XX:+IgnoreUnrecognizedVMOptions -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote",
)

if java_options():
    os.environ.setdefault("SPARK_SUBMIT_OPTS", java_options())

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell has what runs in its background ignore Ctrl-C, and children inherit that; some tests
    # are about it.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _signals_are_handled_as_before() -> Iterator[None]:
    """A test leaves no handler of Ctrl-C or SIGTERM behind: a later test in this process, which is
    interrupted, would wait for ever."""
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    yield
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> FilesTogether | None:
    """Files that need the same servers go to one process."""
    return FilesTogether(config, log) if config.getvalue("dist") == "loadfile" else None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes() -> None:
    """Collect garbage in the process that hands out the files, too; it has no tests of its own."""
    gc.enable()


def pytest_collection_finish() -> None:
    """Begin to collect garbage. Modules and test items stay to the end, so that nothing is to be
    found among them: with a collector that looks at them while they come, each process took eight
    seconds of CPU more."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="module", autouse=True)
def _what_a_file_leaves_is_collected_once() -> None:
    """Most of what a file leaves stays to the end: modules, caches, servers that others use. It is
    looked at once, as the next file begins and nobody holds the last test's fixtures any more; not
    again and again, which took a quarter of the unit tests' CPU."""
    gc.collect()
    gc.freeze()
