"""Calls about transactions that Ctrl-C ends, and what may follow them."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead_kafka.base.errors import TimedOut, UsageError
from fairlead_kafka.producer.transaction_states import TransactionState
from tests.support.transaction_rig import SOURCE, Scene
from tests.support.virtual_hosting import VirtualHosted


@pytest.fixture
def scene() -> Scene:
    return Scene()


CALLS = ["init_transactions", "begin_transaction", "commit_transaction", "abort_transaction"]


@pytest.mark.parametrize("name", [*CALLS, "prepare_transaction"])
def test_an_interrupted_call_is_gone_on_with_by_the_same_call(
    scene: Scene, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = scene.producer
    if name != "init_transactions":
        producer.init_transactions()
    if name not in ("init_transactions", "begin_transaction"):
        producer.begin_transaction()
        producer.send("t", b"a", partition=0)
    for ended in (False, True):  # before the second call, or only with it
        with monkeypatch.context() as patch:
            patch.setattr(VirtualHosted, "wait", interrupted)
            with pytest.raises(KeyboardInterrupt):
                getattr(producer, name)()
        if ended:
            scene.rig.host.advance(1000)
    if name in ("commit_transaction", "abort_transaction"):
        with pytest.raises(UsageError, match=f"begin_transaction cannot be called now: {name} was not wait"):
            producer.begin_transaction()
    getattr(producer, name)()
    if name == "prepare_transaction":
        return
    if name == "begin_transaction":
        producer.send("t", b"a", partition=0)
        producer.commit_transaction()
    scene.transact(b"b")
    assert scene.committed()[0] == ([b"a", b"b"] if name in CALLS[1:3] else [b"b"])


@pytest.mark.parametrize("commit", [True, False])
def test_an_interrupted_begin_may_be_given_up(
    scene: Scene, commit: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = scene.producer
    producer.init_transactions()
    with monkeypatch.context() as patch:
        patch.setattr(VirtualHosted, "wait", interrupted)
        with pytest.raises(KeyboardInterrupt), producer.transaction():
            pass
    with pytest.raises(UsageError, match="no transaction is open"):
        producer.send("t", b"lost")
    (producer.commit_transaction if commit else producer.abort_transaction)()
    scene.transact(b"a")
    assert scene.committed()[0] == [b"a"]


def test_an_abort_that_is_refused_does_not_hide_the_commit_before_it(scene: Scene) -> None:
    producer = scene.producer
    producer.init_transactions()
    producer.begin_transaction()
    producer.send("t", b"a", partition=0).result(10)
    with pytest.raises(TimedOut):
        producer.commit_transaction(timeout_s=0)
    with pytest.raises(UsageError, match="commit_transaction has not ended"):
        producer.abort_transaction()
    scene.rig.host.run_until(lambda: scene.state() is TransactionState.READY, 10_000)
    with pytest.raises(UsageError, match="no transaction is open"):
        producer.abort_transaction()
    producer.commit_transaction()
    assert scene.committed()[0] == [b"a"]


def test_interrupted_offsets_leave_the_transaction_to_be_ended(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = scene.producer
    producer.init_transactions()
    for commit in (False, True):
        producer.begin_transaction()
        with monkeypatch.context() as patch:
            patch.setattr(VirtualHosted, "wait", interrupted)
            with pytest.raises(KeyboardInterrupt):
                producer.send_offsets_to_transaction({SOURCE: 1}, "group")
        (producer.commit_transaction if commit else producer.abort_transaction)()
        assert scene.coordinator.offsets == ({"group": {SOURCE: 1}} if commit else {})


def interrupted(*_: Any) -> None:
    raise KeyboardInterrupt
