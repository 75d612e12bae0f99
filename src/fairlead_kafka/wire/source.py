"""A small writer of Python source, for the compilers of decoders and encoders."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import FunctionType


class Source:
    """Lines with their indentation, fresh names, and the constants the lines refer to."""

    def __init__(self) -> None:
        self.names: dict[str, object] = {}
        self._lines: list[str] = []
        self._depth = 0
        self._counter = 0

    def line(self, text: str) -> None:
        """Add one line of code."""
        self._lines.append("    " * self._depth + text)

    @contextmanager
    def block(self, header: str) -> Iterator[None]:
        """Add a compound statement; what is added inside the `with` is its body."""
        self.line(header)
        self._depth += 1
        yield
        self._depth -= 1

    def fresh(self, stem: str) -> str:
        """A variable's name that begins with `stem` and was not used before."""
        self._counter += 1
        return f"{stem}{self._counter}"

    def constant(self, stem: str, value: object) -> str:
        """A fresh name, beginning with `stem`, that stands for `value` in the compiled function."""
        name = self.fresh(stem)
        self.names[name] = value
        return name

    def text(self) -> str:
        """All lines as one text."""
        return "\n".join(self._lines) + "\n"


def compile_function(source: Source, name: str, label: str) -> FunctionType:
    """Compile the source and return its function `name`; `label` stands for the file in tracebacks,
    `__source__` keeps the text."""
    text = source.text()
    namespace: dict[str, object] = dict(source.names)
    exec(compile(text, f"<{label}>", "exec"), namespace)
    function = namespace[name]
    assert isinstance(function, FunctionType), f"the source defines {name}"
    function.__dict__["__source__"] = text
    return function
