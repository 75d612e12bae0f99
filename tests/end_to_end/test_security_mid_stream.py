"""What happens to who is let in no more: users that go, tokens that end, rights that are withdrawn,
certificates that are renewed."""

from __future__ import annotations

import contextlib
import http.server
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fairlead_kafka import (
    AclResourceType,
    Admin,
    AuthenticationFailed,
    BrokerError,
    Cluster,
    Consumer,
    FairleadError,
    NewTopic,
    Producer,
    ScramMechanism,
    TopicPartition,
    UserScramCredentialDeletion,
)
from fairlead_kafka.security import jwks
from fairlead_kafka.testing.certificates import Certificates
from fairlead_kafka.testing.reserved_port import ReservedPort
from tests.support.secured_cluster import SESSION_MS, USER, SecuredCluster, secured_cluster
from tests.support.waiting import PATIENCE_S, until

TOLD_WITHIN_S = SESSION_MS / 1000 + 10
"""A session is renewed before it ends, and a refusal is told at once; the rest is for a machine
that is busy."""


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredCluster]:
    with secured_cluster(tmp_path_factory.mktemp("security")) as running:
        yield running


def create(secured: SecuredCluster, topic: str) -> None:
    with secured.admin() as admin:
        admin.create_topics([NewTopic(topic, partitions=1)])


def send_until_refused(
    producer: Producer, topic: str, refused: type[FairleadError], then: Callable[[], None]
) -> tuple[list[bytes], float, str]:
    """Send one by one; after 20 have arrived `then` happens. What was acknowledged, how long the
    rest took, and why the end came."""
    acked: list[bytes] = []
    happened_s = None
    deadline_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline_s:
        value = b"%d" % len(acked)
        try:
            producer.send(topic, value).result(timeout_s=PATIENCE_S)
        except refused as error:
            if happened_s is None:
                raise
            return acked, time.monotonic() - happened_s, str(error)
        acked.append(value)
        if len(acked) == 20:
            then()
            happened_s = time.monotonic()
    raise AssertionError("never refused")


def delete_user(secured: SecuredCluster, name: str) -> None:
    with secured.admin() as admin:
        admin.alter_user_scram_credentials([UserScramCredentialDeletion(name, ScramMechanism.SCRAM_SHA_256)])


def test_a_user_who_is_deleted_is_told_so_when_his_session_is_renewed(secured: SecuredCluster) -> None:
    settings = secured.user("SHORT", "leaver")
    create(secured, "left")
    with Producer(settings) as producer, Consumer({**settings, "auto.offset.reset": "earliest"}) as consumer:
        consumer.assign([TopicPartition("left", 0)])
        acked, took_s, said = send_until_refused(
            producer, "left", AuthenticationFailed, lambda: delete_user(secured, "leaver")
        )
        assert "refused the log-in by SCRAM-SHA-256: Authentication failed" in said
        assert took_s < TOLD_WITHIN_S
        with pytest.raises(AuthenticationFailed, match="refused the log-in by SCRAM-SHA-256"):
            list(iter(lambda: consumer.poll(timeout_s=PATIENCE_S), []))
        print(f"BADDAY user deleted {took_s:.2f}")
    assert secured.read("left", len(acked)) == acked, (
        "nothing acknowledged is lost, and nothing refused is there"
    )


def test_a_user_who_comes_back_goes_on_with_the_same_client(secured: SecuredCluster) -> None:
    settings = secured.user("SHORT", "returner")
    create(secured, "returned")
    with Producer(settings) as producer:
        acked, *_ = send_until_refused(
            producer, "returned", AuthenticationFailed, lambda: delete_user(secured, "returner")
        )
        secured.user("SHORT", "returner")
        sent: list[bool] = []

        def sends() -> bool:
            with contextlib.suppress(AuthenticationFailed):
                sent.append(bool(producer.send("returned", b"back").result(timeout_s=PATIENCE_S)))
            return bool(sent)

        until(sends)
    assert secured.read("returned", len(acked) + 1) == [*acked, b"back"]


def test_librdkafka_hears_of_a_deleted_user_too(secured: SecuredCluster) -> None:
    confluent_kafka = pytest.importorskip("confluent_kafka")
    ours = secured.user("SHORT", "rd-leaver")
    create(secured, "rd-left")
    settings = {key: value for key, value in ours.items() if not key.startswith("ssl.")} | {
        "ssl.ca.location": str(secured.certificates.trust)
    }
    told: list[int] = []
    acked: list[bytes] = []
    producer = confluent_kafka.Producer(
        {**settings, "error_cb": lambda error: told.append(error.code()), "log_level": 0}
    )

    def delivered(error: Any, message: Any) -> None:
        if error is None:
            acked.append(message.value())

    def sends() -> bool:
        producer.produce("rd-left", b"v", on_delivery=delivered)
        producer.poll(0.01)
        return confluent_kafka.KafkaError._AUTHENTICATION in told

    until(lambda: sends() or len(acked) > 20)
    # (That a session ended within a pause of a second is told as a lost connection.)
    assert confluent_kafka.KafkaError._AUTHENTICATION not in told
    delete_user(secured, "rd-leaver")
    until(sends)
    producer.purge()
    producer.flush(PATIENCE_S)
    assert len(secured.read("rd-left", len(acked))) >= len(acked)


def test_a_token_that_ends_while_its_provider_fails_is_told_in_the_providers_words(
    secured: SecuredCluster,
) -> None:
    create(secured, "tokens")
    fails = threading.Event()

    def provider() -> tuple[str, float]:
        if fails.is_set():
            raise RuntimeError("the vault is sealed")
        expires_s = int(time.time()) + 4
        return secured.tokens.issue(USER, exp=expires_s), expires_s

    settings = secured.settings("SASLTLS") | {
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.token.provider": provider,
    }
    with Producer(settings) as producer:
        acked, took_s, said = send_until_refused(producer, "tokens", FairleadError, fails.set)
        print(f"BADDAY token ends {took_s:.2f} {said}")
        assert "the vault is sealed" in said
        assert took_s < TOLD_WITHIN_S + 4
        fails.clear()
        sent: list[bool] = []

        def sends() -> bool:
            with contextlib.suppress(FairleadError):
                sent.append(bool(producer.send("tokens", b"open again").result(timeout_s=PATIENCE_S)))
            return bool(sent)

        until(sends)
    assert secured.read("tokens", len(acked) + 1) == [*acked, b"open again"]


class _Keys(http.server.BaseHTTPRequestHandler):
    """Serves the keys that tokens are signed with."""

    keys = b""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.keys)

    def log_message(self, *_: object) -> None:
        """Nothing."""


def test_keys_that_cannot_be_had_at_first_are_asked_for_again(
    secured: SecuredCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end point is asked again after `jwks.ASK_AGAIN_S` at the soonest: ten seconds, and one
    here."""
    monkeypatch.setattr(jwks, "ASK_AGAIN_S", 1.0)
    key = "listener.name.sasl.oauthbearer.sasl.oauthbearer.jwks.endpoint.url"
    with (
        ReservedPort() as port,
        secured_cluster(tmp_path, config={key: f"http://127.0.0.1:{port.number}/keys"}) as late,
    ):
        _Keys.keys = Path(late.tokens.jwks_url.removeprefix("file://")).read_bytes()
        provider = {
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.token.provider": lambda: late.tokens.issue(USER),
        }
        with Admin(late.settings("SASL") | provider) as admin:
            began_s = time.monotonic()
            with pytest.raises(FairleadError, match="could not look at it, and its log says why"):
                admin.list_topics(timeout_s=PATIENCE_S)
            print(f"BADDAY jwks down {time.monotonic() - began_s:.2f}")
            with http.server.ThreadingHTTPServer(("127.0.0.1", port.number), _Keys) as server:
                threading.Thread(target=server.serve_forever, daemon=True).start()
                try:

                    def works() -> bool:
                        with contextlib.suppress(FairleadError):
                            return admin.list_topics(timeout_s=PATIENCE_S) is not None
                        return False

                    until(works)
                    print(f"BADDAY jwks back {time.monotonic() - began_s:.2f}")
                finally:
                    server.shutdown()
        with Admin(late.settings("SASLTLS") | provider) as other:
            assert other.list_topics() is not None, "another listener has keys of its own"


def test_a_right_to_write_that_is_withdrawn_is_told_at_once(secured: SecuredCluster) -> None:
    settings = secured.user("SASL")
    create(secured, "withdrawn")
    with Producer(settings) as producer:
        acked, took_s, said = send_until_refused(
            producer,
            "withdrawn",
            BrokerError,
            lambda: secured.only_for_others(AclResourceType.TOPIC, "withdrawn"),
        )
        assert "topic 'withdrawn': not authorized for the topic" in said
        assert took_s < TOLD_WITHIN_S
        assert producer.send("still-open", b"others go on").result(timeout_s=PATIENCE_S).offset == 0
    assert secured.read("withdrawn", len(acked)) == acked


@pytest.mark.parametrize("kind", [AclResourceType.TOPIC, AclResourceType.GROUP])
def test_a_right_to_read_that_is_withdrawn_is_told_to_who_reads(
    secured: SecuredCluster, kind: AclResourceType
) -> None:
    topic = group = f"read-{kind.name.lower()}"
    create(secured, topic)
    code = 29 if kind is AclResourceType.TOPIC else 30
    """Of a group it is told when offsets are committed."""
    more = {
        "group.id": group,
        "auto.offset.reset": "earliest",
        "heartbeat.interval.ms": 200,
        "fetch.max.wait.ms": 200,
    }
    with (
        Producer({"bootstrap.servers": secured.plaintext}) as producer,
        Consumer({**secured.user("SASL"), **more}) as consumer,
    ):
        producer.send(topic, b"before").result(timeout_s=PATIENCE_S)
        consumer.subscribe([topic])
        assert [record.value for record in consumer.poll(timeout_s=PATIENCE_S)] == [b"before"]
        secured.only_for_others(kind, topic)
        began_s = time.monotonic()
        with pytest.raises(BrokerError, match="not authorized") as raised:
            (
                lambda: (
                    consumer.poll(timeout_s=PATIENCE_S)
                    if kind is AclResourceType.TOPIC
                    else consumer.commit()
                )
            )()
        assert raised.value.code == code
        assert time.monotonic() - began_s < TOLD_WITHIN_S
        print(f"BADDAY read right {kind.name} {time.monotonic() - began_s:.2f} {raised.value}")
        with contextlib.suppress(FairleadError):
            consumer.close()


@pytest.mark.parametrize("kind", [AclResourceType.TOPIC, AclResourceType.TRANSACTIONAL_ID])
def test_a_right_that_is_withdrawn_in_a_transaction_aborts_it(
    secured: SecuredCluster, kind: AclResourceType
) -> None:
    topic = f"in-transaction-{kind.name.lower().replace('_', '-')}"
    create(secured, topic)
    with Producer({**secured.user("SASL"), "transactional.id": topic}) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, b"whole").result(timeout_s=PATIENCE_S)
        producer.commit_transaction()
        producer.begin_transaction()
        producer.send(topic, b"half").result(timeout_s=PATIENCE_S)
        secured.only_for_others(kind, topic)
        with pytest.raises(BrokerError, match="not authorized") as raised:
            (
                lambda: (
                    producer.send(topic, b"h").result(timeout_s=PATIENCE_S)
                    if kind is AclResourceType.TOPIC
                    else producer.commit_transaction()
                )
            )()
        print(f"BADDAY transaction {kind.name} {raised.value}")
        with contextlib.suppress(FairleadError):
            producer.close()
    assert secured.read(topic, 1) == [b"whole"]


def test_a_renewed_certificate_is_shown_to_the_next_connection(secured: SecuredCluster) -> None:
    create(secured, "renewed-certificate")

    def shown() -> bytes:
        host, port = secured.settings("TLS")["bootstrap.servers"].split(":")
        context = ssl.create_default_context(cafile=str(secured.certificates.trust))
        with (
            socket.create_connection((host, int(port))) as plain,
            context.wrap_socket(plain, server_hostname=host) as sock,
        ):
            found = sock.getpeercert(binary_form=True)
            assert found is not None
            return found

    before, kept = shown(), secured.identity.read_bytes()
    with Producer(secured.settings("TLS")) as producer:
        producer.send("renewed-certificate", b"1").result(timeout_s=PATIENCE_S)
        secured.identity.write_bytes(kept[: len(kept) // 2])
        assert shown() == before, "a half-written file is no harm"
        secured.identity.write_bytes(secured.certificates.issue("localhost", "127.0.0.1").read_bytes())
        assert shown() != before
        producer.send("renewed-certificate", b"2").result(timeout_s=PATIENCE_S)
        with Producer(secured.settings("TLS")) as other:
            other.send("renewed-certificate", b"3").result(timeout_s=PATIENCE_S)


def test_brokers_in_processes_are_killed_over_tls_and_log_ins_with_a_transaction_open() -> None:
    config = {
        "default.replication.factor": 3,
        "min.insync.replicas": 2,
        "connections.max.reauth.ms": SESSION_MS,
    }
    with Cluster(3, processes=True, security="sasl_ssl", config=config) as cluster:
        cluster.create_topic("killed", partitions=3)
        settings = cluster.client_settings("alice")
        slow = {"transactional.id": "killed", "transaction.timeout.ms": 600_000}  # over three starts
        with Producer({**settings, **slow}) as producer:
            producer.init_transactions()
            producer.begin_transaction()
            expected = []
            for node_id in range(3):
                values = [b"%d-%d" % (node_id, number) for number in range(50)]
                reports = [producer.send("killed", value) for value in values]
                cluster.broker(node_id).kill()
                assert all(report.result(timeout_s=PATIENCE_S) for report in reports)
                cluster.broker(node_id).start()
                expected += values
            producer.commit_transaction()
        committed = {
            "group.id": "killed",
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
        }
        with Consumer({**settings, **committed}) as consumer:
            consumer.subscribe(["killed"])
            found: list[bytes] = []
            while len(found) < len(expected):
                got = consumer.poll(timeout_s=PATIENCE_S)
                assert got
                found += [record.value or b"" for record in got]
        assert sorted(found) == sorted(expected)


def test_a_foreign_authority_makes_no_broker_trusted(tmp_path: Path) -> None:
    """Brokers of one cluster believe only the authority that they were given: one that shows
    another certificate is not reached."""
    other = Certificates(tmp_path)
    with Cluster(
        2,
        security="ssl",
        config={"ssl.keystore.location": str(other.issue("127.0.0.1")), "default.replication.factor": 2},
    ) as cluster:
        cluster.create_topic("apart", partitions=1, replication_factor=2)
        settings = cluster.client_settings() | {
            "ssl.truststore.location": str(other.trust),
            "acks": "all",
            "delivery.timeout.ms": 3_000,
        }
        with Producer({**settings, "request.timeout.ms": 1_000}) as producer, pytest.raises(FairleadError):
            producer.send("apart", b"v").result(timeout_s=PATIENCE_S)
