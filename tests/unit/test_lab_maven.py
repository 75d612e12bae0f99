"""What peers need of Maven Central: fetched once, whoever asks at the same time."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fairlead_kafka.lab import maven
from fairlead_kafka.lab.maven import Unavailable, fetch_jars

MAVEN = """\
#!/bin/sh
echo call >> ../calls
mkdir ../running || exit 1
sleep 0.2
rmdir ../running
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where jars go, with a Maven on the PATH that fails beside another one."""
    (tmp_path / "mvn").write_text(MAVEN)
    (tmp_path / "mvn").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(maven, "share_folder", lambda name: tmp_path / name)
    return tmp_path


def test_two_that_ask_at_once_fetch_one_after_the_other_and_each_thing_once(folder: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        found = list(
            pool.map(
                lambda name: fetch_jars(name, ["group:artifact:1"]), ["kafka", "kafka", "connector", "kafka"]
            )
        )
    assert {path.name for path in found} == {"kafka", "connector"}
    assert (folder / "calls").read_text().count("call") == 2


def test_what_maven_says_when_it_fails_is_told(folder: Path) -> None:
    (folder / "mvn").write_text("#!/bin/sh\necho no such artifact\nexit 1\n")
    with pytest.raises(Unavailable, match="could not fetch kafka: no such artifact"):
        fetch_jars("kafka", ["group:artifact:1"])
    assert not (folder / "kafka" / "complete").exists()
