"""`cluster.on(...)`: descriptions of requests, from which faults are made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from fairlead_kafka.base.checked import checked
from fairlead_kafka.base.codes import TABLE, ErrorCode
from fairlead_kafka.base.errors import UsageError
from fairlead_kafka.base.nearest import nearest
from fairlead_kafka.base.principal import parse_principal
from fairlead_kafka.broker.dispatch import REGISTRY
from fairlead_kafka.testing.error_places import Kind, Layout, layout
from fairlead_kafka.testing.handles import SLOWEST_MS
from fairlead_kafka.testing.request_actions import (
    AnswerError,
    AnswerWith,
    Delay,
    Hold,
    Lose,
    Observe,
)
from fairlead_kafka.testing.request_faults import (
    Action,
    Criteria,
    Fault,
    Predicate,
    RequestFaults,
    SeenRequest,
)
from fairlead_kafka.wire import ApiKey, ApiMessage

_CODES: Mapping[str, int] = {row.name: row.code for row in TABLE.values() if row.code != ErrorCode.NONE}


def api_of(value: ApiKey | int | str) -> ApiKey:
    """An API by its key, its number or its name. UsageError for one that brokers do not serve."""
    served = {key.name: key for key in REGISTRY}
    if isinstance(value, str):
        found = served.get(value.upper())
    else:
        found = next((key for key in REGISTRY if key == value), None)
    if found is not None:
        return found
    near = nearest(str(value), served)
    hint = f"; did you mean {near}?" if near else "; docs/reference/protocol.md lists those that are served"
    raise UsageError(f"on: brokers serve no API {value!r}{hint}")


def code_of(error: int | str) -> int:
    """An error's code by its number or its name. UsageError for one that Kafka has not."""
    if isinstance(error, str):
        found = _CODES.get(error.upper())
    else:
        found = error if error in _CODES.values() else None
    if found is not None:
        return found
    if error in (ErrorCode.NONE, "NONE"):
        raise UsageError("answer: NONE is no error; answer_with gives an answer of your own")
    near = nearest(str(error), _CODES)
    raise UsageError(
        f"answer: Kafka has no error {error!r}{f'; did you mean {near}?' if near else ''} "
        "(ErrorCode has them by name)"
    )


class Wanted(NamedTuple):
    """Arguments of `Cluster.on`."""

    api: ApiKey | int | str | None
    named: Mapping[Kind, object]
    client_id: str | None
    principal: str | None
    broker: int | None
    where: Predicate | None


def criteria_of(wanted: Wanted) -> Criteria:
    """The conditions that the arguments of `Cluster.on` mean. UsageError for an API that is not
    served, or whose requests name no such thing."""
    api = None if wanted.api is None else api_of(wanted.api)
    named = tuple((kind, value) for kind, value in wanted.named.items() if value is not None)
    known = _kinds(REGISTRY if api is None else [api])
    for kind, _ in named:
        if kind not in known:
            assert api is not None, "some API names each kind"
            raise UsageError(
                f"on: a request of {api.name} names no {kind.replace('_', ' ')}; "
                f"it names {', '.join(sorted(known)) or 'nothing of the kind'}"
            )
    if wanted.principal is not None:
        try:
            parse_principal(wanted.principal)
        except ValueError as error:
            raise UsageError(f"on: {error}") from None
    return Criteria(api, named, wanted.client_id, wanted.principal, wanted.broker, wanted.where)


def _layouts(api: ApiKey) -> list[Layout]:
    return [layout(api, version) for version in range(REGISTRY[api].low, REGISTRY[api].high + 1)]


def _kinds(apis: object) -> frozenset[Kind]:
    assert isinstance(apis, (dict, list))
    return frozenset().union(*(each.kinds() for api in apis for each in _layouts(api)))


@checked("__init__")
class RequestsOn:
    """Requests of one kind, as `Cluster.on` describes them; its methods make a `Fault` of them.

    All of them take `times`, after how many requests the fault is over (None: it stays until it is
    removed), and `after`, how many requests it lets pass before the first. A fault is removed by
    `Fault.remove`, at the end of its `with` block, and by `Cluster.restore`, which the pytest
    plugin calls after each test.
    """

    def __init__(self, criteria: Criteria, rules: RequestFaults) -> None:
        self._criteria = criteria
        self._rules = rules

    def answer(
        self,
        error: int | str,
        *,
        times: int | None = None,
        after: int = 0,
        message: str | None = None,
        whole: bool | None = None,
    ) -> Fault:
        """Answer an error, without serving the part of the request that it is about. UsageError if
        the API's answer has no place for an error.

        `error`: an `ErrorCode`, or its name. It is the code of each partition, group, topic or
        other part that `on` is about, or of the whole answer where there are none. What else the
        request asks for is served. `whole`: True for the code of the whole answer where it has one,
        None for what the error is about (NOT_COORDINATOR about a group, not about partitions).
        `message`: the text beside the code, where there is one. A Produce with acks=0 has no
        answer: its connection is closed, as Kafka does.
        """
        code = code_of(error)
        api = self._criteria.api
        if api is not None and not any(each.answers_errors for each in _layouts(api)):
            raise UsageError(f"answer: an answer of {api.name} has no place for an error")
        return self._add(AnswerError(code, message, whole), times, after)

    def answer_with(
        self,
        function: Callable[[SeenRequest], ApiMessage | None],
        *,
        times: int | None = None,
        after: int = 0,
    ) -> Fault:
        """Answer what `function(request)` returns; None: the request is served.

        It is called on the cluster's thread, which it must not keep waiting.
        """
        return self._add(AnswerWith(function), times, after)

    def delay(self, milliseconds: float, *, times: int | None = None, after: int = 0) -> Fault:
        """Serve the request at once, and hold its answer back for `milliseconds`, and with it the
        answers to later requests on the same connection. UsageError if it is out of range."""
        if not 0 <= milliseconds <= SLOWEST_MS:
            raise UsageError(f"delay: must be 0 to {SLOWEST_MS} ms, got {milliseconds:g}")
        return self._add(Delay(milliseconds), times, after)

    def drop(self, *, times: int | None = None, after: int = 0, served: bool = False) -> Fault:
        """Read the request and never answer it; the connection stays open.

        `served`: the request is served, and only its answer is lost. Later requests on the same
        connection are not answered either, for Kafka's answers come in the order of the requests.
        """
        return self._add(Lose(served, hangs_up=False), times, after)

    def disconnect(self, *, times: int | None = None, after: int = 0, served: bool = False) -> Fault:
        """Close the connection instead of an answer. `served`: the request is served before, and
        only its answer is lost."""
        return self._add(Lose(served, hangs_up=True), times, after)

    def hold(self, *, times: int | None = None, after: int = 0) -> Fault:
        """Hold the request, unserved, until the fault is removed: then it is served."""
        return self._add(Hold(self._rules.call_in_step), times, after)

    def observe(self, into: list[SeenRequest], *, times: int | None = None, after: int = 0) -> Fault:
        """Append each request to `into`, and let it go on. The list grows until the fault is
        removed."""
        return self._add(Observe(into), times, after)

    def _add(self, action: Action, times: int | None, after: int) -> Fault:
        if times is not None and times < 1:
            raise UsageError(f"times: must be 1 or more, or None for every request, got {times}")
        if after < 0:
            raise UsageError(f"after: must be 0 or more, got {after}")
        return self._rules.add(Fault(self._criteria, action, times, after, self._rules))

    def __repr__(self) -> str:
        return f"<requests: {self._criteria}>"
