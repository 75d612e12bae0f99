"""The producer ids that a broker may assign: it gets a block of them from the controller at a
time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.broker.controller import AllocateProducerIds, ClusterView

OnAvailable = Callable[[BrokerError | None], None]


class ProducerIds:
    """Gives producer ids out of blocks that this broker alone has. Callers wait together for a
    block, and are served in the order in which they came. `bind` is the broker's, which keeps an
    exception of one caller from the next one."""

    def __init__(
        self, controller: ClusterView, node_id: int, bind: Callable[[OnAvailable], OnAvailable]
    ) -> None:
        self._controller = controller
        self._bind = bind
        self._node_id = node_id
        self._first = self._stop = 0
        self._waiting: deque[OnAvailable] = deque()
        self._asking = False

    def when_available(self, then: OnAvailable) -> None:
        """Call then(None) once `take` has an id to give, at once if it has now; then(error) if the
        controller gives none."""
        self._waiting.append(self._bind(then))
        self._serve()

    def take(self) -> int:
        """The next producer id; only within a call of `when_available`, and one per call."""
        if self._first == self._stop:
            raise AssertionError("a producer id is taken only when one is at hand")
        self._first += 1
        return self._first - 1

    def _serve(self) -> None:
        while self._waiting and not self._asking:
            if self._first < self._stop:
                self._waiting.popleft()(None)
            else:
                self._asking = True
                self._controller.decide(AllocateProducerIds(self._node_id), self._allocated)

    def _allocated(self, block: tuple[int, int] | None, error: BrokerError | None) -> None:
        self._asking = False
        if block is not None:
            first, count = block
            self._first, self._stop = first, first + count
            self._serve()
            return
        waiting, self._waiting = self._waiting, deque()
        for then in waiting:
            then(error)
