"""Frames of admin calls that send requests to the coordinators of groups or transactional ids: of
those that the call names, or of all on every broker."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from fairlead_kafka.admin.scripts import AdminScript, Done, Outcome, Refused
from fairlead_kafka.base.codes import ErrorCode, policy
from fairlead_kafka.base.errors import BrokerError, ItemsFailed, UnsupportedVersion
from fairlead_kafka.core.connection import R
from fairlead_kafka.core.coordinator_lookup import KeyType, find_coordinators
from fairlead_kafka.core.group_offsets import LAST_VERSIONS_WITH_NAMES
from fairlead_kafka.core.metadata import Metadata
from fairlead_kafka.core.script import Ask, Pause, ask_all
from fairlead_kafka.core.topic_listing import ask_metadata
from fairlead_kafka.wire import ApiKey, RequestMessage
from fairlead_kafka.wire.messages import ListGroupsResponse, ListTransactionsResponse

T = TypeVar("T")
Listed = TypeVar("Listed", ListGroupsResponse, ListTransactionsResponse)


def of_every_broker(what: str, api_key: ApiKey, message: RequestMessage[Listed]) -> AdminScript[list[Listed]]:
    """A script: the answer of each live broker to the same request. A broker that cannot answer now
    is asked again.

    BrokerError, whose text says that `what` was listed, for an error code that is not retriable;
    UnsupportedVersion if a broker does not have the API.
    """
    answer = yield from ask_metadata([])
    waiting = {broker.node_id for broker in answer.brokers}
    found: list[Listed] = []
    while waiting:
        nodes = sorted(waiting)
        trouble: Exception | None = None
        answers = yield from ask_all([Ask(api_key, message, node_id) for node_id in nodes])
        for node_id, said in zip(nodes, answers, strict=True):
            if isinstance(said, UnsupportedVersion):
                raise said
            if isinstance(said, Exception):
                trouble = said
                continue
            error = (
                BrokerError(said.error_code, f"listing {what} of broker {node_id}")
                if said.error_code
                else None
            )
            if error is not None and not error.retriable:
                raise error
            trouble = error or trouble
            if error is None:
                waiting.discard(node_id)
                found.append(said)
        if trouble is not None:
            yield Pause(trouble, refresh=True)
    return found


def per_coordinated(
    what: str,
    key_type: KeyType,
    metadata: Metadata,
    keys: Sequence[str],
    ask: Callable[[list[str]], Sequence[tuple[ApiKey, RequestMessage[R]]]],
    read: Callable[[int, R], Iterable[tuple[str, Outcome[T]]]],
) -> AdminScript[dict[str, T]]:
    """A script: {key: result}, of the coordinators of groups or transactional ids.

    `ask` makes the requests about the keys of one coordinator: one for all, or one for each. `read`
    takes one answer apart; an answer about one key need not name it. Raises ItemsFailed if any key
    failed, once all are completed.
    """
    nodes: dict[str, int] = {}
    results: dict[str, T] = {}
    errors: dict[str, BrokerError] = {}
    while open_keys := [key for key in dict.fromkeys(keys) if key not in results and key not in errors]:
        trouble: Exception | None = None
        lost = [key for key in open_keys if key not in nodes]
        for key, found in (yield from find_coordinators(metadata, key_type, lost)).items() if lost else ():
            if isinstance(found, int):
                nodes[key] = found
            elif isinstance(found, BrokerError) and not found.retriable:
                errors[key] = found
            else:
                trouble = found
        asked = _requests(open_keys, nodes, ask)
        answers = (yield from ask_all([one for _, one in asked])) if asked else []
        for (mine, one), answer in zip(asked, answers, strict=True):
            if isinstance(answer, UnsupportedVersion):
                raise answer
            assert one.node_id is not None
            rows = [] if isinstance(answer, Exception) else list(read(one.node_id, answer))
            outcomes = dict(rows if len(mine) > 1 else [(mine[0], row) for _, row in rows])
            for key in mine:
                row = outcomes.get(
                    key, Refused(ErrorCode.UNKNOWN_SERVER_ERROR, f"the answer left out {key_type.named(key)}")
                )
                if isinstance(answer, Exception):
                    nodes.pop(key)
                    trouble = answer
                elif isinstance(row, Done):
                    results[key] = row.result
                elif BrokerError(row.code).retriable:
                    nodes.pop(key)
                    trouble = BrokerError(row.code, key_type.named(key))
                else:
                    errors[key] = BrokerError(row.code, row.message or policy(row.code).meaning)
        if trouble is not None:
            yield Pause(trouble)
    if errors:
        raise ItemsFailed(what, errors, results)
    return {key: results[key] for key in keys}


def _requests(
    keys: Sequence[str],
    nodes: Mapping[str, int],
    ask: Callable[[list[str]], Sequence[tuple[ApiKey, RequestMessage[R]]]],
) -> list[tuple[list[str], Ask[R]]]:
    """The requests to coordinators, each with the keys that it is about: all keys of one
    coordinator, or, if `ask` makes a request for each key, one key."""
    by_node: dict[int, list[str]] = {}
    for key in keys:
        if key in nodes:
            by_node.setdefault(nodes[key], []).append(key)
    found: list[tuple[list[str], Ask[R]]] = []
    for node_id, mine in by_node.items():
        made = ask(mine)
        shares = [mine] if len(made) == 1 else [[key] for key in mine]
        for share, (api_key, message) in zip(shares, made, strict=True):
            found.append(
                (
                    share,
                    Ask(
                        api_key,
                        message,
                        node_id,
                        fails_fast=True,
                        version_max=LAST_VERSIONS_WITH_NAMES.get(api_key),
                    ),
                )
            )
    return found
