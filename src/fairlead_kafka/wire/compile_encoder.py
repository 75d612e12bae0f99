"""Writes, per schema, the source of a function that encodes it, and compiles it: `encode(message,
header) -> list of buffers`.

The counterpart of `compile_decoder`: straight-line code, neighbouring numbers packed by one
`struct` call. Record batches are put into the list of buffers as they are; everything between them
is joined. A name that no version of a structure has raises `UsageError`; names that other versions
have are dropped, and remembered so that the check stays one set operation.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from uuid import UUID

from fairlead_kafka.base.errors import UsageError
from fairlead_kafka.wire import primitives
from fairlead_kafka.wire.diagnose import diagnose
from fairlead_kafka.wire.lineage import Lineage, lineage
from fairlead_kafka.wire.message import ApiMessage, Message
from fairlead_kafka.wire.primitives import Buffer
from fairlead_kafka.wire.schema import FIXED_FORMATS, FIXED_SIZES_BYTES, Field, Schema, Structure
from fairlead_kafka.wire.source import Source, compile_function

_NOT_ENCODABLE = "(StructError, TypeError, AttributeError, ValueError, OverflowError)"


Encode = Callable[[ApiMessage, bytes], list[Buffer]]
EncodePart = Callable[[ApiMessage], bytes]


def compile_encoder(schema: Schema) -> Encode:
    """`encode(message, header) -> list[Buffer]`, with the size prefix. The function raises
    `UsageError` that names the field that does not fit or that no version has."""
    writer = _EncoderWriter(schema.api_key, schema.direction)
    source = writer.source
    with source.block("def encode(m, header):"):
        source.line("out = []")
        source.line("parts = [header]")
        source.line("w = parts.append")
        source.line("total = 0")
        with source.block("try:"):
            writer.structure(schema.body, (), "m")
            source.line("chunk = join(parts)")
            source.line("total += len(chunk)")
            with source.block("if out:"):
                source.line("out[0] = pack_size(total) + out[0]")
                source.line("out.append(chunk)")
                source.line("return out")
            source.line("return [pack_size(total) + chunk]")
        writer.blame(schema.body, f"{schema.body.name} v{schema.version}")
    encode: Encode = compile_function(source, "encode", f"{schema.body.name} v{schema.version} encoder")
    return encode


def _compile_structure(
    api_key: int, direction: str, structure: Structure, path: tuple[str, ...]
) -> EncodePart:
    """`encode(message) -> bytes` for a structure on its own."""
    writer = _EncoderWriter(api_key, direction)
    with writer.source.block("def encode(m):"):
        writer.source.line("parts = []")
        writer.source.line("w = parts.append")
        writer.structure(structure, path, "m")
        writer.source.line("return join(parts)")
    encode: EncodePart = compile_function(writer.source, "encode", f"{structure.name} encoder")
    return encode


def _require(names: set[str], owner: Lineage, fields: Mapping[str, object]) -> None:
    """Raise `UsageError` if a name in `fields` is in no version of the structure. A name that
    another version has is added to `names`, and found there the next time."""
    for name in fields:
        if name not in names:
            owner.require(name)
            names.add(name)


class _EncoderWriter:
    """Writes the source of an encoder: statements that pass the encoded pieces of a message to
    `w`."""

    def __init__(self, api_key: int, direction: str) -> None:
        self.source = Source()
        self._api_key = api_key
        self._direction = direction
        self._write = "w"
        self.source.names |= {
            "join": primitives.join,
            "varint": primitives.encode_varint,
            "string_varint": primitives.encode_string_varint,
            "ONE_BYTE": primitives.ONE_BYTE,
            "record_size_bytes": primitives.record_size_bytes,
            "append_records": primitives.append_records,
            "pack_size": struct.Struct(">i").pack,
            "pack": struct.pack,
            "require": _require,
            "StructError": struct.error,
            "UsageError": UsageError,
            "NO_UUID": UUID(int=0),
        }

    def blame(self, body: Structure, label: str) -> None:
        """Write `body`'s handler, which turns a failed encoding into an error that names the
        field."""
        blame = self.source.constant("diagnose", diagnose)
        structure = self.source.constant("structure", body)
        with self.source.block(f"except {_NOT_ENCODABLE} as error:"):
            self.source.line(
                f"raise UsageError({label!r} + ': ' + {blame}({structure}, m, error)) from error"
            )

    def structure(self, structure: Structure, path: tuple[str, ...], message: str) -> None:
        """Write the statements that encode the structure held by the variable `message`."""
        source = self.source
        fields, get = source.fresh("d"), source.fresh("get")
        names = source.constant("NAMES", {field.name for field in structure.fields})
        owner = source.constant("owner", lineage(self._api_key, self._direction, path))
        source.line(f"{fields} = {message}.__dict__")
        with source.block(f"if not {names}.issuperset({fields}):"):
            source.line(f"require({names}, {owner}, {fields})")
        source.line(f"{get} = {fields}.get")
        run: list[tuple[str, str]] = []
        for field in structure.sequence():
            if not field.array and field.kind in FIXED_SIZES_BYTES:
                run.append(self._fixed(field, self._fetch(field, get)))
                continue
            self._variable_size(field, structure.flexible, self._fetch(field, get), run, (*path, field.name))
        self._flush(run)
        if structure.flexible:
            self._tags(structure, get, path)

    def _fetch(self, field: Field, get: str) -> str:
        """The expression that gives a field's value, or its default if the message lacks it."""
        default = field.default
        if default is ...:
            return f"{get}({field.name!r}, {self.source.constant('EMPTY', Message())})"
        if isinstance(default, (bool, int, str, bytes, tuple)) or default is None:
            return f"{get}({field.name!r}, {default!r})"
        return f"{get}({field.name!r}, {self.source.constant('DEFAULT', default)})"

    @staticmethod
    def _fixed(field: Field, value: str) -> tuple[str, str]:
        if field.kind == "uuid":
            return "16s", f"({value} or NO_UUID).bytes"
        return FIXED_FORMATS[field.kind], value

    def _flush(self, run: list[tuple[str, str]]) -> None:
        """Write the statement that packs the numbers in `run`, and empty `run`."""
        if run:
            pack = self.source.constant(
                "pack", struct.Struct(">" + "".join(letter for letter, _ in run)).pack
            )
            self.source.line(f"{self._write}({pack}({', '.join(value for _, value in run)}))")
            run.clear()

    def _length(self, flexible: bool, letter: str, run: list[tuple[str, str]]) -> None:
        """Write the statements that encode the length `n`, after the numbers in `run`; `letter` "h"
        is the length of a string."""
        if not flexible:
            run.append((letter, "n"))
            self._flush(run)
            return
        self._flush(run)
        varint = "string_varint" if letter == "h" else "varint"
        self.source.line(f"{self._write}(ONE_BYTE[n + 1] if n < 127 else {varint}(n + 1))")

    def _variable_size(
        self, field: Field, flexible: bool, value: str, run: list[tuple[str, str]], path: tuple[str, ...]
    ) -> None:
        source = self.source
        variable = source.fresh("v")
        source.line(f"{variable} = {value}")
        if field.kind == "structure" and not field.array:
            self._single(field, variable, run, path)
            return
        letter = "h" if field.kind == "string" and not field.array else "i"
        if not field.nullable:
            self._content(field, flexible, variable, letter, run, path)
            return
        pending = list(run)
        with source.block(f"if {variable} is None:"):
            source.line("n = -1")
            self._length(flexible, letter, pending)
        with source.block("else:"):
            self._content(field, flexible, variable, letter, run, path)

    def _single(self, field: Field, variable: str, run: list[tuple[str, str]], path: tuple[str, ...]) -> None:
        assert field.structure is not None
        if not field.nullable:
            self._flush(run)
            self.structure(field.structure, path, variable)
            return
        run.append(("b", f"-1 if {variable} is None else 1"))  # KIP-893
        self._flush(run)
        with self.source.block(f"if {variable} is not None:"):
            self.structure(field.structure, path, variable)

    def _content(
        self,
        field: Field,
        flexible: bool,
        variable: str,
        letter: str,
        run: list[tuple[str, str]],
        path: tuple[str, ...],
    ) -> None:
        source = self.source
        if field.array:
            source.line(f"n = len({variable})")
            self._length(flexible, letter, run)
            self._elements(field, flexible, variable, path)
        elif field.kind == "records":
            source.line(
                f"n = {variable}.nbytes if type({variable}) is memoryview else record_size_bytes({variable})"
            )
            self._length(flexible, letter, run)
            source.line("chunk = join(parts)")
            source.line("parts.clear()")
            source.line("total += len(chunk) + n")
            source.line("out.append(chunk)")
            with source.block(f"if n and type({variable}) is memoryview:"):
                source.line(f"out.append({variable})")
            with source.block("else:"):
                source.line(f"append_records(out, {variable})")
        else:
            if field.kind == "string":
                source.line(f"{variable} = {variable}.encode()")
            source.line(f"n = len({variable})")
            self._length(flexible, letter, run)
            source.line(f"{self._write}({variable})")

    def _elements(self, field: Field, flexible: bool, variable: str, path: tuple[str, ...]) -> None:
        source = self.source
        if field.kind in FIXED_FORMATS:
            letter = FIXED_FORMATS[field.kind]
            short = f"pack_short_{letter}"
            source.names.setdefault(short, primitives.packers(letter))
            source.line(
                f"{self._write}({short}[n](*{variable}) if n < {primitives.SHORT_LIST} else "
                f"pack(f'>{{n}}{letter}', *{variable}))"
            )
            return
        item = source.fresh("i")
        with source.block(f"for {item} in {variable}:"):
            if field.structure is not None:
                self.structure(field.structure, path, item)
            elif field.kind == "uuid":
                source.line(f"{self._write}(({item} or NO_UUID).bytes)")
            else:
                element = Field(field.name, field.kind, False, False, None, None)
                self._variable_size(element, flexible, item, [], path)

    def _tags(self, structure: Structure, get: str, path: tuple[str, ...]) -> None:
        source = self.source
        if not structure.tagged():
            source.line(f"{self._write}(b'\\0')")
            return
        tags = source.fresh("tags")
        source.line(f"{tags} = []")
        for field in structure.tagged():
            variable = source.fresh("v")
            value = f"{get}({field.name!r})" if field.default is ... else self._fetch(field, get)
            source.line(f"{variable} = {value}")
            default = self._default_body(field, (*path, field.name))
            with source.block(f"if {variable} is not None{self._differs(field, variable)}:"):
                self._tag(field, variable, tags, default, (*path, field.name))
        source.line(f"{self._write}(varint(len({tags})) + join({tags}) if {tags} else b'\\0')")

    @staticmethod
    def _differs(field: Field, variable: str) -> str:
        """The expression of a cheap test that a tagged value is not its default; a default must not
        be written (KIP-482)."""
        if field.default is ... or field.default is None:
            return ""
        if field.array:
            return f" and len({variable})"
        return f" and {variable} != {'NO_UUID' if field.kind == 'uuid' else repr(field.default)}"

    def _default_body(self, field: Field, path: tuple[str, ...]) -> bytes | None:
        """The encoded bytes of a structure with all fields at their defaults; None for a field with
        another default. Comparing these bytes compares every field at once."""
        if field.default is not ... or field.structure is None:
            return None
        encoded: bytes = _compile_structure(self._api_key, self._direction, field.structure, path)(Message())
        return encoded

    def _tag(
        self, field: Field, variable: str, tags: str, default: bytes | None, path: tuple[str, ...]
    ) -> None:
        source = self.source
        parts = source.fresh("parts")
        source.line(f"{parts} = []")
        outer, self._write = self._write, f"{parts}.append"
        if not field.array and field.kind in FIXED_SIZES_BYTES:
            self._flush([self._fixed(field, variable)])
        else:
            self._variable_size(field, True, variable, [], path)
        self._write = outer
        body = source.fresh("body")
        source.line(f"{body} = join({parts})")
        append = f"{tags}.append(varint({field.tag}) + varint(len({body})) + {body})"
        if default is None:
            source.line(append)
        else:
            with source.block(f"if {body} != {default!r}:"):
                source.line(append)
