"""What `make test` runs of the fuzzer: the tapes that were kept, some fresh ones, and whether it
finds what is planted."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from fairlead_kafka.base.errors import DecodeError
from fairlead_kafka.broker.dispatch import REGISTRY
from fairlead_kafka.core.connection import Connection
from fairlead_kafka.records.decode_kernels import decode_records
from fairlead_kafka.security import server_bearer, server_scram
from fairlead_kafka.wire import ApiKey, FrameReader, response_correlation_id
from tests.fuzz import engine
from tests.fuzz.coverage import Coverage
from tests.fuzz.engine import CORPUS, attempt, fuzz, smallest
from tests.fuzz.tape import TAPE_MAX_BYTES, Tape, changed, fresh
from tests.fuzz.targets import TARGETS

FRESH_RUNS = {
    "wire": 40,
    "records": 60,
    "codecs": 60,
    "formats": 60,
    "security": 60,
    "logins": 60,
    "broker": 6,
    "rights": 6,
}
FRESH_RUNS_ELSE = 4
LOGIN_RUNS = 400
"""Keys and tokens are made anew in each process, so how soon a planted fault is met varies: within
100 runs for 40 seeds."""
CORPUS_MAX_BYTES = 300_000


@pytest.mark.parametrize("name", TARGETS)
def test_nothing_is_found_on_the_tapes_that_were_kept(name: str) -> None:
    TARGETS[name].prepare()
    for path in sorted((CORPUS / name).glob("*.bin")):
        _, finding = attempt(name, TARGETS[name].run, path.read_bytes())
        assert finding is None, f"{path.name}: {finding.what}\n{finding.trace}"


@pytest.mark.parametrize("name", TARGETS)
def test_nothing_is_found_on_fresh_tapes(name: str) -> None:
    TARGETS[name].prepare()
    outcome = fuzz(name, TARGETS[name].run, 1, runs=FRESH_RUNS.get(name, FRESH_RUNS_ELSE), guided=False)
    assert not outcome.findings, "\n".join(finding.trace for finding in outcome.findings.values())
    assert outcome.inputs >= outcome.runs


def test_the_corpus_is_small_and_belongs_to_targets() -> None:
    files = list(CORPUS.rglob("*.bin"))
    assert sum(path.stat().st_size for path in files) < CORPUS_MAX_BYTES
    assert {path.parent.name for path in files} <= set(TARGETS)


# --- The fuzzer itself


def test_behind_its_end_a_tape_says_the_plainest() -> None:
    tape = Tape(b"\xff\x01")
    assert tape.chance(1)
    assert (tape.below(300), tape.ended) == (256, True)
    assert (tape.pick("ab"), tape.chance(255), tape.raw(2), tape.byte()) == ("a", False, b"\0\0", 0)


def test_tapes_stay_short_and_the_same_dice_change_them_alike() -> None:
    def story() -> list[bytes]:
        rng = Random(3)
        pool = [fresh(rng)]
        for _ in range(300):
            pool.append(changed(rng, rng.choice(pool), pool))
        return pool

    assert story() == story()
    assert max(map(len, story())) <= TAPE_MAX_BYTES


def faulty(tape: Tape) -> int:
    if tape.byte() == 7 and tape.byte() > 200 and not tape.ended:
        raise KeyError("planted")
    return 3


def test_what_a_run_raises_is_found_once_and_made_small() -> None:
    outcome = fuzz("faulty", faulty, 1, runs=8000, guided=False)
    (finding,) = outcome.findings.values()
    assert finding.what.startswith("KeyError in test_corpus.faulty")
    assert smallest("faulty", faulty, finding).tape[0] == 7
    assert len(smallest("faulty", faulty, finding).tape) <= 3
    assert outcome.inputs > outcome.runs


def test_the_tape_of_the_slowest_run_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    spent_s, tapes = [0.0], list[bytes]()
    monkeypatch.setattr(
        engine, "time", SimpleNamespace(process_time=lambda: spent_s[0], monotonic=lambda: 0.0)
    )

    def run(tape: Tape) -> int:
        tapes.append(tape.data)
        spent_s[0] += 7.0 if len(tapes) == 3 else 0.5
        return 1

    outcome = fuzz("wire", run, 1, runs=5, guided=False)
    assert (outcome.slowest_s, outcome.slowest) == (7.0, tapes[2])


def test_coverage_counts_a_line_once() -> None:
    coverage = Coverage()
    counts = []
    for data in (b"\0\0\0\1a", b"\0\0\0\1b", b"\xff\xff\xff\xff"):
        with coverage, contextlib.suppress(DecodeError):
            FrameReader().feed(data)
        counts.append(coverage.take())
    assert counts[0] > 5
    assert counts[1] == 0
    assert counts[2] > 1


def findings_of(name: str, runs: int) -> list[str]:
    TARGETS[name].prepare()
    return list(fuzz(name, TARGETS[name].run, 1, runs=runs, guided=False).findings)


def test_twins_that_differ_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    sound = decode_records.reference

    def off_by_one(*arguments: Any) -> Any:
        fault, position = sound(*arguments)
        return fault, position + bool(fault)

    TARGETS["records"].prepare()
    monkeypatch.setattr(decode_records, "reference", off_by_one)
    assert any("AssertionError in target_records" in what for what in findings_of("records", 200))


def test_a_handler_that_raises_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def raises(*_: Any) -> None:
        raise KeyError("planted")

    for api_key, api in list(REGISTRY.items()):
        if api_key != ApiKey.API_VERSIONS:
            monkeypatch.setitem(REGISTRY, api_key, replace(api, handler=raises))
    assert any("logged KeyError" in what for what in findings_of("broker", 10))


def test_a_broker_that_believes_any_token_or_proof_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(server_bearer, "is_signed_by", lambda *_: True)
        assert any("target_logins.bearer" in what for what in findings_of("logins", LOGIN_RUNS))
    with monkeypatch.context() as patched:
        patched.setattr(server_scram.hmac, "compare_digest", lambda *_: True)
        assert any("target_logins.scram" in what for what in findings_of("logins", LOGIN_RUNS))
    assert not findings_of("logins", 60)


def test_a_client_that_believes_any_correlation_id_or_any_bytes_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answer: Callable[..., Any] = Connection.answer

    def credulous(connection: Connection, frame: memoryview) -> Any:
        if connection.in_flight and len(frame) >= 4:
            connection.in_flight[0].correlation_id = response_correlation_id(frame)
        try:
            return answer(connection, frame)
        except DecodeError as error:
            raise KeyError("not caught") from error

    monkeypatch.setattr(Connection, "answer", credulous)
    assert findings_of("admin", 12)
