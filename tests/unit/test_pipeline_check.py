"""`fairlead pipeline check`: each mistake a newcomer makes is named with file, line and what to do,
and a right project with nothing."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from fairlead_kafka.base.errors import ConfigError, ConnectionFailed
from fairlead_kafka.spark.pipelines.check import check_project, errors_of
from fairlead_kafka.spark.pipelines.cluster import ClusterView
from fairlead_kafka.spark.pipelines.findings import Finding
from fairlead_kafka.spark.pipelines.project import find_spec
from fairlead_kafka.spark.pipelines.template import TOPICS, write_project

SPEC = """\
name: shop
storage: file:///data/shop
configuration:
  spark.fairlead.bootstrap.servers: "broker:9092"
libraries:
  - glob:
      include: transformations/**
"""
HEAD = """\
from pyspark import pipelines as dp
from pyspark.sql import functions as f

KAFKA = {"kafka.bootstrap.servers": spark.conf.get("spark.fairlead.bootstrap.servers")}
"""
ORDERS = """
@dp.table
def orders():
    stream = spark.readStream.format("fairlead").options(**KAFKA, startingOffsets="earliest")
    return stream.option("subscribe", "orders").load().select("key", f.col("value").cast("string").alias("line"))
"""  # noqa: E501
TOPIC = ClusterView({"orders": 3, "orders.out": 3})

Check = Callable[..., list[Finding]]


@pytest.fixture
def check(tmp_path: Path) -> Check:
    """Checks a project of one file, whose text follows HEAD; `spec` and `sql` take the place of
    what they name."""

    def run(
        definitions: str, spec: str = SPEC, sql: str | None = None, cluster: object = TOPIC
    ) -> list[Finding]:
        folder = tmp_path / "transformations"
        folder.mkdir(exist_ok=True)
        (tmp_path / "spark-pipeline.yml").write_text(spec)
        (folder / "shop.py").write_text(HEAD + textwrap.dedent(definitions))
        if sql is not None:
            (folder / "more.sql").write_text(sql)

        def ask(servers: str) -> ClusterView:
            assert servers == "broker:9092"
            if isinstance(cluster, Exception):
                raise cluster
            assert isinstance(cluster, ClusterView)
            return cluster

        return check_project(tmp_path / "spark-pipeline.yml", ask)[2]

    return run


def line_of(definitions: str, text: str) -> int:
    """The line of the file in which a text stands."""
    lines = (HEAD + textwrap.dedent(definitions)).splitlines()
    (number,) = [number for number, line in enumerate(lines, start=1) if text in line]
    return number


def only(findings: list[Finding]) -> Finding:
    (finding,) = findings
    return finding


def test_a_right_project_has_no_mistakes(check: Check) -> None:
    assert check(ORDERS) == []


def test_the_project_that_init_writes_has_no_mistakes(tmp_path: Path) -> None:
    write_project(tmp_path / "shop", "shop", "broker:9092")
    project, definitions, findings = check_project(
        tmp_path / "shop" / "spark-pipeline.yml", lambda servers: ClusterView(dict(TOPICS))
    )
    assert findings == []
    assert project.name == "shop"
    assert {flow.name for flow in definitions.flows} == {"parsed", "to_quarantine", "to_by_host"}


MISTAKES = {
    "wrong topic": (
        ORDERS.replace('"orders")', '"order")'),
        '"order")',
        "wrong-topic",
        "there is no topic order",
        "did you mean orders?",
    ),
    "wrong column": (
        ORDERS.replace('f.col("value")', 'f.col("valu")'),
        'f.col("valu")',
        "wrong-column",
        "no column valu",
        "did you mean value?",
    ),
    "wrong column in SQL": (
        ORDERS.rstrip() + '.where("lien IS NOT NULL")\n',
        "lien",
        "wrong-column",
        "no column lien",
        "did you mean line?",
    ),
    "unknown option": (
        ORDERS.replace("startingOffsets=", "startingOfsets="),
        "startingOfsets",
        "wrong-option",
        "unknown option",
        "did you mean startingOffsets?",
    ),
    "no brokers": (
        ORDERS.replace("**KAFKA, ", ""),
        "subscribe",
        "wrong-option",
        "kafka.bootstrap.servers: required",
        'add .option("kafka.bootstrap.servers"',
    ),
    "unknown client setting": (
        ORDERS.replace("**KAFKA, ", '**{**KAFKA, "kafka.fetch.min.byte": "1"}, '),
        "fetch.min.byte",
        "wrong-option",
        "no client has such a setting",
        "did you mean kafka.fetch.min.bytes?",
    ),
    "sink without flow": (
        ORDERS + '\ndp.create_sink("out", "fairlead", {**KAFKA, "topic": "orders.out"})\n',
        "create_sink",
        "sink-without-flow",
        "nothing flows into sink out",
        '@dp.append_flow(target="out")',
    ),
    "flow to an undefined target": (
        ORDERS
        + """
dp.create_sink("out", "fairlead", {**KAFKA, "topic": "orders.out"})

@dp.append_flow(target="out")
def filled():
    return spark.readStream.table("orders").select(f.col("line").alias("value"))

@dp.append_flow(target="oot")
def lost():
    return spark.readStream.table("orders").select(f.col("line").alias("value"))
""",
        'target="oot"',
        "undefined-target",
        "flow lost goes to oot, which nothing defines",
        "did you mean out?",
    ),
    "read of an undefined dataset": (
        ORDERS + '\n@dp.table\ndef more():\n    return spark.readStream.table("ordrs")\n',
        '"ordrs"',
        "undefined-dataset",
        "nothing defines ordrs",
        "did you mean orders?",
    ),
    "duplicate name": (
        ORDERS + '\n@dp.temporary_view(name="Orders")\ndef again():\n    return '
        'spark.readStream.table("shop.all")\n',
        "temporary_view",
        "duplicate-name",
        "a second dataset or sink named Orders",
        "the first is in line 6",
    ),
    "batch read": (
        ORDERS.replace("readStream", "read"),
        "subscribe",
        "batch-read",
        "orders fills a streaming table with a batch read",
        "use spark.readStream",
    ),
    "aggregate without watermark": (
        ORDERS.rstrip() + '.groupBy("line").count()\n',
        "groupBy",
        "no-watermark",
        "without watermark",
        ".withWatermark(",
    ),
    "aggregate in SQL without watermark": (
        ORDERS
        + '\n@dp.table\ndef more():\n    return spark.sql("SELECT line, count(*) AS n FROM STREAM orders '
        'GROUP BY line")\n',
        "FROM STREAM",
        "no-watermark",
        "without watermark",
        "FROM STREAM orders WATERMARK",
    ),
    "watermark on a dataset": (
        ORDERS
        + '\n@dp.table\ndef more():\n    return spark.readStream.table("orders").withWatermark("line", "1 '
        'hour")\n',
        "withWatermark",
        "watermark-on-dataset",
        "withWatermark looks orders up before the pipeline has made it",
        "FROM STREAM orders WATERMARK",
    ),
    "a job in a definition": (
        ORDERS.rstrip() + ".count()\n",
        ".count()",
        "not-declarative",
        ".count() in a definition would run a job",
        "return the DataFrame",
    ),
    "a write in a definition": (
        ORDERS.rstrip() + '.writeStream.start("x")\n',
        "writeStream",
        "not-declarative",
        ".writeStream in a definition would write",
        "return the DataFrame",
    ),
    "a change of the session": (
        'spark.conf.set("spark.sql.shuffle.partitions", "4")\n' + ORDERS,
        "conf.set",
        "session-change",
        "spark.conf.set in a definition is refused",
        "configuration:",
    ),
    "no DataFrame": (
        ORDERS.replace("    return stream", "    stream"),
        "def orders",
        "no-return",
        "orders returns no DataFrame",
        "end it with return",
    ),
    "syntax error": (
        ORDERS.replace("def orders():", "def orders()"),
        "def orders()",
        "syntax-error",
        "not Python: expected ':'",
        "def orders()",
    ),
    "a table of another schema": (
        ORDERS.replace("@dp.table", '@dp.table(schema="key BINARY, text STRING")'),
        "schema=",
        "schema-mismatch",
        "has line and lacks text",
        "change schema=",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_has_a_line_a_rule_and_a_way_out(check: Check, name: str) -> None:
    definitions, text, rule, what, fix = MISTAKES[name]
    found = [one for one in check(definitions) if one.severity == "error"]
    finding = only([one for one in found if one.rule == rule])
    assert (finding.file, finding.line) == ("transformations/shop.py", line_of(definitions, text))
    assert what in finding.what
    assert fix in finding.fix
    assert {one.rule for one in found} <= {rule, "no-return"}


SINK = """
dp.create_sink("out", "fairlead", {**KAFKA, "topic": "orders.out"})

@dp.append_flow(target="out")
def written():
    stream = spark.readStream.format("fairlead").options(**KAFKA, subscribe="orders", startingOffsets="earliest").load()
    return stream.select(COLUMNS)
"""  # noqa: E501


@pytest.mark.parametrize(
    ("columns", "what", "fix"),
    [
        ('"key", f.col("value").alias("line")', "no column value", "to_json"),
        ('"key", "value", "offset"', "not offset", "drop it"),
        ('f.struct("key", "offset").alias("value")', "column value of written is struct", "f.to_json(...)"),
        ('f.length("value").alias("value")', "column value of written is int", '.cast("string")'),
    ],
)
def test_rows_that_the_sink_cannot_take_are_a_schema_mismatch(
    check: Check, columns: str, what: str, fix: str
) -> None:
    definitions = SINK.replace("COLUMNS", columns)
    finding = only(check(definitions))
    assert (finding.rule, finding.line) == ("schema-mismatch", line_of(definitions, "@dp.append_flow"))
    assert what in finding.what
    assert fix in finding.fix


def test_a_sink_needs_a_topic(check: Check) -> None:
    finding = only(check(SINK.replace(', "topic": "orders.out"', "").replace("COLUMNS", '"value"')))
    assert "sink out has no topic" in finding.what


def test_brokers_that_do_not_answer_are_told_where_they_are_named(check: Check) -> None:
    finding = only(check(ORDERS, cluster=ConnectionFailed("broker:9092: Connection refused")))
    assert (finding.file, finding.line, finding.rule) == ("spark-pipeline.yml", 4, "unreachable-broker")
    assert "fairlead up" in finding.fix


@pytest.mark.parametrize(("protocol", "asked"), [("SASL_SSL", False), ("plaintext", True)])
def test_brokers_that_want_tls_or_a_log_in_are_not_asked(check: Check, protocol: str, asked: bool) -> None:
    definitions = ORDERS.replace("**KAFKA", f'**KAFKA, **{{"kafka.security.protocol": "{protocol}"}}')
    assert definitions != ORDERS
    findings = check(definitions, cluster=ConnectionFailed("broker:9092: Connection refused"))
    assert bool(findings) is asked


def test_a_sinks_missing_topic_and_a_start_at_latest_are_warnings(check: Check) -> None:
    definitions = SINK.replace("COLUMNS", '"value"').replace(', startingOffsets="earliest"', "")
    findings = check(definitions, cluster=ClusterView({"orders": 3}))
    assert errors_of(findings) == []
    assert {one.rule for one in findings} == {"wrong-topic", "starts-at-latest"}


def test_a_partition_that_a_topic_does_not_have_is_told(check: Check) -> None:
    finding = only(check(ORDERS.replace('"subscribe", "orders"', '"assign", \'{"orders": [0, 7]}\'')))
    assert "topic orders has 3 partitions, no 7" in finding.what


def test_a_cycle_is_told_once(check: Check) -> None:
    definitions = ORDERS + "".join(
        f'\n@dp.table\ndef {name}():\n    return spark.readStream.table("{other}")\n'
        for name, other in (("ping", "pong"), ("pong", "ping"))
    )
    finding = only(check(definitions))
    assert (finding.rule, finding.line) == ("cycle", line_of(definitions, "def ping") - 1)
    assert "ping → pong → ping" in finding.what


@pytest.mark.parametrize(
    ("spec", "line", "rule", "what"),
    [
        (SPEC.replace("storage: file:///data/shop\n", ""), 1, "missing-checkpoint", "no storage"),
        (SPEC.replace("file:///data/shop", "data"), 2, "missing-checkpoint", "storage data is no URI"),
        (SPEC.replace("name: shop\n", ""), 1, "missing-name", "no name"),
        (SPEC.replace("storage:", "storge:"), 2, "unknown-key", "storge: no key"),
        (SPEC.replace('"broker:9092"', "9092"), 4, "bad-configuration", "Spark takes texts, not int"),
        (SPEC.replace("transformations/**", "transformation/**"), 5, "no-libraries", "no file is there"),
        (
            SPEC.replace("transformations/**", "transformations/**/*.py"),
            5,
            "no-libraries",
            "a folder with /** at its end",
        ),
        (SPEC.replace("storage: file", "storage:: file: "), 2, "bad-yaml", "not YAML"),
        ("- shop\n", 1, "bad-yaml", "keys and values"),
    ],
)
def test_mistakes_in_the_specification_have_a_line(
    check: Check, spec: str, line: int, rule: str, what: str
) -> None:
    findings = check(
        ""
        if rule == "bad-yaml"
        else ORDERS.replace("**KAFKA", '**{"kafka.bootstrap.servers": "broker:9092"}'),
        spec=spec,
    )
    finding = only([one for one in findings if one.rule == rule])
    assert (finding.file, finding.line) == ("spark-pipeline.yml", line)
    assert what in finding.what


def test_what_only_running_the_program_would_tell_is_left_alone(check: Check) -> None:
    definitions = """
    import shop_library

    SERVERS = shop_library.servers()

    for name in shop_library.names():
        dp.create_sink(f"out-{name}", "fairlead", {"kafka.bootstrap.servers": SERVERS, "topic": name})

        @dp.append_flow(name=f"to-{name}", target=f"out-{name}")
        def written():
            stream = spark.readStream.format("fairlead").option("kafka.bootstrap.servers", SERVERS).option("subscribe", name)
            return shop_library.parse(stream.option("startingOffsets", "earliest").load()).select("whatever", f.col("there.is"))

    @dp.append_flow(target="elsewhere")
    def more():
        return spark.readStream.table("unknown").where("a > b").select(shop_library.columns())
    """  # noqa: E501
    assert check(definitions) == []


def test_columns_are_followed_through_functions_and_variables(check: Check) -> None:
    definitions = """
    def parsed(frame, wanted):
        named = frame.withColumn("line", f.col("value").cast("string"))
        return named.select("line", named.key, named["offset"], f.expr("upper(topic) AS name"))

    @dp.table
    def orders():
        stream = spark.readStream.format("fairlead").options(**KAFKA, subscribe="orders", startingOffsets="earliest").load()
        rows = parsed(stream, 3)
        return rows.selectExpr("line", "name", "offset + 1 AS next").where("next > 3 AND partition = 1").drop("line")
    """  # noqa: E501
    finding = only(check(definitions))
    assert finding.line == line_of(definitions, "selectExpr")
    assert finding.what == "there is no column partition"
    assert "line, name, next" in finding.fix


def test_definitions_in_sql_count_too(check: Check) -> None:
    sql = "-- CREATE STREAMING TABLE no\nCREATE STREAMING TABLE big AS SELECT * FROM STREAM(orders);\n"
    sql += "CREATE FLOW f AS INSERT INTO bg SELECT * FROM STREAM big;\n"
    finding = only(
        check(ORDERS + '\n@dp.table\ndef more():\n    return spark.readStream.table("big")\n', sql=sql)
    )
    assert (finding.file, finding.line, finding.rule) == ("transformations/more.sql", 3, "undefined-target")


def test_a_specification_is_found_from_below(tmp_path: Path) -> None:
    write_project(tmp_path / "shop", "shop", "broker:9092")
    assert find_spec(tmp_path / "shop" / "transformations") == tmp_path / "shop" / "spark-pipeline.yml"
    with pytest.raises(ConfigError, match="no such file or folder"):
        find_spec(tmp_path / "shop" / "nothing")
    with pytest.raises(ConfigError, match="is not an empty folder"):
        write_project(tmp_path / "shop", "shop", "broker:9092")
