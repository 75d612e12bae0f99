"""What Apache Kafka answered."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

FILE = Path(__file__).parents[2] / "data" / "rights" / "apache_kafka_4.3.1.json"


@cache
def recorded() -> dict[str, Any]:
    """The answers by the names of their cases; `record` writes them."""
    found: dict[str, Any] = json.loads(FILE.read_text())
    return found


def record(answers: dict[str, Any]) -> None:
    """Keep what an Apache Kafka answered."""
    FILE.write_text(json.dumps(answers, indent=1, sort_keys=True) + "\n")
