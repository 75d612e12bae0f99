"""Through our clients: a damaged batch beside partitions that are well, and aborted transactions
and times where compaction was."""

from __future__ import annotations

import time
from pathlib import Path

import fairlead_kafka
from fairlead_kafka import Cluster, TopicPartition
from fairlead_kafka.core.partition_offsets import MAX_TIMESTAMP
from tests.support.waiting import PATIENCE_S

COMPACTED = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "delete.retention.ms": "200"}


def test_a_damaged_batch_is_named_and_other_partitions_are_read(tmp_path: Path) -> None:
    with Cluster(brokers=1, data_dir=tmp_path) as cluster:
        servers = {"bootstrap.servers": cluster.bootstrap_servers}
        with fairlead_kafka.Producer(servers) as producer:
            for topic in ("bad", "good"):
                producer.send(topic, b"DAMAGE ME" if topic == "bad" else b"fine").result()
    log = tmp_path / "broker-0" / "log" / "000000000001.log"
    data = bytearray(log.read_bytes())
    data[data.index(b"DAMAGE ME")] ^= 1
    log.write_bytes(data)
    with Cluster(brokers=1, data_dir=tmp_path) as cluster:
        servers = {"bootstrap.servers": cluster.bootstrap_servers, "auto.offset.reset": "earliest"}
        with fairlead_kafka.Consumer(servers) as consumer:
            consumer.assign([TopicPartition("bad", 0), TopicPartition("good", 0)])
            values, errors, end = [], [], time.monotonic() + PATIENCE_S
            while not (values and errors) and time.monotonic() < end:
                try:
                    values += [record.value for record in consumer.poll(1)]
                except fairlead_kafka.FairleadError as error:
                    errors.append(str(error))
        assert values == [b"fine"]
        assert "CORRUPT_MESSAGE" in errors[0]
        assert "bad-0 at offset 0" in errors[0]


def test_compaction_hides_no_committed_record_and_times_are_found_past_what_it_emptied() -> None:
    with Cluster(brokers=1, config={"log.cleaner.backoff.ms": 50}) as cluster:
        servers = {"bootstrap.servers": cluster.bootstrap_servers}
        place = TopicPartition("events", 0)
        with fairlead_kafka.Admin(servers) as admin:
            admin.create_topics([fairlead_kafka.NewTopic("events", 1, configs=COMPACTED)])
            with fairlead_kafka.Producer({**servers, "transactional.id": "x"}) as producer:
                producer.init_transactions()
                producer.begin_transaction()
                producer.send("events", b"bad", key=b"a", timestamp_ms=9_000)
                producer.flush()
                producer.abort_transaction()
                for number in range(3):
                    producer.begin_transaction()
                    producer.send("events", b"good", key=b"k%d" % number, timestamp_ms=1_000 + number)
                    producer.commit_transaction()
                with fairlead_kafka.Producer(servers) as other, fairlead_kafka.Consumer(servers) as consumer:
                    end = time.monotonic() + PATIENCE_S
                    while time.monotonic() < end:  # until compaction took the abort's marker
                        other.send("events", b"x", key=b"noise", timestamp_ms=500).result()
                        tables = list(consumer.read_batches(place, 0, consumer.end_offsets([place])[place]))
                        if 1 not in [base for table in tables for base in table["base_offset"].to_pylist()]:
                            break
                        time.sleep(0.05)
                    else:
                        raise AssertionError("the marker stays")
            with fairlead_kafka.Consumer(
                {**servers, "isolation.level": "read_committed", "auto.offset.reset": "earliest"}
            ) as reader:
                reader.assign([place])
                values: list[bytes | None] = []
                end = time.monotonic() + PATIENCE_S
                while values.count(b"good") < 3 and time.monotonic() < end:
                    values += [record.value for record in reader.poll(1)]
                assert values.count(b"good") == 3
                assert reader.offsets_for_times({place: 900})[place].offset == 2
            assert admin.list_offsets({place: MAX_TIMESTAMP})[place].offset >= 2
