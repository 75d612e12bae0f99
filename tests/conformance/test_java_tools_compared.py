"""Kafka's own tools, each asked the same of Apache Kafka and of our cluster: what they print is the
same, but for what a system makes up."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from time import monotonic

import pytest

from fairlead_kafka.lab.apache_kafka import ApacheKafka
from fairlead_kafka.testing import Cluster
from tests.support.java_tools import CLASSES, JavaTools
from tests.support.waiting import PATIENCE_S

CONFIG = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    "group.share.min.heartbeat.interval.ms": "500",
    "group.share.heartbeat.interval.ms": "500",
}
ROWS = """
0 topics --create --topic compared --partitions 2 --config segment.ms=3600000
1 topics --create --topic compared
0 topics --create --topic compared --if-not-exists
0 topics --list --exclude-internal
0 topics --describe --topic compared
1 topics --describe --topic missing
0 topics --alter --topic compared --partitions 3
1 topics --alter --topic compared --partitions 1
1 topics --alter --topic compared --partitions 3
1 topics --delete --topic missing
0 configs --alter --entity-type topics --entity-name compared --add-config preallocate=true
0 configs --entity-type topics --entity-name compared --describe
0 configs --alter --entity-type topics --entity-name compared --delete-config preallocate
0 configs --alter --entity-type brokers --entity-name 0 --add-config log.roll.ms=9
0 configs --entity-type brokers --entity-name 0 --describe
0 configs --alter --entity-type brokers --entity-default --add-config num.io.threads=9
0 configs --alter --entity-type brokers --entity-name 0 --delete-config log.roll.ms
0 client-metrics --alter --name all --metrics a.b --interval 5000
0 client-metrics --list
0 client-metrics --describe --name all
0 client-metrics --delete --name all
0 offsets --topic compared
0 offsets --topic compared --time earliest
0 offsets --topic compared --time max-timestamp
0 list-groups --list
0 groups --list
0 leader-election --election-type preferred --all-topic-partitions
0 transactions list
0 transactions describe-producers --topic compared --partition 0
0 topics --create --topic one --partitions 1
0 topics --describe --under-replicated-partitions
0 topics --describe --unavailable-partitions
0 topics --describe --at-min-isr-partitions
0 console-produce --topic one --reader-property parse.key=true --reader-property key.separator=: <records
0 console-consume --topic one --from-beginning --max-messages 3 --group ones
0 groups --describe --group ones
0 groups --describe --group ones --members
0 groups --describe --group ones --state
0 groups --describe --all-groups
0 groups --reset-offsets --group ones --topic one --to-earliest --dry-run
0 groups --reset-offsets --group ones --topic one --to-earliest --execute
0 groups --delete-offsets --group ones --topic one
0 groups --delete --group ones
0 groups --describe --group missing
0 groups --delete --group missing
0 configs --alter --entity-type groups --entity-name shared --add-config share.auto.offset.reset=earliest
0 configs --describe --entity-type groups --entity-name shared
0 console-share-consume --topic one --max-messages 3 --group shared
0 share-groups --list
0 share-groups --describe --group shared
0 share-groups --describe --group shared --state
0 share-groups --describe --group shared --members
0 share-groups --describe --group missing
0 share-groups --reset-offsets --group shared --topic one --to-earliest --execute
0 share-groups --reset-offsets --group shared --topic one --to-latest --execute
0 share-groups --reset-offsets --group shared --topic one --to-earliest --execute
0 share-consume --topic one --num-records 3 --group shared
0 share-groups --reset-offsets --group shared --topic one --to-earliest --execute
0 verifiable-share-consume --topic one --max-messages 3 --group-id shared
0 share-groups --delete-offsets --group shared --topic one
0 share-groups --delete --group shared
0 streams-groups --list
0 verifiable-produce --topic one --max-messages 3
0 verifiable-consume --topic one --group-id verified --max-messages 6 --reset-policy earliest
0 copy-in-transactions --input-topic one --output-topic two --input-partition 0 --transactional-id copier \
    --consumer-group copiers --max-messages 4 --transaction-size 2
0 transactions describe --transactional-id copier
0 transactions find-hanging --broker-id 0
0 transactions forceTerminateTransaction --transactionalId copier
0 latency --topic one --num-records 5 --producer-acks 1 --record-size 10
0 produce --topic one --num-records 5 --record-size 10 --throughput -1
0 consume --topic one --num-records 5 --group performance
0 compatibility --topic three --offsets-for-times-supported true --cluster-id-supported true \
    --expect-record-too-large-exception false --num-cluster-nodes 1 --create-topics-supported true \
    --describe-acls-supported true --describe-configs-supported true --idempotent-producer-supported true
1 acls --list
1 acls --add --allow-principal User:alice --operation Read --topic one
1 delegation-tokens --describe --command-config EMPTY
0 reset-streams --application-id app --input-topics one
0 delete-records --offset-json-file OFFSETS
0 reassign --list
0 reassign --generate --topics-to-move-json-file TOPICS --broker-list 0
0 reassign --execute --reassignment-json-file MOVE
0 reassign --verify --reassignment-json-file MOVE
0 log-dirs --describe --broker-list 0 --topic-list one
0 cluster cluster-id
0 cluster list-endpoints
0 configs --alter --entity-type users --entity-name u --add-config producer_byte_rate=1000
0 configs --alter --entity-type users --entity-name u --add-config SCRAM-SHA-256=[iterations=4096,password=p]
0 configs --describe --entity-type users
0 configs --alter --entity-type clients --entity-default --add-config request_percentage=50
0 configs --describe --entity-type clients --entity-default
0 configs --alter --entity-type ips --entity-name 10.0.0.1 --add-config connection_creation_rate=5
0 configs --describe --entity-type ips
0 leader-election --election-type unclean --all-topic-partitions
0 topics --delete --topic two
"""
"""Status that a tool ends with, and what it is asked: <NAME is its input, and a name in capitals a
file (`FILES`)."""
FILES = {
    "records": "a:1\nb:2\nc:3\n",
    "EMPTY": "",
    "OFFSETS": '{"version": 1, "partitions": [{"topic": "one", "partition": 0, "offset": 1}]}',
    "MOVE": '{"version": 1, "partitions": [{"topic": "one", "partition": 0, "replicas": [0]}]}',
    "TOPICS": '{"version": 1, "topics": [{"topic": "one"}]}',
}
_SERVERS_FIRST = ("transactions", "reassign")
"""Tools that want --bootstrap-server before their command."""
_FIGURES = ("latency", "produce", "consume", "share-consume")
"""Tools that print how quick it went."""
_OFTEN = ("copy-in-transactions",)
"""Tools that tell how far they are at every poll, and of polls there are as many as it takes."""
_MAIN = b"\x00\x04main", b"\x00\x16([Ljava/lang/String;)V"
"""Name and type of `main` as a class file has them."""
_READS = re.compile(r" (--describe|--list|transactions (describe|list))\b")
"""Is in a row that changes nothing."""
_TELLS_LATER = "verifiable-produce"
"""It prints from threads of its own, also while the next tool runs."""
_MADE_UP = [
    # ours tells also in another unit where a topic's value would come from
    (re.compile(r"(segment\.ms=\d+), DEFAULT_CONFIG:log\.roll\.hours=168"), r"\1"),
    (re.compile(r"min\.insync\.replicas=1,?"), ""),  # Apache Kafka sets it by itself (KIP-966)
    (re.compile(r"TopicId: \S+"), "TopicId: ID"),
    (re.compile(r"Elr: ?\tLastKnownElr: ?"), ""),
    (re.compile(r"\[?\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d+\]?"), "TIME"),
    (re.compile(r"127\.0\.0\.1[ :]+\d+"), "ADDRESS"),
    (re.compile(r'"time(stamp)?":("[^"]*"|\d+)'), '"time":TIME'),
    (re.compile(r'"/tmp/[^"]*"'), '"FOLDER"'),
    (re.compile(r'"size":\d+'), '"size":BYTES'),
    (re.compile(r"Cluster ID: \S+"), "Cluster ID: ID"),
    (re.compile(r"(CompleteCommit\s+60000)\s+\d+\s+\d+"), r"\1 TIME MS"),
]


@pytest.fixture(scope="module")
def both(kafka_jars: str) -> Iterator[dict[str, str]]:
    with (
        Cluster(brokers=1, config=CONFIG) as ours,
        ApacheKafka(heap="512m", properties=CONFIG) as kafka,
    ):
        yield {"ours": ours.bootstrap_servers, "Apache Kafka": kafka.bootstrap_servers}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of `FILES`."""
    folder = tmp_path_factory.mktemp("files")
    for name, text in FILES.items():
        (folder / name).write_text(text)
    return folder


def _rows() -> list[str]:
    return ROWS.replace("\\\n", " ").strip().splitlines()


def _together() -> list[list[str]]:
    """The rows that are run one right behind the other against the same cluster: each alone, but
    for one that prints while the next one runs."""
    groups: list[list[str]] = []
    for row in _rows():
        if groups and groups[-1][-1].split()[1] == _TELLS_LATER:
            groups[-1].append(row)
        else:
            groups.append([row])
    return groups


def said(tools: JavaTools, servers: str, status: int, asked: list[str], files: Path) -> list[str]:
    """The lines that a tool prints, in the order of the alphabet; each once for a tool of
    `_OFTEN`."""
    tool, *arguments = asked
    reads = [files / word[1:] for word in arguments if word.startswith("<")]
    words = [str(files / word) if word in FILES else word for word in arguments if word[0] != "<"]
    where = ["--broker-list" if tool == "copy-in-transactions" else "--bootstrap-server", servers]
    command = [*where, *words] if tool in _SERVERS_FIRST else [*words, *where]
    text = tools.run(tool, *command, status=status, reads=reads[0] if reads else None)
    for pattern, name in _MADE_UP:
        text = pattern.sub(name, text)
    if tool in _FIGURES:
        text = re.sub(r"\d+([.:]\d+)*", "N", text)
    lines = (" ".join(line.split()) for line in text.splitlines() if not line.lstrip().startswith("at "))
    told = [line for line in lines if line]
    return sorted(set(told) if tool in _OFTEN else told)


def test_tools_print_the_same_of_both(tools: JavaTools, both: dict[str, str], files: Path) -> None:
    def heard(rows: list[str]) -> dict[str, list[str]]:
        return {
            system: sorted(
                line
                for status, *asked in map(str.split, rows)
                for line in said(tools, servers, int(status), asked, files)
            )
            for system, servers in both.items()
        }

    unlike = {}
    for rows in _together():
        told, until_s = heard(rows), monotonic() + PATIENCE_S
        # A broker of Apache Kafka hears of a change after the one who asked for it has an answer.
        while told["ours"] != told["Apache Kafka"] and _READS.search(rows[-1]) and monotonic() < until_s:
            told = heard(rows)
        if told["ours"] != told["Apache Kafka"]:
            unlike[rows[-1]] = told
    assert unlike == {}


TELL_OF_THE_SYSTEM = {"features", "api-versions", "quorum"}
"""What these print differs by its nature: features, versions, epochs of a quorum."""
NOT_RUN = {
    "ConnectPluginPath": "it reads folders of Kafka Connect's plug-ins, and asks no cluster",
    "DumpLogSegments": "it reads a broker's files, and ours are of another format",
    "JmxTool": "it asks a Java process by JMX; our brokers' figures are in `metrics()` and for Prometheus",
    "LogCompactionTester": "it runs until its own producer and consumer agree, for hours",
    "OAuthCompatibilityTool": "it asks a provider of tokens, and no cluster",
    "ReplicaVerificationTool": "it never ends",
}
"""Tools of Kafka that are not run here, and why."""


def test_every_tool_of_kafka_is_run_or_there_is_a_reason_not_to(kafka_jars: str) -> None:
    (jar,) = Path(kafka_jars).glob("kafka-tools-?.*.jar")
    with zipfile.ZipFile(jar) as classes:
        tools = {
            Path(name).stem
            for name in classes.namelist()
            if name.endswith(".class") and _MAIN[0] in classes.read(name) and _MAIN[1] in classes.read(name)
        }
    run = {row.split()[1] for row in _rows()} | TELL_OF_THE_SYSTEM
    assert {CLASSES[name].rpartition(".")[2] for name in run} - {"ConfigCommand"} | {*NOT_RUN} == tools


def test_tools_that_tell_of_the_system_itself_run(tools: JavaTools, both: dict[str, str]) -> None:
    for servers in both.values():
        where = ("--bootstrap-server", servers)
        assert "transaction.version" in tools.run("features", *where, "describe")
        assert "DescribeTopicPartitions" in tools.run("api-versions", *where)
        assert "LeaderId" in tools.run("quorum", *where, "describe", "--status")
