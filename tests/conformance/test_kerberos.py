"""Our clients at an Apache Kafka with GSSAPI, and a Kerberos realm of MIT's krb5 that is made for
it in a folder of its own."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import fairlead_kafka
from fairlead_kafka import AuthenticationFailed
from fairlead_kafka.lab.apache_kafka import ApacheKafka
from fairlead_kafka.testing.certificates import Certificates
from fairlead_kafka.testing.reserved_port import ReservedPort
from tests.support.waiting import PATIENCE_S, until

REALM = "FAIRLEAD.TEST"
SERVICE = f"kafka/localhost@{REALM}"
"""Service, host and realm: clients reach the broker by the name localhost."""
USER = f"alice@{REALM}"
MODULE = "com.sun.security.auth.module.Krb5LoginModule"
LISTENERS = {"KERBEROS": "SASL_PLAINTEXT", "KERBEROSTLS": "SASL_SSL"}
DEBIAN_SBIN = "/usr/sbin"
"""Where Debian has krb5kdc and kadmin.local, which is not on everybody's PATH."""


def program(name: str) -> str | None:
    return shutil.which(name) or shutil.which(name, path=DEBIAN_SBIN)


@dataclass(frozen=True)
class Realm:
    """`config` is what KRB5_CONFIG and Java's `java.security.krb5.conf` name; keytabs by
    principal."""

    config: Path
    service: Path
    user: Path


def missing() -> str | None:
    """Why this cannot be run here; None: it can."""
    for name, package in (
        ("krb5kdc", "krb5-kdc"),
        ("kdb5_util", "krb5-kdc"),
        ("kadmin.local", "krb5-admin-server"),
    ):
        if program(name) is None:
            return f"there is no {name}: install Debian's {package}"
    try:
        import gssapi  # noqa: F401
    except ImportError:
        return (
            'the package gssapi is not installed: pip install "fairlead-kafka[kerberos]", which needs '
            "libkrb5-dev"
        )
    return None


def _configured(folder: Path, realm: Realm, port: int) -> Path:
    """Write the configs of clients and server; the server's."""
    realm.config.write_text(f"""\
[libdefaults]
  default_realm = {REALM}
  dns_lookup_realm = false
  dns_lookup_kdc = false
  dns_canonicalize_hostname = false
  rdns = false
  udp_preference_limit = 1
  ticket_lifetime = 1h
[realms]
  {REALM} = {{
    kdc = 127.0.0.1:{port}
  }}
[domain_realm]
  localhost = {REALM}
""")
    profile = folder / "kdc.conf"
    profile.write_text(f"""\
[kdcdefaults]
  kdc_listen = 127.0.0.1:{port}
  kdc_tcp_listen = 127.0.0.1:{port}
[realms]
  {REALM} = {{
    database_name = {folder}/principal
    key_stash_file = {folder}/stash
    acl_file = {folder}/kadm5.acl
    max_life = 1h
  }}
""")
    (folder / "kadm5.acl").touch()
    return profile


@contextlib.contextmanager
def started(folder: Path, port: int) -> Iterator[tuple[Realm, dict[str, str]]]:
    """A realm with a server, a service and a user; and the environment that leads there."""
    realm = Realm(folder / "krb5.conf", folder / "kafka.keytab", folder / "alice.keytab")
    profile = _configured(folder, realm, port)
    own = {
        "KRB5_CONFIG": str(realm.config),
        "KRB5_KDC_PROFILE": str(profile),
        "KRB5CCNAME": f"FILE:{folder}/credentials",
    }
    environment = os.environ | own

    def run(name: str, *arguments: str) -> None:
        found = program(name)
        assert found is not None
        ran = subprocess.run(
            [found, *arguments],
            env=environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert ran.returncode == 0, f"{name} {arguments}: {ran.stdout}{ran.stderr}"

    run("kdb5_util", "create", "-r", REALM, "-s", "-P", "master-of-a-test")
    for principal, keytab in ((SERVICE, realm.service), (USER, realm.user)):
        run("kadmin.local", "-r", REALM, "-q", f"addprinc -randkey {principal}")
        run("kadmin.local", "-r", REALM, "-q", f"ktadd -k {keytab} {principal}")
    kdc = program("krb5kdc")
    assert kdc is not None
    with (folder / "krb5kdc.log").open("wb") as log:
        server = subprocess.Popen(
            [kdc, "-n", "-r", REALM], env=environment, stdout=log, stderr=subprocess.STDOUT
        )

    def listens() -> bool:
        assert server.poll() is None, (folder / "krb5kdc.log").read_text()
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    try:
        until(listens)
        yield realm, own
    finally:
        server.terminate()
        server.wait()


@dataclass(frozen=True)
class Kerberized:
    """An Apache Kafka with LISTENERS."""

    kafka: ApacheKafka
    realm: Realm
    certificates: Certificates

    def settings(self, listener: str = "KERBEROS", **more: Any) -> dict[str, Any]:
        settings: dict[str, Any] = {
            "bootstrap.servers": self.kafka.servers(listener),
            "security.protocol": LISTENERS[listener],
            "sasl.mechanism": "GSSAPI",
            "sasl.kerberos.service.name": "kafka",
            "sasl.kerberos.keytab": str(self.realm.user),
            "sasl.kerberos.principal": USER,
        }
        if LISTENERS[listener].endswith("SSL"):
            settings["ssl.truststore.location"] = str(self.certificates.trust)
        return settings | {key.replace("_", "."): value for key, value in more.items()}


@pytest.fixture(scope="module")
def kerberized(kafka_jars: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kerberized]:
    reason = missing()
    if reason is not None:
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("kerberos")
    certificates = Certificates(folder)
    with (
        ReservedPort() as port,
        started(folder, port.number) as (realm, own),
        pytest.MonkeyPatch.context() as patch,
    ):
        for name, value in own.items():
            patch.setenv(name, value)  # of this process, for libkrb5 reads it at each log-in
        patch.setenv("JAVA_TOOL_OPTIONS", f"-Djava.security.krb5.conf={realm.config}")
        module = (
            f'{MODULE} required useKeyTab=true storeKey=true doNotPrompt=true keyTab="{realm.service}" '
            f'principal="{SERVICE}";'
        )
        properties: dict[str, object] = {
            "sasl.enabled.mechanisms": "GSSAPI",
            "sasl.kerberos.service.name": "kafka",
            "sasl.kerberos.principal.to.local.rules": "DEFAULT",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": certificates.issue("localhost"),
            **{f"listener.name.{name.lower()}.gssapi.sasl.jaas.config": module for name in LISTENERS},
            "listener.name.kerberos.connections.max.reauth.ms": 3_000,
        }
        with ApacheKafka(heap="512m", listeners=LISTENERS, properties=properties) as kafka:
            yield Kerberized(kafka, realm, certificates)


@pytest.mark.parametrize("listener", LISTENERS)
def test_all_three_clients_log_in_by_their_tickets(kerberized: Kerberized, listener: str) -> None:
    settings, topic = kerberized.settings(listener), f"tickets-{listener.lower()}"
    with fairlead_kafka.Admin(settings) as admin:
        admin.create_topics([fairlead_kafka.NewTopic(topic, partitions=1)])
    with fairlead_kafka.Producer(settings) as producer:
        producer.send(topic, b"by ticket").result(timeout_s=PATIENCE_S)
    with fairlead_kafka.Consumer(
        {**settings, "group.id": topic, "auto.offset.reset": "earliest"}
    ) as consumer:
        consumer.subscribe([topic])
        assert [record.value for record in consumer.poll(timeout_s=PATIENCE_S)] == [b"by ticket"]


def test_a_session_is_renewed_by_another_ticket(kerberized: Kerberized) -> None:
    with fairlead_kafka.Producer(kerberized.settings()) as producer:
        began_s = time.monotonic()
        sent = 0
        while time.monotonic() - began_s < 7:  # two sessions and a bit
            producer.send("renewed-tickets", b"%d" % sent).result(timeout_s=PATIENCE_S)
            sent += 1
    assert sent > 2


def test_a_ticket_of_kinit_will_do(kerberized: Kerberized) -> None:
    kinit = program("kinit")
    if kinit is None:
        pytest.skip("there is no kinit: install Debian's krb5-user")
    subprocess.run([kinit, "-k", "-t", str(kerberized.realm.user), USER], check=True, timeout=PATIENCE_S)
    settings = {
        key: value
        for key, value in kerberized.settings().items()
        if key not in ("sasl.kerberos.keytab", "sasl.kerberos.principal")
    }
    with fairlead_kafka.Admin(settings) as admin:
        assert admin.describe_cluster().nodes


def test_a_keytab_is_used_whoever_else_has_tickets_here(kerberized: Kerberized) -> None:
    """The user's cache of tickets may be another's; it is neither read nor written."""
    kinit, klist = program("kinit"), program("klist")
    if kinit is None or klist is None:
        pytest.skip("there is no kinit: install Debian's krb5-user")
    subprocess.run(
        [kinit, "-k", "-t", str(kerberized.realm.service), SERVICE], check=True, timeout=PATIENCE_S
    )
    with fairlead_kafka.Admin(kerberized.settings()) as admin:
        assert admin.describe_cluster().nodes
    listed = subprocess.run([klist], check=True, timeout=PATIENCE_S, capture_output=True, text=True).stdout
    assert f"Default principal: {SERVICE}" in listed
    assert "alice" not in listed


BAD_DAYS = {
    "a service that is not there": (
        {"sasl.kerberos.service.name": "elsewhere"},
        "Kerberos gave no ticket for elsewhere@localhost",
    ),
    "a keytab that is not there": (
        {"sasl.kerberos.keytab": "/nowhere/alice.keytab"},
        "Kerberos gave no ticket for kafka@localhost",
    ),
    "a principal that is not in the keytab": (
        {"sasl.kerberos.principal": f"eve@{REALM}"},
        "Kerberos gave no ticket for kafka@localhost",
    ),
}


@pytest.mark.parametrize("day", BAD_DAYS)
def test_on_a_bad_day_the_client_is_told_what_to_look_at(kerberized: Kerberized, day: str) -> None:
    changed, said = BAD_DAYS[day]
    with (
        fairlead_kafka.Admin(kerberized.settings() | changed) as admin,
        pytest.raises(AuthenticationFailed, match=said),
    ):
        admin.list_topics()
