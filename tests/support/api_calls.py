"""Calling a handler as a client would: the request and the answer go through the wire's bytes, in
one version."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import fairlead_kafka.broker.api  # noqa: F401  (fills the registry)
from fairlead_kafka.base.principal import ANONYMOUS
from fairlead_kafka.broker.dispatch import REGISTRY
from fairlead_kafka.wire import (
    ApiKey,
    Message,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
    peek_request,
)
from tests.support.group_rig import GroupRig


def _frame(buffers: list[Any]) -> memoryview:
    return memoryview(b"".join(bytes(buffer) for buffer in buffers))[4:]


def versions(api_key: ApiKey) -> range:
    """The versions served."""
    return range(REGISTRY[api_key].low, REGISTRY[api_key].high + 1)


def call(rig: GroupRig, api_key: ApiKey, version: int, **fields: Any) -> Message:
    """The answer to one request, which must come at once."""
    frame = _frame(encode_request(api_key, version, 7, "client", Message(**fields)))
    request = decode_request(frame, peek_request(frame))
    answers: list[Message | None] = []
    broker: Any = rig.broker
    broker.coordinator = rig.coordinator
    session: Any = SimpleNamespace(
        peer="127.0.0.1:5000",
        authorizer=None,
        toll=None,
        client_id="test",
        host="127.0.0.1",
        software=None,
        may=lambda *_asked, **_quiet: True,
        listener="PLAINTEXT",
        principal=ANONYMOUS,
        login=None,
    )
    REGISTRY[api_key].handler(broker, request, session, answers.append)
    assert len(answers) == 1, f"{len(answers)} answers"
    assert answers[0] is not None
    return decode_response(api_key, version, _frame(encode_response(api_key, version, 7, answers[0])))
