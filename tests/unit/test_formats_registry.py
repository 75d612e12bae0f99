"""A Schema Registry: what is asked of it, whom it lets in, and that the tests' own answers
confluent-kafka's client as Confluent's does."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient, SchemaRegistryError

from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.formats import RegistryFailed, SchemaReference, SchemaRegistry, UnknownSchema
from fairlead_kafka.formats import registry as registry_module
from tests.support.schema_registry import FakeRegistry, schema_registry

VISIT = {"type": "record", "name": "Visit", "fields": [{"name": "host", "type": "string"}]}
NEXT = {"type": "record", "name": "Visit", "fields": [*VISIT["fields"], {"name": "n", "type": "int"}]}
FAST = {"max.retries": 0, "timeout": 5}


@pytest.fixture
def running() -> Iterator[FakeRegistry]:
    with schema_registry() as registry:
        yield registry


def asking(running: FakeRegistry, **more: Any) -> SchemaRegistry:
    return SchemaRegistry({"url": running.url, **FAST, **more})


def test_a_schema_is_registered_once_and_found_by_subject_id_and_guid(running: FakeRegistry) -> None:
    with asking(running) as registry:
        made = registry.register("visits-value", "AVRO", json.dumps(VISIT))
        again = registry.register("visits-value", "AVRO", json.dumps(VISIT))
        assert made.schema_id == again.schema_id == 1
        assert made.guid is not None
        assert registry.by_id(1).text == registry.by_guid(made.guid).text == json.dumps(VISIT)
        assert registry.latest("visits-value").version == 1
        assert registry.lookup("visits-value", "AVRO", json.dumps(VISIT)).schema_id == 1
        with pytest.raises(UnknownSchema, match=r"under the subject visits-value, is not in the Schema Reg"):
            registry.lookup("visits-value", "AVRO", json.dumps(NEXT))
        with pytest.raises(UnknownSchema, match="schema id 7 is not in the Schema Registry"):
            registry.by_id(7)


def test_compatibility_is_asked_and_told(running: FakeRegistry) -> None:
    with asking(running) as registry:
        registry.register("visits-value", "AVRO", json.dumps(VISIT))
        assert not registry.is_compatible("visits-value", "AVRO", json.dumps(NEXT))
        with pytest.raises(RegistryFailed, match=r"refused to register a schema .*incompatible"):
            registry.register("visits-value", "AVRO", json.dumps(NEXT))
        assert registry.compatibility("visits-value") == "BACKWARD"
        registry.set_compatibility("visits-value", "NONE")
        assert registry.compatibility("visits-value") == "NONE"
        assert registry.is_compatible("visits-value", "AVRO", json.dumps(NEXT))
        assert registry.register("visits-value", "AVRO", json.dumps(NEXT)).schema_id == 2


def test_schemas_that_are_the_same_but_for_their_layout_are_one_if_normalized(running: FakeRegistry) -> None:
    turned = json.dumps(dict(reversed(VISIT.items())))
    with asking(running) as registry:
        ids = [
            registry.register("a", "AVRO", text, normalize=True).schema_id
            for text in (json.dumps(VISIT), turned)
        ]
        assert ids == [1, 1]
    with asking(running) as registry:
        assert registry.register("b", "AVRO", json.dumps(VISIT)).schema_id == 2


def test_schemas_come_with_those_they_refer_to_innermost_first(running: FakeRegistry) -> None:
    inner = {"type": "record", "name": "Inner", "fields": [{"name": "x", "type": "int"}]}
    middle = {"type": "record", "name": "Middle", "fields": [{"name": "inner", "type": "Inner"}]}
    outer = {"type": "record", "name": "Outer", "fields": [{"name": "m", "type": "Middle"}]}
    running.register("inner", inner)
    running.register("middle", middle, [{"name": "Inner", "subject": "inner", "version": 1}])
    with asking(running) as registry:
        made = registry.register("outer", "AVRO", json.dumps(outer), [SchemaReference("Middle", "middle", 1)])
        names = ("Inner", "Middle")
        assert tuple(name for name, _ in made.imports) == names
        assert tuple(name for name, _ in registry.latest("outer").imports) == names


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ({"name": "X"}, r"without saying which: name 'X', subject None, version None"),
        ({"name": "X", "subject": 5, "version": 1}, r"without saying which: name 'X', subject 5, version 1"),
        ({"subject": "s", "version": 1}, r"without saying which: name None, subject 's', version 1"),
        (
            {"name": "X", "subject": "a", "version": 1},
            r"refers to version 1 of the subject a in a circle",
        ),
    ],
)
def test_references_that_lead_nowhere_or_in_a_circle_are_the_registry_s_fault(
    running: FakeRegistry, reference: dict[str, Any], said: str
) -> None:
    running.register("a", VISIT, [reference])
    with asking(running) as registry, pytest.raises(RegistryFailed, match=said):
        registry.by_id(1)


def test_references_are_counted(running: FakeRegistry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry_module, "REFERENCES_MAX", 3)
    for n in range(4):
        running.register(f"s{n}", record_of(n))
    references = [{"name": f"R{n}", "subject": f"s{n}", "version": 1} for n in range(4)]
    running.register("three", record_of(5), references[:3])
    running.register("four", record_of(6), references)
    with asking(running) as registry:
        assert len(registry.latest("three").imports) == 3
        with pytest.raises(RegistryFailed, match=r"or 3 in all"):
            registry.latest("four")


def record_of(n: int) -> dict[str, Any]:
    return {"type": "record", "name": f"R{n}", "fields": []}


def test_a_schema_that_is_no_text_is_the_registry_s_fault(
    running: FakeRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "answer", lambda *_: (200, {"schema": 5}))
    with (
        asking(running) as registry,
        pytest.raises(RegistryFailed, match=r"gave schema id 1 as int, not"),
    ):
        registry.by_id(1)


def test_users_and_tokens_are_shown_and_references_to_secrets_resolved(
    running: FakeRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REGISTRY_PASSWORD", "s3cret")
    running.register("a", VISIT)
    running.user_info = "ann:s3cret"
    with asking(running, **{"basic.auth.user.info": "ann:${env:REGISTRY_PASSWORD}"}) as registry:
        assert registry.latest("a").schema_id == 1
    with (
        asking(running, **{"basic.auth.user.info": "ann:wrong"}) as registry,
        pytest.raises(RegistryFailed, match=r"refused the subject a .*check basic\.auth\.user\.info"),
    ):
        registry.latest("a")
    running.user_info, running.token = None, "tok"
    bearer = {
        "bearer.auth.credentials.source": "STATIC_TOKEN",
        "bearer.auth.token": "${env:REGISTRY_TOKEN}",
        "bearer.auth.logical.cluster": "lsrc-1",
        "bearer.auth.identity.pool.id": "pool-1",
    }
    monkeypatch.setenv("REGISTRY_TOKEN", "tok")
    with asking(running, **bearer) as registry:
        assert registry.latest("a").schema_id == 1


def test_certificates_are_shown_and_asked_for(tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    client = authority.issue_cert("ann@example.com")
    client.private_key_pem.write_to_path(tmp_path / "key.pem")
    client.cert_chain_pems[0].write_to_path(tmp_path / "cert.pem")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.configure_trust(context)
    context.verify_mode = ssl.CERT_REQUIRED
    trust = {"ssl.ca.location": str(tmp_path / "ca.pem")}
    shown = {
        "ssl.certificate.location": str(tmp_path / "cert.pem"),
        "ssl.key.location": str(tmp_path / "key.pem"),
    }
    with schema_registry(context) as running:
        running.register("a", VISIT)
        with asking(running, **trust, **shown) as registry:
            assert registry.latest("a").schema_id == 1
        for settings in (trust, {}):
            with (
                asking(running, **settings) as registry,
                pytest.raises(RegistryFailed, match="gave no answer"),
            ):
                registry.latest("a")


def test_settings_that_cannot_be_are_told() -> None:
    with pytest.raises(ConfigError, match=r"settings of the Schema Registry: .*nonsense"):
        SchemaRegistry({"url": "http://localhost", "nonsense": "1"})
    with pytest.raises(ConfigError, match="NO_SUCH_VARIABLE"):
        SchemaRegistry({"url": "http://localhost", "basic.auth.user.info": "${env:NO_SUCH_VARIABLE}"})


def test_confluent_s_client_finds_in_the_tests_registry_what_it_expects(running: FakeRegistry) -> None:
    with SchemaRegistryClient({"url": running.url, **FAST}) as client:
        first = client.register_schema_full_response("a", Schema(json.dumps(VISIT), "AVRO"))
        assert (first.schema_id, client.get_subjects()) == (1, ["a"])
        assert first.guid is not None
        latest = client.get_latest_version("a")
        assert (latest.schema_id, latest.version, latest.guid) == (1, 1, first.guid)
        assert client.get_schema(1).schema_str == client.get_schema_by_guid(first.guid).schema_str
        assert client.lookup_schema("a", Schema(json.dumps(VISIT), "AVRO")).version == 1
        assert not client.test_compatibility("a", Schema(json.dumps(NEXT), "AVRO"))
        assert not client.test_compatibility_all_versions("a", Schema(json.dumps(NEXT), "AVRO"))
        for call, code in (
            (lambda: client.get_version("a", 9), 40402),
            (lambda: client.get_version("b", 1), 40401),
            (lambda: client.lookup_schema("a", Schema(json.dumps(NEXT), "AVRO")), 40403),
            (lambda: client.get_schema(9), 40403),
        ):
            with pytest.raises(SchemaRegistryError) as refused:
                call()
            assert (refused.value.http_status_code, refused.value.error_code) == (404, code)
        client.set_compatibility("a", "NONE")
        assert client.get_compatibility("a") == "NONE"
        assert client.register_schema("a", Schema(json.dumps(NEXT), "AVRO")) == 2


def test_a_password_in_the_url_is_not_told() -> None:
    with (
        SchemaRegistry({"url": "http://user:s3cr3t@127.0.0.1:1/registry", **FAST}) as registry,
        pytest.raises(
            RegistryFailed, match=r"the Schema Registry at http://127\.0\.0\.1:1/registry "
        ) as failed,
    ):
        registry.latest("a")
    assert "s3cr3t" not in str(failed.value)
