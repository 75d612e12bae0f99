"""Generated lines of an access log, the same on every machine, with repetitions like real text, for
compression."""

from __future__ import annotations

import random
from bisect import bisect
from itertools import accumulate

HOSTS = 400
"""Number of client addresses; a few of them make most of the requests."""
_PATHS = (
    "/",
    "/index.html",
    "/api/orders",
    "/api/orders/items",
    "/api/customers",
    "/search?q=",
    "/images/logo.png",
    "/style.css",
    "/login",
)
_STATUSES = ("200",) * 17 + ("304", "404", "500")
_AGENTS = (
    "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 "
    "Safari/537.36",
    "curl/8.9.1",
    "-",
)


def log_lines(count: int, seed: int = 1) -> list[bytes]:
    """Make `count` lines in the combined log format, without line ends, some 150 bytes each."""
    rng = random.Random(seed)
    hosts = [
        f"{rng.randrange(1, 224)}.{rng.randrange(256)}.{rng.randrange(256)}.{rng.randrange(1, 255)}"
        for _ in range(HOSTS)
    ]
    weights = list(accumulate(1 / (rank + 1) for rank in range(HOSTS)))
    lines = []
    for number in range(count):
        host = hosts[bisect(weights, rng.random() * weights[-1])]
        path = rng.choice(_PATHS)
        if path[-1] in "=s":
            path += f"{'' if path[-1] == '=' else '/'}{rng.randrange(1_000_000)}"
        when = f"21/Nov/2026:{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02} +0000"
        size = int(rng.lognormvariate(8.5, 1.6))
        lines.append(
            f'{host} - - [{when}] "GET {path} HTTP/1.1" {rng.choice(_STATUSES)} {size} "-" '
            f'"{rng.choice(_AGENTS)}"'.encode()
        )
    return lines


def values_of_size(size: int, count: int) -> list[bytes]:
    """Make `count` values of exactly `size` bytes, cut in turn from log lines joined by blanks."""
    wanted = size * count
    text = b" ".join(log_lines(wanted // 80 + 1))
    while len(text) < wanted:
        text += b" " + text
    return [text[start : start + size] for start in range(0, wanted, size)]
