"""A program loads what it uses, and nothing else: that is most of its first second."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"
LAZY = [
    path.parent
    for path in (SOURCE / "fairlead_kafka").rglob("__init__.py")
    if "lazily(" in path.read_text() and path.parent.name != "base"
]
ARROW, ASYNCIO, PANDAS, COMMANDS = ("pyarrow",), ("asyncio", "ssl"), ("pandas",), ("typer", "rich", "click")
CLUSTER = (
    "fairlead_kafka.broker",
    "fairlead_kafka.testing",
    "fairlead_kafka.simulation",
    "fairlead_kafka.runtime.virtual",
)
RARE = ("cramjam", "fairlead_kafka.formats", "encodings.idna")
"""Compressors and formats, loaded with the first compressed batch or if a serializer is set."""
PRODUCER, CONSUMER, ADMIN = (
    ("fairlead_kafka.producer",),
    ("fairlead_kafka.consumer",),
    ("fairlead_kafka.admin",),
)


@pytest.mark.parametrize(
    ("program", "without"),
    [
        (
            "import fairlead_kafka",
            (
                *ARROW,
                *ASYNCIO,
                *COMMANDS,
                *CLUSTER,
                *PRODUCER,
                *CONSUMER,
                *ADMIN,
                "numpy",
                "fairlead_kafka.client",
            ),
        ),
        (
            "from fairlead_kafka import Producer",
            (*ARROW, *RARE, *ASYNCIO, *PANDAS, *COMMANDS, *CLUSTER, *CONSUMER, *ADMIN),
        ),
        (
            "from fairlead_kafka import Consumer",
            (*ARROW, *RARE, *ASYNCIO, *PANDAS, *COMMANDS, *CLUSTER, *PRODUCER, *ADMIN),
        ),
        (
            "from fairlead_kafka import Admin",
            (*ARROW, *ASYNCIO, *PANDAS, *COMMANDS, *CLUSTER, *PRODUCER, *CONSUMER),
        ),
        (
            "from fairlead_kafka import AsyncProducer",
            (*ARROW, *RARE, *PANDAS, *COMMANDS, *CLUSTER, *CONSUMER, *ADMIN),
        ),
        (
            "from fairlead_kafka.testing import Cluster",
            (*ARROW, *ASYNCIO, *PANDAS, *COMMANDS, *PRODUCER, *CONSUMER),
        ),
        (
            "import fairlead_kafka.cli.main",
            (*ARROW, *ASYNCIO, *PANDAS, *COMMANDS, *CLUSTER, *PRODUCER, *CONSUMER, *ADMIN, "numpy"),
        ),
        (
            "import fairlead_kafka.cli.application",
            (*ARROW, *PANDAS, *CLUSTER, *PRODUCER, *CONSUMER, *ADMIN, "numpy"),
        ),
    ],
    ids=lambda each: each.split()[-1] if isinstance(each, str) else "",
)
def test_a_program_loads_what_it_uses(program: str, without: tuple[str, ...]) -> None:
    listed = subprocess.run(
        [sys.executable, "-c", f"{program}\nimport sys; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = listed.stdout.split()
    assert not [
        module for module in loaded if any(module == one or module.startswith(f"{one}.") for one in without)
    ]


@pytest.mark.parametrize(
    "client",
    ["Producer", "AsyncProducer", "Consumer", "AsyncConsumer", "ShareConsumer", "AsyncShareConsumer"],
)
def test_numpy_is_loaded_before_the_rest_of_a_client(client: str) -> None:
    """The threads of its OpenBLAS spin for 80 ms after that, at best beside imports."""
    program = f"from fairlead_kafka import {client}\nimport sys; print(*sys.modules)"
    listed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = listed.stdout.split()
    earlier = loaded[: loaded.index("numpy")]
    assert not [
        module for module in earlier if module.startswith(("fairlead_kafka.core", "fairlead_kafka.wire"))
    ]


@pytest.mark.parametrize("package", LAZY, ids=lambda path: path.name)
def test_names_that_are_loaded_later_are_those_that_a_type_checker_sees(package: Path) -> None:
    """Three lists say what a package has: for type checkers, for readers and at run time."""
    module = import_module(".".join(package.relative_to(SOURCE).parts))
    found = {}
    for node in ast.walk(ast.parse((package / "__init__.py").read_text())):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            found = {
                alias.name: line.module
                for line in node.body
                if isinstance(line, ast.ImportFrom)
                for alias in line.names
            }
    homes = {name: home for home, names in module._HOMES.items() for name in names}
    assert homes == found
    assert set(homes) <= set(module.__all__) <= {*homes, *vars(module)}
    for name in homes:
        assert not (package / f"{name}.py").exists(), "a module of that name would come first"
        assert getattr(module, name) is getattr(import_module(homes[name]), name)
    with pytest.raises(AttributeError, match="nothing_of_the_kind"):
        getattr(module, "nothing_of_the_kind")  # noqa: B009


def test_tables_load_arrow_and_not_pandas() -> None:
    """Where pandas is installed `pa.array` loads it, which takes a program as long as all the rest
    of its start."""
    program = """
import sys
import pyarrow as pa
from fairlead_kafka import Consumer, Producer, TopicPartition
from fairlead_kafka.testing import Cluster
value = pa.Array.from_buffers(pa.binary(), 2, [None, pa.py_buffer(b"\\0\\0\\0\\0\\1\\0\\0\\0\\2\\0\\0\\0"), pa.py_buffer(b"ab")])
with Cluster(brokers=1) as cluster:
    cluster.create_topic("t", 1)
    config = {"bootstrap.servers": cluster.bootstrap_servers}
    with Producer(config) as producer:
        print(producer.send_table("t", pa.table({"value": value, "key": value})).result()["offset"].to_pylist())
    with Consumer(config) as consumer:
        consumer.assign([TopicPartition("t", 0)])
        consumer.seek_to_beginning()
        print(consumer.poll_table(5)["value"].to_pylist(), consumer.poll_table(0.01).num_rows)
        print(next(consumer.read_batches(TopicPartition("t", 0), 0, 2))["records"].to_pylist())
        print(next(consumer.read_range(TopicPartition("t", 0), 0, 2)).num_rows)
print([module for module in sys.modules if module.startswith("pandas")])
"""  # noqa: E501
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines() == ["[0, 1]", "[b'a', b'b'] 0", "[2]", "2", "[]"]
