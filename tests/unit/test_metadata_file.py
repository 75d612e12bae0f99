"""The metadata log on disk: replaced as a whole or not at all, and written on from there."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from fairlead_kafka.testing.folder import MetadataFile
from tests.support.controllers import make_controller


@pytest.mark.parametrize("durable", [True, False])
def test_what_is_appended_after_a_replacement_follows_it(tmp_path: Path, durable: bool) -> None:
    path = tmp_path / "metadata.log"
    file = MetadataFile(path, durable)
    file.replay(make_controller(brokers=0))
    file.append(b"old")
    file.replace(b"new,")
    file.append(b"more")
    file.close()
    assert path.read_bytes() == b"new,more"
    assert [one.name for one in tmp_path.iterdir()] == ["metadata.log"]


def test_a_replacement_that_fails_leaves_the_log_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "metadata.log"
    file = MetadataFile(path, durable=False)
    file.replay(make_controller(brokers=0))
    before = path.read_bytes()
    path.with_suffix(".new").mkdir()
    with pytest.raises(OSError, match="directory"):
        file.replace(b"new")
    file.append(b"more")
    file.close()
    assert path.read_bytes() == before + b"more"


def test_a_line_whose_sync_fails_is_not_left_for_a_restart_to_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was refused: a topic whose deletion failed would be gone."""
    path = tmp_path / "metadata.log"
    file = MetadataFile(path, durable=True)
    file.replay(make_controller(brokers=0))
    file.append(b"kept")
    before = path.read_bytes()

    def fail(_descriptor: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", fail)
        with pytest.raises(OSError, match="Input/output"):
            file.append(b"refused")
    assert path.read_bytes() == before
    file.append(b"next")
    file.close()
    assert path.read_bytes() == before + b"next"


def test_a_cluster_folds_its_log_as_it_grows(tmp_path: Path) -> None:
    path = tmp_path / "metadata.log"
    file = MetadataFile(path, durable=False)
    fresh = make_controller(brokers=0)
    file.replay(fresh)
    controller = make_controller(log=file, replace=file.replace, replay=path.read_bytes())
    controller.create_topic("a", 3, 2)
    value = "x" * 10_000
    for number in range(200):
        controller.journal.commit(
            [{"type": "broker_configs", "name": "9", "configs": {"k": value + str(number)}}]
        )
    file.close()
    assert path.stat().st_size < 1_000_000
    again = make_controller(brokers=0, replay=path.read_bytes())
    assert list(again.image.topics) == ["a"]
    assert again.image.broker_configs["9"]["k"] == value + "199"
