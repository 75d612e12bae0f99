"""The wheel and the source archive, built and installed into empty environments, as a user has
them: the first program, a pytest project, each extra.

What pip must fetch costs time: `make test` installs the client, then pytest beside it, and
`make test-distribution` (FAIRLEAD_DISTRIBUTION=all) every extra there is.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import venv
import zipfile
from email.parser import HeaderParser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WHOLE = os.environ.get("FAIRLEAD_DISTRIBUTION") == "all"
TWINE = "twine>=6.1,<8"

PYTEST_PROJECT = """
import fairlead_kafka

def test_records_come_back(kafka_cluster, kafka_topic):
    client = {"bootstrap.servers": kafka_cluster.bootstrap_servers}
    with fairlead_kafka.Producer(client) as producer:
        producer.send(kafka_topic, b"value").result(30)
    with fairlead_kafka.Consumer({**client, "auto.offset.reset": "earliest"}) as consumer:
        consumer.assign([fairlead_kafka.TopicPartition(kafka_topic, 0)])
        assert [record.value for record in consumer.poll(30)] == [b"value"]
"""

PROGRAMS = {
    "metrics": """
import fairlead_kafka
from prometheus_client import CollectorRegistry, generate_latest

with fairlead_kafka.Cluster() as cluster:
    with fairlead_kafka.Producer({"bootstrap.servers": cluster.bootstrap_servers}) as producer:
        producer.send("events", b"v").result(30)
        registry = CollectorRegistry()
        registry.register(fairlead_kafka.PrometheusCollector(producer))
        assert b"kafka_producer_record_send_total" in generate_latest(registry)
print("works")
""",
    "opentelemetry": """
import fairlead_kafka
from fairlead_kafka.client.tracing import instrument

with fairlead_kafka.Cluster() as cluster:
    with fairlead_kafka.Producer({"bootstrap.servers": cluster.bootstrap_servers}) as producer:
        instrument(producer)
        fairlead_kafka.OpenTelemetryMetrics(producer)
        producer.send("events", b"v").result(30)
print("works")
""",
    "telemetry": """
import fairlead_kafka

with fairlead_kafka.Cluster() as cluster:
    assert cluster.client_metrics() == []
print("works")
""",
    "avro": """
from fairlead_kafka.formats import AvroDeserializer, AvroSerializer

schema = {"type": "record", "name": "R", "fields": [{"name": "n", "type": "long"}]}
assert AvroDeserializer(None, schema)(AvroSerializer(None, schema)({"n": 7}, None), None) == {"n": 7}
print("works")
""",
    "protobuf": """
from google.protobuf.timestamp_pb2 import Timestamp
from fairlead_kafka.formats import ProtobufDeserializer, ProtobufSerializer

data = ProtobufSerializer(Timestamp, None)(Timestamp(seconds=7), None)
assert ProtobufDeserializer(Timestamp, framed=False)(data, None) == Timestamp(seconds=7)
print("works")
""",
    "jsonschema": """
import jsonschema_rs
import fairlead_kafka.formats.json_schema_serde

assert jsonschema_rs.validator_for({"required": ["n"]}).is_valid({"n": 1})
print("works")
""",
    "security": """
import fairlead_kafka

with fairlead_kafka.Cluster(security="sasl_ssl", users=["alice"]) as cluster:
    with fairlead_kafka.Producer(cluster.client_settings("alice")) as producer:
        producer.send("events", b"v").result(30)
print("works")
""",
    "registry": """
from confluent_kafka.schema_registry import SchemaRegistryClient
import fairlead_kafka

SchemaRegistryClient({"url": "http://127.0.0.1:1"})
print("works")
""",
    "msk": """
import aws_msk_iam_sasl_signer
import fairlead_kafka
print("works")
""",
    "spark": """
import fairlead_kafka
from fairlead_kafka.spark import spark_session

with fairlead_kafka.Cluster() as cluster:
    servers = cluster.bootstrap_servers
    with fairlead_kafka.Producer({"bootstrap.servers": servers}) as producer:
        for number in range(30):
            producer.send("events", b"v", key=b"k%d" % (number % 3))
    spark = spark_session("distribution", master="local[1]")
    options = {"kafka.bootstrap.servers": servers, "subscribe": "events"}
    assert spark.read.format("fairlead").options(**options).load().count() == 30
    spark.stop()
print("works")
""",
    "lab": """
import subprocess, sys

command = [sys.executable, "-m", "fairlead_kafka.cli.main", "lab", "kip794", "--clock", "virtual"]
subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
print("works")
""",
}
"""Extra → a program that needs it; it says that it works."""
NOT_INSTALLED = {
    "dev": "it is for a checkout, and is what `make setup` installs",
    "kerberos": "gssapi is compiled against Kerberos' headers, which pip does not bring",
}
"""Extra → why no test installs it."""


class Environment:
    """An empty environment, with nothing of this checkout on its path."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        venv.create(folder, with_pip=True)
        self.programs = folder / ("Scripts" if sys.platform == "win32" else "bin")

    def run(self, *arguments: str | Path, cwd: Path | None = None) -> str:
        """Run one of its programs; its output. AssertionError with all of it if it fails."""
        name, *rest = arguments
        kept = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
        ran = subprocess.run(
            [self.programs / str(name), *rest],
            capture_output=True,
            text=True,
            check=False,
            cwd=cwd or self.folder,
            env=kept,
        )
        assert ran.returncode == 0, f"{arguments}\n{ran.stdout}\n{ran.stderr}"
        return ran.stdout

    def install(self, *wanted: str | Path) -> None:
        """Install with pip. A program compiles what it imports, which is little of all that pip
        would."""
        options = ("--quiet", "--no-compile", "--disable-pip-version-check")
        self.run("python", "-m", "pip", "install", *options, *wanted)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the wheel and the source archive; WHOLE: checked by twine."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-d", folder], cwd=ROOT, check=True)
    if WHOLE:
        checker = Environment(tmp_path_factory.mktemp("checker"))
        checker.install(TWINE)
        checker.run("twine", "check", "--strict", *map(str, sorted(folder.iterdir())))
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (found,) = built.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def client(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment with the client alone."""
    made = Environment(tmp_path_factory.mktemp("client"))
    made.install(wheel)
    return made


def _metadata(wheel: Path) -> tuple[dict[str, list[str]], str]:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [each for each in archive.namelist() if each.endswith(".dist-info/METADATA")]
        message = HeaderParser().parsestr(archive.read(name).decode())
    fields: dict[str, list[str]] = {}
    for key, value in message.items():
        fields.setdefault(key, []).append(str(value))
    return fields, str(message.get_payload())


def test_the_description_has_no_link_that_leads_nowhere(wheel: Path) -> None:
    """An index shows the README without the files beside it."""
    _, text = _metadata(wheel)
    assert not [target for target in re.findall(r"\]\(([^)]*)\)", text) if "://" not in target]


def test_every_extra_is_installed_by_a_test_or_says_why_not(wheel: Path) -> None:
    fields, _ = _metadata(wheel)
    assert set(fields["Provides-Extra"]) == {*PROGRAMS, *NOT_INSTALLED}


def test_the_first_program_runs_where_only_the_client_is(client: Environment) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    program = re.findall(r"```python\n(.*?)```", text, re.DOTALL)[0]
    (client.folder / "first.py").write_text(program, encoding="utf-8")
    assert "RecordMetadata(" in client.run("python", "first.py")
    assert "fairlead" in client.run("fairlead", "--help")


def test_a_pytest_project_uses_the_plugin(client: Environment, tmp_path: Path) -> None:
    client.install("pytest>=8.3,<10")
    (tmp_path / "test_project.py").write_text(PYTEST_PROJECT, encoding="utf-8")
    assert "1 passed" in client.run("python", "-m", "pytest", "-q", "test_project.py", cwd=tmp_path)


@pytest.mark.skipif(not WHOLE, reason="hundreds of MB for pip: `make test-distribution` does it")
@pytest.mark.parametrize("extra", PROGRAMS)
def test_an_extra_brings_what_it_is_for(wheel: Path, tmp_path: Path, extra: str) -> None:
    made = Environment(tmp_path)
    made.install(f"{wheel}[{extra}]")
    (tmp_path / "program.py").write_text(PROGRAMS[extra], encoding="utf-8")
    assert made.run("python", "program.py").splitlines()[-1] == "works"


@pytest.mark.skipif(not WHOLE, reason="pip compiles the kernels anew: `make test-distribution` does it")
def test_the_source_archive_can_be_installed(built: Path, tmp_path: Path) -> None:
    (archive,) = built.glob("*.tar.gz")
    made = Environment(tmp_path)
    made.install(archive)
    assert "fairlead" in made.run("fairlead", "--help")
