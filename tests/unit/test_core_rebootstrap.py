"""When a client goes back to its bootstrap servers (KIP-899, KIP-1102), and when it does not; in
virtual time."""

from __future__ import annotations

import pytest

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.config_client import CLIENT_CONFIGS
from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.wire import ApiKey
from tests.support.fake_broker import Client, FakeBroker, Scene, metadata_message

TRIGGER_MS = 10_000
OLD, NEW = {0: ("old", 1)}, {0: ("new", 1)}


class Moved:
    """A cluster whose one broker is at old:1 at first. `seed` is where clients begin."""

    def __init__(self, **configs: object) -> None:
        self.nodes = OLD
        self.seed, self.old, self.new = (FakeBroker(host, 1) for host in ("seed", "old", "new"))
        for broker in (self.seed, self.old, self.new):
            broker.answers[ApiKey.METADATA] = lambda request: metadata_message(self.nodes)
        client = Client(
            bootstrap_servers="seed:1",
            metadata_recovery_rebootstrap_trigger_ms=TRIGGER_MS,
            metadata_max_age_ms=1_000,
            **configs,
        )
        self.scene = Scene(client, self.seed, self.old, self.new, latency_ms=1)
        self.scene.until_ready(0)
        self.scene.host.advance(600_000)  # the bootstrap connection is idle, and closed
        self.asked = len(self.seed.asked(ApiKey.METADATA))
        assert self.seed.closed == self.seed.connections

    def move(self) -> None:
        """The cluster is elsewhere from now on; who is at the old address takes what it is sent."""
        self.nodes = NEW
        self.old.silent = True

    @property
    def host_name(self) -> str:
        """Where the client thinks that broker 0 is; empty: it knows no such broker."""
        node = self.scene.network.metadata.nodes.get(0)
        return "" if node is None else node.host

    def seconds_until_new(self) -> float:
        """Move, and see how long it takes until the client has found the broker again."""
        before_ms = self.scene.now_ms()
        self.move()
        self.scene.host.run_until(lambda: self.host_name == "new", timeout_ms=600_000)
        return (self.scene.now_ms() - before_ms) / 1000


def test_brokers_that_give_no_metadata_are_forgotten_after_the_trigger() -> None:
    moved = Moved(request_timeout_ms=120_000)
    assert TRIGGER_MS / 1000 <= moved.seconds_until_new() <= TRIGGER_MS / 1000 + 1.5, "after it was due"
    assert moved.old.closed == moved.old.connections
    moved.scene.do(lambda network: network.connect(0))
    moved.scene.host.run_until(lambda: moved.scene.network.ready(0))


def test_time_counts_from_the_first_metadata_that_did_not_come() -> None:
    """Also when several requests for it fail meanwhile."""
    moved = Moved(request_timeout_ms=3_000)
    moved.seed.silent = True  # so that the way back by KIP-899 leads nowhere
    moved.move()
    moved.scene.host.advance(TRIGGER_MS - 1_500)
    assert moved.host_name == "old"
    moved.scene.host.advance(3_000)
    assert moved.host_name == "", "nobody is known any more"
    moved.seed.silent = False
    moved.scene.host.run_until(lambda: moved.host_name == "new", timeout_ms=60_000)


def test_brokers_that_cannot_be_reached_need_no_trigger() -> None:
    moved = Moved()
    moved.nodes = NEW
    moved.scene.host.submit(moved.scene.brokers[1][1], moved.old.hang_up())
    moved.scene.host.link(moved.scene.handle, moved.scene.brokers[1][1]).cut()
    moved.scene.host.run_until(lambda: moved.host_name == "new", timeout_ms=60_000)


def test_a_broker_may_ask_for_it() -> None:
    moved = Moved()
    refusal = metadata_message({})
    refusal.error_code = ErrorCode.REBOOTSTRAP_REQUIRED
    moved.old.answers[ApiKey.METADATA] = lambda request: refusal
    moved.nodes = NEW
    before_ms = moved.scene.now_ms()
    moved.scene.host.run_until(lambda: moved.host_name == "new", timeout_ms=60_000)
    assert moved.scene.now_ms() - before_ms < 2_500
    assert {request.version for request in moved.old.asked(ApiKey.METADATA)} == {13}


def test_with_the_strategy_none_bootstrap_servers_are_asked_at_the_start_alone() -> None:
    moved = Moved(metadata_recovery_strategy="none", request_timeout_ms=3_000)
    refusal = metadata_message({})
    refusal.error_code = ErrorCode.REBOOTSTRAP_REQUIRED
    moved.old.answers[ApiKey.METADATA] = lambda request: refusal
    moved.scene.host.advance(2_000)
    assert moved.host_name == "old"
    moved.move()
    moved.scene.host.advance(10 * TRIGGER_MS)
    assert moved.host_name == "old"
    assert len(moved.seed.asked(ApiKey.METADATA)) == moved.asked
    moved.old.silent = False
    moved.old.answers[ApiKey.METADATA] = lambda request: metadata_message(moved.nodes)
    moved.scene.host.run_until(lambda: moved.host_name == "new", timeout_ms=60_000)


@pytest.mark.parametrize("scope", ["producer", "consumer", "share consumer", "admin"])
def test_every_client_has_the_configs_and_javas_defaults(scope: str) -> None:
    given = {"bootstrap.servers": "a:1"} | ({"group.id": "g"} if "consumer" in scope else {})
    settings = CLIENT_CONFIGS.parse(scope, given)
    assert settings["metadata.recovery.strategy"] == "rebootstrap"
    assert settings["metadata.recovery.rebootstrap.trigger.ms"] == 300_000
    with pytest.raises(ConfigError, match="rebootstrap, none"):
        CLIENT_CONFIGS.parse(scope, {**given, "metadata.recovery.strategy": "never"})
