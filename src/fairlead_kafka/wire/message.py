"""`Message`: a request or response outside this package, of one shape for all versions of an
API."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

R_co = TypeVar("R_co", covariant=True)


class ApiMessage:
    """A bag of attributes named as Kafka's JSON definitions name them, in snake_case:
    `Message(topics=[Message(name="a")])`.

    Numbers (error codes, durations and times in ms included) are ints, text is str, arrays are
    lists, ids are `uuid.UUID` (all zeros for none), nested structures are Messages; record batches
    are buffers. A decoded message gives the schema's default for a field that its version does not
    carry, so a reader need not know which version it got; for any other name it raises
    `AttributeError`. Two messages are equal if they agree in every field that either of them holds.
    """

    __hash__ = None  # type: ignore[assignment]
    _default_of: ClassVar[Callable[[str], object] | None] = None

    def __init__(self, **fields: object) -> None:
        self.__dict__ = fields

    if not TYPE_CHECKING:  # type checkers know each message's fields (`messages.pyi`)

        def __getattr__(self, name: str) -> object:
            # Reached only for names that are not in __dict__.
            default_of = type(self)._default_of
            if default_of is None or name.startswith("_"):
                raise AttributeError(
                    f"{type(self).__name__} has no field {name!r}; it holds "
                    f"{', '.join(self.__dict__) or 'none'}"
                )
            return default_of(name)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ApiMessage):
            return NotImplemented
        missing = object()
        names = self.__dict__.keys() | other.__dict__.keys()
        return all(getattr(self, name, missing) == getattr(other, name, missing) for name in names)

    def __reduce__(self) -> tuple[object, ...]:
        # The classes of decoded messages are made on the fly; what travels is the plain bag.
        return _restore, (self.__dict__,)

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in self.__dict__.items())
        return f"{type(self).__name__}({fields})"


class RequestMessage(ApiMessage, Generic[R_co]):
    """A request whose response is an `R_co`; only type checkers know which."""


class Message(ApiMessage):
    """An `ApiMessage` for code that serves any API: type checkers let it have every field."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

        def __setattr__(self, name: str, value: object) -> None: ...


def _restore(fields: dict[str, object]) -> Message:
    return Message(**fields)
