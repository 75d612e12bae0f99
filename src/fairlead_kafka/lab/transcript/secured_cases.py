"""Requests that every user of the secured transcript tries: rows of `Case`, in modules of their own
(`secured_topics` and the like).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from fairlead_kafka.lab.transcript.holders import (
    DENIED,
    HOLDERS,
    NOBODY,
    PAIRS,
    PREFIXED,
    SECRET,
    SINGLES,
    SPECIALS,
    Holder,
)
from fairlead_kafka.lab.transcript.steps import Body, FieldValue, Seen, Step, request
from fairlead_kafka.wire import ApiKey, Message

_OF_THE_CLUSTER = ("everything", "blindfolded", "from-elsewhere", "not-from-here")
"""Users with several rights that are asked about the cluster itself."""


class Case(NamedTuple):
    """One request of the matrix.

    `make(user)` gives a user's step. `kinds`: resource types that the rights for it may depend on;
    all users with one right on such a resource send it. `needs`: users with exactly the rights that
    it needs; their variants send it, too.
    """

    make: Make
    kinds: str
    needs: str

    def steps(self) -> Iterator[Step]:
        """One step for each user, on a connection of its own."""
        for user in self.users():
            step = self.make(HOLDERS[user])
            yield replace(step, name=f"{step.name}, by {user}", on=user)

    def users(self) -> list[str]:
        """Names of the users that send the request."""
        kinds = self.kinds.split()
        exactly = [user + variant for user in self.needs.split() for variant in ("", DENIED, PREFIXED)]
        singles = [one.user for one in SINGLES if one.user.split("-")[0] in kinds]
        several = [one.user for one in (*PAIRS, *SPECIALS)] if kinds != ["cluster"] else _OF_THE_CLUSTER
        return list(dict.fromkeys([NOBODY, *exactly, *singles, *several]))


Rows = Callable[[list[str], Seen], FieldValue]
"""A function that gives a field's rows for names of things."""
Make = Callable[[Holder], Step]
"""A function that makes a user's step."""


def about(
    name: str,
    api: ApiKey,
    versions: Iterable[int],
    field: str,
    rows: Rows,
    things: Iterable[str],
    **fields: FieldValue | Callable[[Holder], FieldValue],
) -> Make:
    """A function that makes a step whose `field` lists `things`: the user's own, by short names, or
    SECRET.
    """

    def make(holder: Holder) -> Step:
        names = [one if one == SECRET else holder.own(one) for one in things]
        filled: dict[str, Body] = {
            key: value(holder) if callable(value) else value for key, value in fields.items()
        }
        filled[field] = lambda seen: rows(names, seen)
        return request(name, api, versions, filled)

    return make


def mine(make: Make) -> Make:
    """A function that makes the step whose answer lists everything there is; see `Step.mine`."""
    return lambda holder: replace(make(holder), mine=True)


def of(thing: str = "own") -> Callable[[Holder], str]:
    """A function that gives the full name of a user's own resource with the short name `thing`."""
    return lambda holder: holder.own(thing)


def partitions(list_name: str, topic_field: str = "name", ids: bool = False, **row: FieldValue) -> Rows:
    """A function that makes a row with partition 0 for each topic, with the topic's id if `ids`;
    without `row` the partition is a bare number."""

    def rows(names: list[str], seen: Seen) -> list[Message]:
        parts = [0] if not row else [Message(**row)]
        found = [Message(**{topic_field: name, list_name: parts}) for name in names]
        for name, one in zip(names, found, strict=True) if ids else ():
            one.topic_id = seen.id(name)
        return found

    return rows


def bare(names: list[str], _seen: Seen) -> list[str]:
    """The names as rows, as they are."""
    return names


def named(field: str = "name", **more: FieldValue) -> Rows:
    """A function that makes one row for each name: the name in `field`, and `more` fields."""
    return lambda names, _seen: [Message(**{field: name}, **more) for name in names]


TRIO = ("own", "missing", SECRET)
"""Things of a request: one on which the user may have a right, one that does not exist, and one on
which it never has a right.
"""
