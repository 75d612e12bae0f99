"""A text that is never shown: passwords, keys, tokens."""

from __future__ import annotations

HIDDEN = "[hidden]"
"""Text shown in place of a secret (Kafka's `org.apache.kafka.common.config.types.Password`)."""


class Secret:
    """A text that `repr`, `str`, `format` and JSON encoders cannot show. A secret equals another
    with the same text. Pickles contain the text."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """The text itself. Ask for it where it is used, and keep it nowhere."""
        return self._text

    def __repr__(self) -> str:
        return HIDDEN

    __str__ = __repr__

    def __bool__(self) -> bool:
        return bool(self._text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __reduce__(self) -> tuple[object, ...]:
        return Secret, (self._text,)
