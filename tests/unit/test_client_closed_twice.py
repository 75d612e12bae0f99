"""A client that is closed while another thread closes it: that one is left to go on."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead_kafka.client.admin import Admin
from fairlead_kafka.client.consumer import Consumer
from fairlead_kafka.client.share_consumer import ShareConsumer
from tests.support.fake_share_group import GROUP
from tests.support.share_rig import Sharing


@pytest.mark.parametrize("kind", [Consumer, ShareConsumer, Admin])
def test_a_second_close_leaves_the_first_what_it_needs(kind: Any) -> None:
    rig = Sharing()
    more = {"group_id": GROUP} if kind is ShareConsumer else {}
    client = kind(rig.config(**more), opener=rig.opener)
    client.connect()
    calls = getattr(client._calls, "performing", client._calls)
    first = calls.close()
    wait = next(first)
    client.close()
    answer = calls.host.wait(wait.completion, wait.timeout_s)
    with pytest.raises(StopIteration):
        first.send(answer)
    assert not rig.opener.hosted[0].handle.ended
    client.close()
    assert rig.opener.hosted[0].handle.ended
