"""What `fairlead consume --share` says of where a group begins, and of why nothing comes."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead_kafka.admin import ConfigEntry, ConfigSource, ShareGroupDescription, ShareGroupMember
from fairlead_kafka.admin.share_group_items import SharePartitionOffset
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.cli.share import begin_group, explain_wait
from fairlead_kafka.client import ConfigChange, ConfigResource

RESET = "share.auto.offset.reset"
OF = TopicPartition("t", 0)
GROUP = ConfigResource.group("g")


class Answers:
    """An admin client of a cluster of one share group."""

    def __init__(self, **given: Any) -> None:
        self.offsets: dict[TopicPartition, SharePartitionOffset] = {}
        self.reset = "latest"
        self.assignment: tuple[TopicPartition, ...] = ()
        self.topics = ["t"]
        self.altered: dict[ConfigResource, list[ConfigChange]] = {}
        self.__dict__.update(given)

    def alter_configs(self, changes: dict[ConfigResource, list[ConfigChange]]) -> None:
        self.altered.update(changes)

    def list_share_group_offsets(self, groups: list[str]) -> Any:
        return dict.fromkeys(groups, self.offsets)

    def describe_configs(self, resources: list[ConfigResource]) -> Any:
        entry = ConfigEntry(RESET, self.reset, ConfigSource.DEFAULT, False, False)
        return {one: {RESET: entry} for one in resources}

    def describe_share_groups(self, groups: list[str]) -> Any:
        member = ShareGroupMember("m", "", "", None, 1, ("t",), self.assignment)
        return {
            name: ShareGroupDescription(name, "Stable", None, (member,), "simple", 1, 1, None)
            for name in groups
        }

    def list_topics(self, include_internal: bool) -> list[str]:
        assert include_internal
        return self.topics


class Refused(Answers):
    """An admin client whose user may ask nothing."""

    def list_share_group_offsets(self, groups: list[str]) -> Any:
        raise BrokerError(30, "not authorized")

    describe_share_groups = list_share_group_offsets


def began(capsys: pytest.CaptureFixture[str], admin: Any, from_beginning: bool = False) -> str:
    begin_group(admin, "g", "t", from_beginning)
    return capsys.readouterr().err


def test_a_new_group_is_told_where_it_begins(capsys: pytest.CaptureFixture[str]) -> None:
    assert began(capsys, Answers()) == (
        f"share group g begins in t ({RESET}=latest) with what comes from now on; --from-beginning has it "
        "begin with the first record\n"
    )
    begins = f"share group g begins in t ({RESET}=earliest) with the first record\n"
    assert began(capsys, Answers(reset="earliest")) == begins
    assert began(capsys, Answers(reset="by_duration:PT1H")) == (
        f"share group g begins in t ({RESET}=by_duration:PT1H) where that says\n"
    )


def test_from_beginning_sets_the_config_of_the_group(capsys: pytest.CaptureFixture[str]) -> None:
    admin = Answers()
    assert "with the first record" in began(capsys, admin, from_beginning=True)
    assert admin.altered == {GROUP: [ConfigChange.set(RESET, "earliest")]}


def test_a_group_that_has_begun_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    admin = Answers(
        offsets={
            OF: SharePartitionOffset(0, 5, 0),
            OF._replace(topic="u"): SharePartitionOffset(-1, None, -1),
        }
    )
    assert began(capsys, admin) == ""
    assert "goes on where it was" in began(capsys, admin, from_beginning=True)
    assert "with what comes from now on" in began(
        capsys, Answers(offsets={OF: SharePartitionOffset(-1, None, -1)})
    )


def test_who_may_not_ask_is_told_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert began(capsys, Refused()) == ""
    explain_wait(Refused(), "g", "t")  # type: ignore[arg-type]
    assert capsys.readouterr().err == ""


def test_a_group_without_partitions_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    explain_wait(Answers(assignment=(OF,)), "g", "t")  # type: ignore[arg-type]
    assert capsys.readouterr().err == ""
    explain_wait(Answers(topics=["t", "__share_group_state"]), "g", "t")  # type: ignore[arg-type]
    assert capsys.readouterr().err == "share group g has no partition of t yet\n"
    explain_wait(Answers(), "g", "t")  # type: ignore[arg-type]
    assert "need share.coordinator.state.topic.replication.factor=1" in capsys.readouterr().err
