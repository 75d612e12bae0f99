"""Hooks that canaries use, and what `check()` methods raise."""

from __future__ import annotations

import pytest

from fairlead_kafka.base import checks, hooks
from fairlead_kafka.base.hooks import HOOKS, hook


@pytest.fixture(autouse=True)
def own_hooks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hooks, "HOOKS", dict(HOOKS))


def test_a_hook_leaves_the_method_as_it_is_until_it_is_replaced() -> None:
    class Adder:
        @hook("test: how to add")
        def add(self, left: int, right: int) -> int:
            return left + right

    adder = Adder()
    assert type(Adder.__dict__["add"]).__name__ == "function"
    with hooks.HOOKS["test: how to add"].replaced(
        lambda sound: lambda self, left, right: sound(self, left, right) + 1
    ):
        assert adder.add(1, 2) == 4
    assert adder.add(1, 2) == 3


def test_a_replaced_hook_comes_back_though_the_block_raised() -> None:
    class Adder:
        @hook("test: how to add")
        def add(self, left: int, right: int) -> int:
            return left + right

    with (
        pytest.raises(ZeroDivisionError),
        hooks.HOOKS["test: how to add"].replaced(lambda sound: lambda *_: 1 // 0),
    ):
        Adder().add(1, 2)
    assert Adder().add(1, 2) == 3


def test_a_name_is_given_once() -> None:
    class One:
        @hook("test: given twice")
        def method(self) -> None: ...

    with pytest.raises((AssertionError, RuntimeError)):

        class Other:
            @hook("test: given twice")
            def method(self) -> None: ...


def test_a_check_says_what_differs() -> None:
    checks.same("bytes held", 3, 3)
    checks.holds("never", True)
    with pytest.raises(checks.CheckFailed, match="bytes held is 3, but what it stands for gives 4"):
        checks.same("bytes held", 3, 4)
    with pytest.raises(checks.CheckFailed, match="ends before it begins"):
        checks.holds("ends before it begins", False)
