"""What a session on a local master gets that one on a cluster does not."""

from __future__ import annotations

import os

import pytest

from fairlead_kafka.spark.session import local_defaults

CORES = os.cpu_count() or 1


@pytest.mark.parametrize(
    ("master", "partitions"),
    [("local", 1), ("local[4]", 4), ("local[2,3]", 2), ("local[*]", CORES), ("local[*,3]", CORES)],
)
def test_a_shuffle_has_a_partition_for_each_thread_of_a_local_master(master: str, partitions: int) -> None:
    assert local_defaults(master) == {"spark.sql.shuffle.partitions": str(partitions)}


@pytest.mark.parametrize(
    "master", [None, "local-cluster[2,1,1024]", "yarn", "spark://host:7077", "k8s://https://host"]
)
def test_a_cluster_keeps_its_own(master: str | None) -> None:
    assert local_defaults(master) == {}
