"""The changelog has Keep a Changelog's form: releases, newest first, with sections of short
lines."""

from __future__ import annotations

import re
from pathlib import Path

from packaging.version import Version

import fairlead_kafka

TEXT = (Path(__file__).parents[2] / "CHANGELOG.md").read_text(encoding="utf-8")
SECTIONS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
LONGEST = 250
"""Characters of an entry: two sentences, and a link."""


def releases() -> dict[str, str]:
    parts = re.split(r"(?m)^## (.*)\n", TEXT)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_releases_have_versions_and_dates_newest_first() -> None:
    first, *others = releases()
    assert first == "Unreleased"
    dated = [re.fullmatch(r"(\d+\.\d+\.\d+) - (\d{4}-\d\d-\d\d)", name) for name in others]
    assert all(dated), others
    named = [(Version(one[1]), one[2]) for one in dated if one]
    assert named == sorted(named, reverse=True)
    assert str(named[0][0]) == Version(fairlead_kafka.__version__).base_version


def test_every_entry_stands_in_a_section_of_its_release_once() -> None:
    for release, text in releases().items():
        parts = re.split(r"(?m)^### (.*)\n", text)
        assert not parts[0].strip(), f"{release}: {parts[0].strip()[:80]!r} stands in no section"
        names = parts[1::2]
        assert set(names) <= SECTIONS, f"{release}: {names}"
        assert len(names) == len(set(names)), f"{release}: a section twice in {names}"
        assert all(re.match(r"\n*- ", entries) for entries in parts[2::2]), f"{release}: an empty section"


def test_entries_are_short_sentences_and_no_two_are_the_same() -> None:
    entries = re.findall(r"(?ms)^- (.*?)(?=^- |^#|\Z)", TEXT)
    long = [entry for entry in entries if len(re.sub(r"\]\([^)]*\)", "]", entry)) > LONGEST]
    assert not long, f"split these, or say less:\n{long}"
    open_ended = [entry for entry in entries if not entry.strip().endswith((".", ")"))]
    assert not open_ended
    assert len(entries) == len(set(entries))
