"""Names in a request, and the places in its answer for an error about each: derived from Kafka's
schemas for every API and version.

A request and its answer mirror each other: Produce asks for topics with partitions, and is answered
topics with partitions, each with an error code. `layout` pairs the arrays of the two. Arrays pair
if what identifies an element of the answer (a name, an index, an id) is what an element of the
request carries. An error goes to the deepest element that pairs and has a code, or to the code of
the whole answer if there is none. `divide` splits a request into the part that is answered with an
error and the part that is served.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from functools import cache
from typing import NamedTuple
from uuid import UUID

from fairlead_kafka.wire import ApiKey, ApiMessage, Message
from fairlead_kafka.wire.schema import Field, Structure
from fairlead_kafka.wire.schemas import REQUEST, RESPONSE, load_schema


class Kind(StrEnum):
    """Kinds of names that a part of a request may have."""

    TOPIC = "topic"
    PARTITION = "partition"
    GROUP = "group"
    TRANSACTIONAL_ID = "transactional_id"


Names = Mapping[Kind, object]
"""Names of one part of a request, those of the parts around it included."""
TopicName = Callable[[UUID], str | None]
"""The name of a topic by its id; None: there is no such topic."""
_KEYS = (Kind.GROUP, Kind.TRANSACTIONAL_ID)
"""Kinds of FindCoordinator's keys, by `key_type`."""

_ERROR_FIELDS = ("error_code", "partition_error_code")
_MESSAGE_FIELD = "error_message"
_SAME = (
    ("name", "topic", "topic_name"),
    ("index", "partition", "partition_index", "partition_id"),
    ("name", "user"),
)
"""Names that Kafka's definitions have for the same thing on the two sides."""
_IDENTIFIES = frozenset(
    {
        *(name for names in _SAME for name in names),
        *("topic_id", "group_id", "member_id", "group_instance_id", "transactional_id", "producer_id"),
        *("resource_type", "resource_name", "feature", "key", "entity", "log_dir"),
    }
)
"""Fields by which an element of an answer says what it is about."""
_NO_VALUE = {
    **dict.fromkeys(("base_offset", "high_watermark", "committed_offset", "low_watermark", "end_offset"), -1),
    **dict.fromkeys(("producer_id", "producer_epoch", "generation_id", "node_id", "leader_id"), -1),
    "timestamp": -1,
    "offset": -1,
    "records": None,
}
"""Values that Kafka has beside an error where a schema's default is another."""
_NOT_ASKED = ("forgotten_topics_data",)
"""Arrays of requests that ask for nothing."""


class Answer(NamedTuple):
    """An array of an answer whose elements correspond to those of an array of the request."""

    array: str
    structure: Structure
    copied: tuple[tuple[str | None, str], ...]
    """(field of the request's element, field of the answer's); None: the element is the value."""
    error: str | None
    """The field of the error code; None: it has none of its own."""


class Level(NamedTuple):
    """One array of a request: which fields name its elements, and where the answer has their
    errors."""

    array: str
    names: tuple[tuple[str | None, Kind], ...]
    """(field, what it names); None: the element is the name."""
    answer: Answer | None
    """Place where an element is answered; None: nowhere, or through the levels within."""
    inner: tuple[Level, ...]


class Layout(NamedTuple):
    """Places of names in a request of one version of an API, and of errors in its answer."""

    levels: tuple[Level, ...]
    names: tuple[tuple[str | None, Kind], ...]
    """Fields of the request itself that are names."""
    whole: Structure
    error: str | None
    """The code of the whole answer; None: there is none."""
    copied: tuple[str, ...]

    def kinds(self) -> frozenset[Kind]:
        """The kinds of names that a request of this layout has, of topics or groups, say."""
        found = {kind for _, kind in self.names}
        waiting = list(self.levels)
        for level in waiting:
            found.update(kind for _, kind in level.names)
            waiting.extend(level.inner)
        return frozenset(found)

    @property
    def answers_errors(self) -> bool:
        """True if there is a place for an error."""
        return self.error is not None or any(map(_has_place, self.levels))


@cache
def layout(api_key: ApiKey, version: int) -> Layout:
    """The layout of an API in one version."""
    asked = load_schema(api_key, version, REQUEST).body
    answered = load_schema(api_key, version, RESPONSE).body
    return Layout(
        tuple(_levels(asked, answered)),
        tuple((field.name, kind) for field in asked.fields if not field.array for kind in _kinds(field, "")),
        answered,
        _error_field(answered),
        tuple(
            field.name
            for field in answered.fields
            if field.name == "member_id" and any(one.name == field.name for one in asked.fields)
        ),
    )


def _levels(asked: Structure, answered: Structure) -> Iterator[Level]:
    for field in asked.fields:
        if not field.array or field.name in _NOT_ASKED:
            continue
        answer = next(
            filter(None, (_pair(field, other, asked) for other in answered.fields if other.array)), None
        )
        inner: tuple[Level, ...] = ()
        if field.structure is not None:
            # What does not pair may hold what does: AlterReplicaLogDirs answers topics, and is
            # asked for paths with topics.
            inner = tuple(_levels(field.structure, answered if answer is None else answer.structure))
        level = Level(field.name, tuple(_element_names(field)), answer, inner)
        if answer is not None or level.names or inner:
            yield level


def _pair(field: Field, other: Field, asked: Structure) -> Answer | None:
    """The answer's array `other` as the answers to the request's array `field`; None if its
    elements do not correspond."""
    if other.structure is None or not _holds_error(other.structure):
        return None
    identity = [one for one in other.structure.fields if one.name in _IDENTIFIES]
    error = _error_field(other.structure)
    if not identity:  # answered in the order of the request, which has nothing else (CreateAcls)
        alone = sum(one.array for one in asked.fields) == 1
        return Answer(other.name, other.structure, (), error) if alone else None
    if field.structure is None:
        first = next((one for one in identity if one.kind == field.kind), None)
        return None if first is None else Answer(other.name, other.structure, ((None, first.name),), error)
    copied = []
    for one in identity:
        source = _source(one, field.structure)
        if source is not None:
            copied.append((source, one.name))
    return Answer(other.name, other.structure, tuple(copied), error) if copied else None


def _source(field: Field, asked: Structure) -> str | None:
    """The field of a request's element that `field` of the answer's element repeats; None if it
    repeats none."""
    by_name = {one.name: one for one in asked.fields}
    names = [field.name, *(name for names in _SAME if field.name in names for name in names)]
    for name in names:
        found = by_name.get(name)
        if found is not None and (found.kind, found.array) == (field.kind, field.array):
            return name
    return None


def _holds_error(structure: Structure) -> bool:
    return _error_field(structure) is not None or any(
        field.array and field.structure is not None and _holds_error(field.structure)
        for field in structure.fields
    )


def _error_field(structure: Structure) -> str | None:
    return next((field.name for field in structure.fields if field.name in _ERROR_FIELDS), None)


def _has_place(level: Level) -> bool:
    return (level.answer is not None and level.answer.error is not None) or any(map(_has_place, level.inner))


def _kinds(field: Field, array: str) -> tuple[Kind, ...]:
    """Kinds of names that a field of an element of `array` holds."""
    if field.name == "key" and not array:
        return _KEYS
    if field.name == "group_id":
        return (Kind.GROUP,)
    if field.name in ("transactional_id", "v3_and_below_transactional_id"):
        return (Kind.TRANSACTIONAL_ID,)
    if "topic" in array and (field.name in _SAME[0] or field.name == "topic_id"):
        return (Kind.TOPIC,)
    return (Kind.PARTITION,) if "partition" in array and field.name in _SAME[1] else ()


_NAMED_ELEMENTS = {
    "topic_names": (Kind.TOPIC,),
    "groups": (Kind.GROUP,),
    "groups_names": (Kind.GROUP,),
    "group_ids": (Kind.GROUP,),
    "transactional_ids": (Kind.TRANSACTIONAL_ID,),
    "coordinator_keys": _KEYS,
}
"""Arrays of requests whose elements are names."""


def _element_names(field: Field) -> Iterator[tuple[str | None, Kind]]:
    if field.structure is not None:
        for one in field.structure.fields:
            if not one.array:
                yield from ((one.name, kind) for kind in _kinds(one, field.name))
    elif "partition" in field.name:
        yield None, Kind.PARTITION
    else:
        yield from ((None, kind) for kind in _NAMED_ELEMENTS.get(field.name, ()))


# --- Messages


class Reader(NamedTuple):
    """Reader of the names (topics, groups and others) in one request."""

    topic_name: TopicName
    hidden: tuple[Kind, ...] = ()
    """Kinds of which FindCoordinator's keys are not."""

    def named(self, names: Iterable[tuple[str | None, Kind]], element: object) -> dict[Kind, object]:
        """The names that one element of the request has, by kind."""
        found: dict[Kind, object] = {}
        for field, kind in names:
            value = element if field is None else getattr(element, field)
            if isinstance(value, UUID):
                value = self.topic_name(value) if value.int else None
            if value is not None and kind not in self.hidden and (value != "" or kind not in found):
                found[kind] = value
        return found


def reader(request: ApiMessage, topic_name: TopicName) -> Reader:
    """A Reader of the names in `request`; `topic_name(id)` gives the name of a topic."""
    key_type = getattr(request, "key_type", None)
    if key_type is None:
        return Reader(topic_name)
    return Reader(topic_name, tuple(kind for number, kind in enumerate(_KEYS) if number != key_type))


def parts(shape: Layout, request: ApiMessage, reader: Reader) -> Iterator[Names]:
    """The names of each deepest part of a request (a partition, say); of a request without parts,
    its own names."""
    yield from _parts(shape.levels, request, reader.named(shape.names, request), reader)


def _parts(levels: tuple[Level, ...], element: object, around: Names, reader: Reader) -> Iterator[Names]:
    empty = True
    for level in levels:
        for one in getattr(element, level.array) or ():
            empty = False
            names = {**around, **reader.named(level.names, one)}
            yield from _parts(level.inner, one, names, reader)
    if empty:
        yield around


class Division(NamedTuple):
    """A request split in two: the answer with errors for some parts, and the request for the
    rest."""

    errors: Message | None
    """The answer to what was taken; None: nothing was, or there is no place for its errors."""
    rest: ApiMessage | None
    """The request without it; None: nothing is left."""


class Taken(NamedTuple):
    """The parts of a request that an error is answered for, and the error."""

    takes: Callable[[Names], bool]
    code: int
    message: str | None
    whole: bool
    """The error goes to the code of the whole answer, or as near to it as there is one."""


def divide(shape: Layout, request: ApiMessage, taken: Taken, reader: Reader) -> Division:
    """Split a request into the parts that an error is answered for (`taken`) and the rest."""
    around = reader.named(shape.names, request)
    found: dict[str, list[Message]] = {}
    rest = None
    if not (taken.whole and shape.error is not None):
        rest = _divide(shape.levels, request, around, _Dividing(taken, reader), found)
    if not found:
        return Division(_whole(shape, request, taken), None)
    return Division(_filled(shape.whole, found), rest)


class _Dividing(NamedTuple):
    taken: Taken
    reader: Reader


def _whole(shape: Layout, request: ApiMessage, taken: Taken) -> Message | None:
    if shape.error is None:
        return None
    own: dict[str, object] = {name: getattr(request, name) for name in shape.copied}
    return _with_error(shape.whole, shape.error, own, taken)


def _with_error(structure: Structure, error: str, own: dict[str, object], taken: Taken) -> Message:
    message = _filled(structure, own)
    setattr(message, error, taken.code)
    if any(field.name == _MESSAGE_FIELD and field.nullable for field in structure.fields):
        setattr(message, _MESSAGE_FIELD, taken.message)
    return message


def _filled(structure: Structure, own: Mapping[str, object]) -> Message:
    """A message of `structure` with the fields `own`, and in all others the values that Kafka has
    beside an error."""
    fields = {
        field.name: _NO_VALUE[field.name]
        for field in structure.fields
        if field.name in _NO_VALUE and not field.array and (_NO_VALUE[field.name] == -1 or field.nullable)
    }
    return Message(**{**fields, **own})


def _divide(
    levels: tuple[Level, ...],
    element: ApiMessage,
    around: Names,
    how: _Dividing,
    found: dict[str, list[Message]],
) -> ApiMessage | None:
    """Put the answers for the parts of `element` that are taken into `found`. Returns the element
    without those parts; None if nothing is left."""
    left: dict[str, object] = {}
    any_left = False
    for level in levels:
        kept = []
        for one in getattr(element, level.array) or ():
            names = {**around, **how.reader.named(level.names, one)}
            remains = _divide_one(level, one, names, how, found)
            if remains is not None:
                kept.append(remains)
        left[level.array] = kept
        any_left = any_left or bool(kept)
    return changed(element, left) if any_left else None


def _divide_one(
    level: Level, one: object, names: Names, how: _Dividing, found: dict[str, list[Message]]
) -> object | None:
    """Divide one element, as `_divide` does; returns its rest, None if nothing is left."""
    answer, taken = level.answer, how.taken
    own_place = answer is not None and answer.error is not None
    deeper = isinstance(one, ApiMessage) and any(
        _has_place(inner) and getattr(one, inner.array) for inner in level.inner
    )
    if deeper and not (taken.whole and own_place):
        assert isinstance(one, ApiMessage)
        within: dict[str, list[Message]] = {}
        remains = _divide(level.inner, one, names, how, within)
        if within and answer is None:
            for array, rows in within.items():
                found.setdefault(array, []).extend(rows)
        elif within and answer is not None:
            row = _filled(answer.structure, {**_copied(answer, one), **within})
            found.setdefault(answer.array, []).append(row)
        return remains
    if answer is None or answer.error is None or not _any_taken(level, one, names, how):
        return one
    row = _with_error(answer.structure, answer.error, _copied(answer, one), taken)
    found.setdefault(answer.array, []).append(row)
    return None


def _any_taken(level: Level, one: object, names: Names, how: _Dividing) -> bool:
    return any(map(how.taken.takes, _parts(level.inner, one, names, how.reader)))


def _copied(answer: Answer, one: object) -> dict[str, object]:
    return {to: one if field is None else getattr(one, field) for field, to in answer.copied}


def changed(message: ApiMessage, fields: Mapping[str, object]) -> ApiMessage:
    """A copy of `message` with other values for `fields`."""
    made: ApiMessage = type(message).__new__(type(message))
    made.__dict__ = {**message.__dict__, **fields}
    return made


def joined(shape: Layout, answer: ApiMessage, errors: ApiMessage) -> ApiMessage:
    """An answer with the elements of `errors` added, each beside those of the same topic or
    group."""
    return _joined(_answered(shape.levels), answer, errors)


def _answered(levels: Iterable[Level]) -> Iterator[tuple[Answer, tuple[Level, ...]]]:
    """The places of answers in the levels, each with the levels within it."""
    for level in levels:
        if level.answer is None:
            yield from _answered(level.inner)
        else:
            yield level.answer, level.inner


def _joined(
    places: Iterable[tuple[Answer, tuple[Level, ...]]], answer: ApiMessage, errors: ApiMessage
) -> ApiMessage:
    fields: dict[str, object] = {}
    for place, inner in places:
        rows = getattr(errors, place.array, None)
        if not rows or place.array in fields:
            continue
        identity = [to for _, to in place.copied]
        into = list(getattr(answer, place.array, None) or ())
        for row in rows:
            at = next((at for at, one in enumerate(into) if _alike(one, row, identity)), None)
            if at is None or not inner:
                into.append(row)
            else:
                into[at] = _joined(_answered(inner), into[at], row)
        fields[place.array] = into
    return changed(answer, fields)


def _alike(one: ApiMessage, other: ApiMessage, fields: list[str]) -> bool:
    return all(getattr(one, name, None) == getattr(other, name, None) for name in fields)
