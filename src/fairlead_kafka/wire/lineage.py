"""One structure through all versions of its API: the field names of any version, and the default of
a missing one.

An encoder drops a field that its version lacks, but a name that no version has is an error; a
decoded message has defaults for fields that its version lacks. Both look names up here, seldom,
because they remember names that are known.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from fairlead_kafka.base.errors import UsageError
from fairlead_kafka.base.nearest import nearest
from fairlead_kafka.wire.message import Message
from fairlead_kafka.wire.schema import Field, Structure
from fairlead_kafka.wire.schemas import load_schema, versions_of


class Lineage:
    """The structure at `path` (field names from the body down) in every version of one direction of
    an API."""

    def __init__(self, api_key: int, direction: str, path: tuple[str, ...]) -> None:
        self._place = (api_key, direction, path)
        self._found: dict[str, Field] = {}
        lowest, highest = versions_of(api_key)
        self._versions = range(highest, lowest - 1, -1)
        name = next((structure.name for structure in self._structures()), "Message")
        self.message_class: type[Message] = type(
            name, (Message,), {"_default_of": staticmethod(self.default_of)}
        )

    def _structures(self) -> Iterator[Structure]:
        """The structure in each version that has it, newest first; a schema is loaded when the
        iterator gets to it."""
        api_key, direction, path = self._place
        for version in self._versions:
            structure: Structure | None = load_schema(api_key, version, direction).body
            for name in path:
                structure = (
                    next((field.structure for field in structure.fields if field.name == name), None)
                    if structure
                    else None
                )
            if structure is not None:
                yield structure

    def find(self, name: str) -> Field | None:
        """The field of this name in the newest version that has it."""
        if name not in self._found:
            for structure in self._structures():
                for field in structure.fields:
                    if field.name == name:
                        self._found[name] = field
                        return field
            return None
        return self._found[name]

    def default_of(self, name: str) -> object:
        """The value of field `name` in a message without it. AttributeError: no version has it."""
        field = self.find(name)
        if field is None:
            raise AttributeError(self._complaint(name))
        if field.array:
            return None if field.default is None else []
        if field.default is ...:
            api_key, direction, path = self._place
            return lineage(api_key, direction, (*path, name)).message_class()
        return field.default

    def require(self, name: str) -> None:
        """Raise `UsageError` if no version has a field `name`."""
        if self.find(name) is None:
            raise UsageError(self._complaint(name))

    def _complaint(self, name: str) -> str:
        known = sorted({field.name for structure in self._structures() for field in structure.fields})
        close = nearest(name, known)
        hint = f"did you mean {close!r}?" if close else f"it has {', '.join(known)}"
        return f"no version of {self.message_class.__name__} has a field {name!r}; {hint}"


@cache
def lineage(api_key: int, direction: str, path: tuple[str, ...]) -> Lineage:
    """The one `Lineage` of a structure."""
    return Lineage(api_key, direction, path)
