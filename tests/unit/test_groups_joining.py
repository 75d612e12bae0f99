"""Joining a group: what a coordinator may not ask of a member."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.config_client import CLIENT_CONFIGS
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.consumer.groups.assignors import assignors_named
from fairlead_kafka.consumer.groups.joining import Joining
from fairlead_kafka.wire import Message


@pytest.mark.parametrize("name", ["sticky", "", None])
def test_a_leader_that_is_to_share_by_what_it_did_not_offer_says_so(name: str | None) -> None:
    settings = CLIENT_CONFIGS.parse("consumer", {"bootstrap.servers": "b:1", "group.id": "g"})
    answer = Message(
        member_id="m", leader="m", generation_id=1, protocol_name=name, members=[], skip_assignment=False
    )

    def ask(*_: Any) -> Any:
        yield []
        return answer, 0

    calls: Any = SimpleNamespace(group_id="g", ask=ask)
    script = Joining(settings, calls, assignors_named(("range",)), None).join(("t",), (), lambda: True)
    next(script)
    with pytest.raises(BrokerError, match="which this member did not offer") as caught:
        next(script)
    assert caught.value.code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
