"""Writes `wire/messages.pyi` out of `wire/schemas.txt`: a class for each request, response and
structure: `python src/schemas/stubs.py`.

A class has the fields of all versions. Structures are classes within their message's, as in Kafka's
Java (`ProduceRequestData.TopicProduceData`). Type checkers read the file; at run time
`wire/messages.py` makes the classes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from fairlead_kafka.wire.schema import Field, Structure
from fairlead_kafka.wire.schemas import REQUEST, RESPONSE, known_schemas

FILE = Path(__file__).parents[1] / "fairlead_kafka" / "wire" / "messages.pyi"
_TYPES = {
    "bool": "bool",
    "float64": "float",
    "uuid": "UUID",
    "string": "str",
    "bytes": "Buffer",
    "records": "Buffer",
}
_HEADER = '''"""Kafka's requests and responses as type checkers see them. \
Written by `src/schemas/stubs.py`; edits here are lost."""

from uuid import UUID

from fairlead_kafka.wire.message import ApiMessage, RequestMessage
from fairlead_kafka.wire.primitives import Buffer
'''


@dataclass
class Class:
    """One structure, in all versions of its message: the type of each field."""

    name: str
    base: str = "ApiMessage"
    types: dict[str, str] = field(default_factory=dict)

    def text(self, indent: str, inner: list[str]) -> Iterator[str]:
        """The lines of the class in the stub file; `inner` are those of the classes within it."""
        yield f"{indent}class {self.name}({self.base}):"
        yield from inner
        for name, kind in self.types.items():
            yield f"{indent}    {name}: {kind}"
        arguments = "".join(f", {name}: {kind} = ..." for name, kind in self.types.items())
        yield f"{indent}    def __init__(self{', *' if arguments else ''}{arguments}) -> None: ..."


class Module:
    """Type stubs of all classes of one request or response."""

    def __init__(self, name: str, direction: str) -> None:
        response = name.removesuffix("Request") + "Response"
        self.body = Class(name, f"RequestMessage[{response}]" if direction == REQUEST else "ApiMessage")
        self.structures: dict[str, Class] = {}

    def add(self, structure: Structure, known: Class) -> None:
        """Enter the fields that a structure has in one version."""
        for each in structure.fields:
            kind = self._kind(each)
            before = known.types.get(each.name)
            known.types[each.name] = kind if before is None else _wider(before, kind)

    def _kind(self, one: Field) -> str:
        if one.kind == "structure":
            assert one.structure is not None
            inner = self.structures.setdefault(one.structure.name, Class(one.structure.name))
            self.add(one.structure, inner)
            kind = f"{self.body.name}.{one.structure.name}"
        else:
            kind = _TYPES.get(one.kind, "int")
        kind = f"list[{kind}]" if one.array else kind
        return f"{kind} | None" if one.nullable else kind

    def text(self) -> Iterator[str]:
        """The lines of the stub file for this message."""
        inner = [line for each in self.structures.values() for line in each.text("    ", [])]
        yield from self.body.text("", inner)


def _wider(one: str, other: str) -> str:
    """The type of a field that is `one` in some versions and `other` in others. ValueError if there
    is none."""
    if one.removesuffix(" | None") != other.removesuffix(" | None"):
        raise ValueError(f"a field is {one} in one version and {other} in another")
    return max(one, other, key=len)


def lines() -> Iterator[str]:
    """The lines of the stub file `wire/messages.pyi`."""
    yield _HEADER
    modules: dict[tuple[int, str], Module] = {}
    for schema in known_schemas():
        module = modules.setdefault(
            (schema.api_key, schema.direction), Module(schema.body.name, schema.direction)
        )
        module.add(schema.body, module.body)
    for api_key in sorted({api_key for api_key, _ in modules}):
        for direction in (RESPONSE, REQUEST):  # a request's base names its response
            yield from modules[api_key, direction].text()
            yield ""


if __name__ == "__main__":
    FILE.write_text("\n".join(lines()), encoding="utf-8")
