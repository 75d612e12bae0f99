"""What a user with few rights is answered is recorded from Apache Kafka; here it is asked again.

`FAIRLEAD_RECORD=1 pytest tests/conformance/test_rights_apache_kafka.py` writes its answers into the
data file instead.
"""

from __future__ import annotations

import os

from fairlead_kafka.lab.apache_kafka import ApacheKafka
from tests.support.rights.recorded import record, recorded
from tests.support.rights.worlds import APACHE_KAFKA, CONFIG, Theirs, answers


def test_apache_kafka_answers_as_it_is_recorded(kafka_jars: str) -> None:
    properties = {**CONFIG, **APACHE_KAFKA}
    with ApacheKafka(heap="512m", listeners={"SASL": "SASL_PLAINTEXT"}, properties=properties) as kafka:
        world = Theirs(kafka)
        try:
            found = answers(world)
        finally:
            world.close()
    if os.environ.get("FAIRLEAD_RECORD"):
        record(found)
    assert found == recorded()
