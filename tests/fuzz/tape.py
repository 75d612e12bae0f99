"""The tape: an input as bytes that choices are read off. Behind its end there are zeros, and zero
always chooses the plainest."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")

FRESH_SIZES_BYTES = (32, 128, 512, 2048)


class Tape:
    """Choices from bytes, in order."""

    __slots__ = ("at", "data")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    @property
    def ended(self) -> bool:
        """Nothing but zeros follows."""
        return self.at >= len(self.data)

    def byte(self) -> int:
        """0 to 255."""
        at = self.at
        self.at = at + 1
        return self.data[at] if at < len(self.data) else 0

    def below(self, stop: int) -> int:
        """0 to stop - 1; of at most 65,536."""
        if stop <= 256:
            return self.byte() % stop
        return (self.byte() << 8 | self.byte()) % stop

    def pick(self, options: Sequence[T]) -> T:
        """One of the options; the first is the plainest."""
        return options[self.below(len(options))]

    def chance(self, of_256: int) -> bool:
        """True in so many of 256 cases; never behind the end."""
        return self.byte() >= 256 - of_256

    def raw(self, size_bytes: int) -> bytes:
        """So many bytes."""
        at = self.at
        self.at = at + size_bytes
        return self.data[at : at + size_bytes].ljust(size_bytes, b"\0")


def fresh(rng: Random) -> bytes:
    """A tape nobody has seen."""
    return rng.randbytes(rng.randrange(8, rng.choice(FRESH_SIZES_BYTES)))


def changed(rng: Random, tape: bytes, others: Sequence[bytes]) -> bytes:
    """A tape a little different: bytes changed, taken out, doubled, put in, or its end taken from
    another."""
    data = bytearray(tape)
    for _ in range(rng.choice((1, 1, 2, 4, 8))):
        at = rng.randrange(len(data) + 1)
        how = rng.random()
        if how < 0.45 and at < len(data):
            data[at] = rng.choice((0, 1, 127, 128, 255, rng.randrange(256), data[at] ^ 1 << rng.randrange(8)))
        elif how < 0.6:
            del data[at : at + rng.randrange(1, 9)]
        elif how < 0.7:
            data[at:at] = rng.randbytes(rng.randrange(1, 9))
        elif how < 0.8:
            data[at:at] = data[at : at + rng.randrange(1, 65)]
        elif how < 0.9:
            data += rng.randbytes(rng.randrange(1, 257))
        else:
            other = rng.choice(others)
            data[at:] = other[rng.randrange(len(other) + 1) :]
    return bytes(data[:TAPE_MAX_BYTES])


TAPE_MAX_BYTES = 4096
"""Longer runs find nothing that shorter ones do not, and are slow to replay."""
