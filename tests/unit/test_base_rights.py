"""What a missing right is told as."""

from __future__ import annotations

import pytest

from fairlead_kafka.base.rights import broker_error


@pytest.mark.parametrize(
    ("code", "what", "said"),
    [
        (
            29,
            "topic 't'",
            "topic 't': not authorized for the topic; the user of this client needs the right to Write on "
            "the topic",
        ),
        (
            30,
            "g: not authorized for the group",
            "g: not authorized for the group; the user of this client needs the right to Write on the group",
        ),
        (3, "topic 't'", "topic 't'"),
    ],
)
def test_the_operation_is_named_for_what_is_a_missing_right(code: int, what: str, said: str) -> None:
    error = broker_error(code, what, "Write")
    assert (error.code, error.context) == (code, said)
