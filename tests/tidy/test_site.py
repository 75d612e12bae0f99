"""Every error has a remedy, which names what there is. The site is built in
`tests/end_to_end/test_documents.py`."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest

import fairlead_kafka
from fairlead_kafka.base.codes import TABLE
from fairlead_kafka.base.config_broker import BROKER_CONFIGS
from fairlead_kafka.base.config_client import CLIENT_CONFIGS
from fairlead_kafka.spark.option_table import OPTIONS

ROOT = Path(__file__).parents[2]
COMMAND_PAGE = (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def generator() -> Any:
    spec = importlib.util.spec_from_file_location("generate_docs", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def test_every_exception_and_every_error_code_has_a_remedy(generator: Any) -> None:
    exceptions = (*generator.EXCEPTIONS, *generator.ELSEWHERE)
    assert set(generator.remedies("exceptions")) == {one.__name__ for one in exceptions}
    assert set(generator.remedies("codes")) == {each.name for each in TABLE.values()}


def test_remedies_name_settings_commands_and_methods_that_there_are(generator: Any) -> None:
    options = {option.name for option in OPTIONS}
    wrong = []
    for text in (*generator.remedies("exceptions").values(), *generator.remedies("codes").values()):
        for named in re.findall(r"`([^`]+)`", text):
            name, _, method = named.removeprefix("kafka.").partition("=")[0].partition("Admin.")
            if method:
                known = hasattr(fairlead_kafka.Admin, method)
            elif named.startswith("fairlead "):
                known = named.split(" -")[0] in COMMAND_PAGE
            elif re.fullmatch(r"[a-z]+(\.[a-z]+)+", name):
                known = any(name in each.keys for each in (CLIENT_CONFIGS, BROKER_CONFIGS))
            else:
                known = not re.fullmatch(r"[a-z]+([A-Z][a-z]+)+", name) or name in options
            if not known:
                wrong.append(named)
    assert not wrong


def test_a_cause_says_more_than_the_name_of_its_code() -> None:
    bare = [each.name for each in TABLE.values() if each.meaning == each.name.lower().replace("_", " ")]
    assert not bare
