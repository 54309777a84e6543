"""What turns a replacement off, and what is said of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from openneutron.executorch.upstream import switch
from openneutron.executorch.upstream.switch import (
    Expected,
    Present,
    Replacement,
    is_plain,
    notes,
    replaces,
    unknown_version,
)


@pytest.fixture(autouse=True)
def nothing_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PLAIN", "UNTESTED"):
        monkeypatch.delenv(f"OPENNEUTRON_{name}", raising=False)
    monkeypatch.setattr(switch, "REPLACEMENTS", {})


def made(*expected: Expected | Present, package: str = "torch") -> list[int]:
    """Which of two uses, inside and after, ran with the replacement."""
    seen: list[int] = []

    @replaces(package, *expected)
    def faster() -> Iterator[None]:
        seen.append(1)
        yield
        seen.append(2)

    with faster():
        pass
    return seen


def test_it_is_used_where_everything_is_as_expected() -> None:
    assert made(Expected("torch.fx", "GraphModule.recompile", ("self",)), Present("torch.fx")) == [1, 2]
    assert notes() == ()


@pytest.mark.parametrize(("value", "off"), [("1", True), ("0", False), ("", False), ("faster", True), ("a,b", False)])
def test_the_switch(monkeypatch: pytest.MonkeyPatch, value: str, off: bool) -> None:
    monkeypatch.setenv("OPENNEUTRON_PLAIN", value)
    assert is_plain("faster") is off
    assert made() == ([] if off else [1, 2])
    assert notes() == ()  # the user knows


@pytest.mark.parametrize(
    ("expected", "why"),
    [
        (Expected("torch.fx", "GraphModule.rewrite"), "torch.fx has no GraphModule.rewrite"),
        (Expected("torch.fxx", "Graph"), "torch.fxx has no Graph"),
        (
            Expected("torch.fx", "GraphModule.recompile", ("self", "often")),
            "torch.fx.GraphModule.recompile takes (self)",
        ),
        (Present("torch.fxx"), "there is no torch.fxx"),
    ],
)
def test_what_looks_otherwise_is_left_alone_and_noted(expected: Expected | Present, why: str) -> None:
    assert made(expected) == []
    assert notes() == (f"compiling takes longer without faster: {why}",)


def test_a_version_that_nobody_tested(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(switch, "version", lambda package: "2.14.0a0")
    assert made() == []
    assert notes() == ("compiling takes longer without faster: torch 2.14.0a0 is not known, 2.13 is",)
    monkeypatch.setenv("OPENNEUTRON_UNTESTED", "1")
    assert unknown_version("torch") == "" and made() == [1, 2]


def test_2_1_is_not_2_13(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(switch, "version", lambda package: "2.1.3")
    assert unknown_version("torch") == "torch 2.1.3 is not known, 2.13 is"


def test_reasons_are_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b"):
        one = Replacement(name, "torch", (Present("torch.fxx"),))
        monkeypatch.setitem(switch.REPLACEMENTS, name, one)
        assert not one.is_used()
    assert notes() == ("compiling takes longer without a, b: there is no torch.fxx",)
