"""Writes, per schema, the source of a function that decodes it, and compiles it: `decode(data,
position) -> Message`.

The function is straight-line code: neighbouring numbers are taken by one `struct` call, nested
structures are loops in place, messages are made from a dict display. There is no per-field call and
no reflection at run time. Every length is compared with the rest of the frame before memory is
allocated, so that a list of claimed 2^31 elements is refused at once. Elements of arrays are
counted in a request, because a few bytes of a frame may take some hundred bytes of memory.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from fairlead_kafka.base.errors import DecodeError
from fairlead_kafka.base.hooks import hook
from fairlead_kafka.base.limits import STRING_MAX_BYTES
from fairlead_kafka.wire import primitives
from fairlead_kafka.wire.lineage import lineage
from fairlead_kafka.wire.message import Message
from fairlead_kafka.wire.schema import (
    FIXED_FORMATS,
    FIXED_SIZES_BYTES,
    Field,
    Schema,
    Structure,
    minimum_field_bytes,
    minimum_size_bytes,
)
from fairlead_kafka.wire.source import Source, compile_function

_TOO_SHORT = "the frame ends inside the {}"


Decode = Callable[[memoryview, int], Message]
DecodeCounting = Callable[[memoryview, int], tuple[Message, int]]


def compile_decoder(schema: Schema) -> Decode:
    """`decode(data, position) -> Message`. The function raises `DecodeError`, and nothing else, for
    bytes that are not the schema's."""
    decode: Decode = compile_function(*_written(schema, None))
    return decode


def compile_counting_decoder(schema: Schema, elements_max: int) -> DecodeCounting:
    """`decode(data, position) -> (Message, elements)`: how many elements all arrays have together.

    The function raises `DecodeError`, and nothing else, for bytes that are not the schema's, and
    for more than `elements_max` elements.
    """
    decode: DecodeCounting = compile_function(*_written(schema, elements_max))
    return decode


def _written(schema: Schema, elements_max: int | None) -> tuple[Source, str, str]:
    """The Python source of a decoder, the name of the function in it, and its label in
    tracebacks."""
    writer = _DecoderWriter(schema, elements_max)
    label = f"{schema.body.name} v{schema.version}"
    writer.source.names |= {
        "new": object.__new__,
        "DecodeError": DecodeError,
        "StructError": struct.error,
        "varint": primitives.decode_varint,
        "skip_tags": primitives.skip_tags,
        "make_uuid": primitives.decode_uuid,
        "refuse": primitives.refuse_length,
        "unpack_from": struct.unpack_from,
    }
    source = writer.source
    with source.block("def decode(data, p):"):
        source.line("end = len(data)")
        with source.block("try:"):
            if elements_max is not None:
                source.line(f"room = {elements_max}")
            variable = writer.structure(schema.body, ())
            with source.block("if p != end:"):
                source.line(f"raise DecodeError(f'{{end - p}} bytes are left over after the {label}', p)")
            source.line(
                f"return {variable}" if elements_max is None else f"return {variable}, {elements_max} - room"
            )
        with source.block("except (IndexError, StructError):"):
            source.line(f"raise DecodeError({_TOO_SHORT.format(label)!r}, p) from None")
        with source.block("except UnicodeDecodeError as error:"):
            source.line(
                f"raise DecodeError(f'text in the {label} is not UTF-8: {{error.reason}}', p) from None"
            )
    return source, "decode", f"{label} decoder"


class _DecoderWriter:
    """Writes the source of a decoder: statements that read `data` from position `p` on and move
    `p`."""

    def __init__(self, schema: Schema, elements_max: int | None) -> None:
        self.source = Source()
        self._schema = schema
        self._elements_max = elements_max

    def structure(self, structure: Structure, path: tuple[str, ...]) -> str:
        """Write the statements that decode a structure; returns the variable that holds the message
        then."""
        variables: dict[str, str] = {}
        run: list[tuple[Field, str]] = []
        for field in structure.sequence():
            variable = self.source.fresh("v")
            variables[field.name] = variable
            if not field.array and field.kind in FIXED_SIZES_BYTES:
                run.append((field, variable))
                continue
            length = self._flush(run, self._length_format(field, structure.flexible))
            self._variable_size(field, structure.flexible, variable, length, (*path, field.name))
        self._flush(run, "")
        fields = self.source.fresh("d")
        self.source.line(
            f"{fields} = {{{', '.join(f'{name!r}: {variable}' for name, variable in variables.items())}}}"
        )
        if structure.flexible:
            self._tags(structure, fields, path)
        message = self.source.fresh("m")
        owner = lineage(self._schema.api_key, self._schema.direction, path).message_class
        self.source.line(f"{message} = new({self.source.constant('C', owner)})")
        self.source.line(f"{message}.__dict__ = {fields}")
        return message

    @hook("wire: no string is longer than an int16 can say")
    def string_max_bytes(self) -> int:
        """The longest string that is read, in bytes of UTF-8."""
        return STRING_MAX_BYTES

    @staticmethod
    def _length_format(field: Field, flexible: bool) -> str:
        """The `struct` format of the fixed-size length in front of the field, which is read along
        with the numbers before it; "" if there is none."""
        if field.kind == "structure" and not field.array:
            return "b" if field.nullable else ""
        if flexible:
            return ""
        return "h" if field.kind == "string" and not field.array else "i"

    def _flush(self, run: list[tuple[Field, str]], length_format: str) -> str:
        """Write the statement that reads the fixed-size fields of `run` and, with them, a length;
        returns the length's variable."""
        formats = ["16s" if field.kind == "uuid" else FIXED_FORMATS[field.kind] for field, _ in run]
        targets = [variable for _, variable in run]
        if length_format:
            formats.append(length_format)
            targets.append("n")
        if formats:
            layout = struct.Struct(">" + "".join(formats))
            unpack = self.source.constant("unpack", layout.unpack_from)
            self.source.line(f"{', '.join(targets)}, = {unpack}(data, p)")
            self.source.line(f"p += {layout.size}")
        for field, variable in run:
            if field.kind == "uuid":
                self.source.line(f"{variable} = make_uuid({variable})")
        run.clear()
        return "n" if length_format else ""

    def _variable_size(
        self, field: Field, flexible: bool, variable: str, length: str, path: tuple[str, ...]
    ) -> None:
        source = self.source
        if field.kind == "structure" and not field.array:
            self._single(field, variable, path)
            return
        if not length:
            # Compact: an unsigned varint of length + 1, 0 for null. Nearly always one byte.
            source.line("n = data[p] - 1")
            source.line("p += 1")
            with source.block("if n > 126:"):
                source.line("n, p = varint(data, p - 1)")
                source.line("n -= 1")
                if field.kind == "string" and not field.array:
                    with source.block(
                        f"if n > {self.string_max_bytes()}:"
                    ):  # as in Kafka's own readers: only the length is compact
                        source.line(f"raise refuse({field.name!r}, n, p)")
        with source.block("if n < 0:"):
            if field.nullable:
                with source.block("if n != -1:"):
                    source.line(f"raise refuse({field.name!r}, n, p)")
                source.line(f"{variable} = None")
            else:
                source.line(f"raise refuse({field.name!r}, n, p)")
        with source.block("else:"):
            if field.array:
                self._array(field, flexible, variable, path)
            else:
                self._blob(field, variable)

    def _single(self, field: Field, variable: str, path: tuple[str, ...]) -> None:
        assert field.structure is not None
        if not field.nullable:
            self.source.line(f"{variable} = {self.structure(field.structure, path)}")
            return
        with self.source.block("if n < 0:"):  # KIP-893
            self.source.line(f"{variable} = None")
        with self.source.block("else:"):
            self.source.line(f"{variable} = {self.structure(field.structure, path)}")

    def _blob(self, field: Field, variable: str) -> None:
        source = self.source
        source.line("q = p + n")
        with source.block("if q > end:"):
            source.line(f"raise refuse({field.name!r}, n, p)")
        value = {"string": "str(data[p:q], 'utf-8')", "bytes": "bytes(data[p:q])", "records": "data[p:q]"}[
            field.kind
        ]
        source.line(f"{variable} = {value}")
        source.line("p = q")

    def _array(self, field: Field, flexible: bool, variable: str, path: tuple[str, ...]) -> None:
        source = self.source
        if field.kind in FIXED_FORMATS:
            size_bytes = FIXED_SIZES_BYTES[field.kind]
            source.line(f"q = p + n * {size_bytes}" if size_bytes > 1 else "q = p + n")
            with source.block("if q > end:"):
                source.line(f"raise refuse({field.name!r}, n, p)")
            self._count(field)
            letter = FIXED_FORMATS[field.kind]
            short = f"unpack_short_{letter}"
            source.names.setdefault(short, primitives.unpackers(letter))
            with source.block(f"if n < {primitives.SHORT_LIST}:"):
                source.line(f"{variable} = [*{short}[n](data, p)]")
            with source.block("else:"):
                source.line(f"{variable} = [*unpack_from(f'>{{n}}{letter}', data, p)]")
            source.line("p = q")
            return
        element = Field(field.name, field.kind, False, False, None, ..., field.structure)
        if field.structure is not None:
            least = minimum_size_bytes(field.structure)
        else:
            least = minimum_field_bytes(element, flexible)
        with source.block(f"if n * {least} > end - p:"):
            source.line(f"raise refuse({field.name!r}, n, p)")
        self._count(field)
        source.line(f"{variable} = []")
        append = source.fresh("a")
        source.line(f"{append} = {variable}.append")
        with source.block("for _ in range(n):"):
            source.line(f"{append}({self._element(element, flexible, path)})")

    def _count(self, field: Field) -> None:
        """Write the statements that count an array's elements before memory is taken for them, and
        refuse too many."""
        if self._elements_max is None:
            return
        self.source.line("room -= n")
        with self.source.block("if room < 0:"):
            text = (
                f"{field.name} has {{n}} elements, which makes more than {self._elements_max} in one message"
            )
            self.source.line(f"raise DecodeError(f{text!r}, p)")

    def _element(self, element: Field, flexible: bool, path: tuple[str, ...]) -> str:
        if element.structure is not None:
            return self.structure(element.structure, path)
        variable = self.source.fresh("v")
        if element.kind in FIXED_SIZES_BYTES:
            self._flush([(element, variable)], "")
        else:
            self._variable_size(
                element, flexible, variable, self._flush([], self._length_format(element, flexible)), path
            )
        return variable

    def _tags(self, structure: Structure, fields: str, path: tuple[str, ...]) -> None:
        source = self.source
        source.line("n = data[p]")
        source.line("p += 1")
        with source.block("if n:"):
            source.line("n, p = varint(data, p - 1)")
            if not structure.tagged():
                source.line("p = skip_tags(data, p, n)")
                return
            stop = source.fresh("stop")
            with source.block("for _ in range(n):"):
                source.line("tag, p = varint(data, p)")
                source.line("n, p = varint(data, p)")
                source.line(f"{stop} = p + n")
                with source.block(f"if {stop} > end:"):
                    source.line(f"raise refuse('a tagged field of {structure.name}', n, p)")
                keyword = "if"
                for field in structure.tagged():
                    with source.block(f"{keyword} tag == {field.tag}:"):
                        variable = self._tagged(field, (*path, field.name))
                        source.line(f"{fields}[{field.name!r}] = {variable}")
                        with source.block(f"if p != {stop}:"):
                            source.line(
                                f"raise DecodeError(f'{field.name} does not fill its tagged field: {{{stop} "
                                "- p} bytes apart', p)"
                            )
                    keyword = "elif"
                with source.block("else:"):
                    source.line(f"p = {stop}")

    def _tagged(self, field: Field, path: tuple[str, ...]) -> str:
        if field.array or field.kind not in FIXED_SIZES_BYTES:
            variable = self.source.fresh("v")
            length = self._flush([], self._length_format(field, True))
            self._variable_size(field, True, variable, length, path)
            return variable
        variable = self.source.fresh("v")
        self._flush([(field, variable)], "")
        return variable
