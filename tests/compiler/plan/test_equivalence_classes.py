"""Equivalence classes: repeated blocks have the same numbers, and segments looked up by them equal those grown."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from openneutron.compiler.cost import CostModel
from openneutron.compiler.l1 import KernelGraph
from openneutron.compiler.plan import candidates as module
from openneutron.compiler.plan.candidates import candidates
from openneutron.machine import targets
from tests.compiler.graphs import Net

TARGET = targets.load("imxrt700")
BLOCK = 3  # nodes


def _blocks(count: int, odd: int = -1) -> KernelGraph:
    """Blocks of two convolutions and a join; the kernel of the odd one is larger."""
    net = Net(24, width=16)
    value = net.conv(net.input, 3)
    for at in range(count):
        inner = net.conv(net.conv(value, 5 if at == odd else 3), 1)
        value = net.join(inner, value, in_place=(0,))
    return net.finish(net.conv(value, 3, 2))


def _numbers(graph: KernelGraph, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    seen: list[list[int]] = []

    def noted(*given: Any) -> list[int]:
        seen.append(original(*given))
        return seen[-1]

    original = module.classify_nodes
    with monkeypatch.context() as patched:
        patched.setattr(module, "classify_nodes", noted)
        candidates(graph, CostModel(graph, TARGET))
    return seen[0]


def test_repeated_blocks_have_the_same_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    found = _numbers(_blocks(6), monkeypatch)
    inner = [found[1 + BLOCK * at : 1 + BLOCK * (at + 1)] for at in range(1, 5)]
    assert all(block == inner[0] for block in inner) and len(set(inner[0])) == BLOCK


def test_another_kernel_and_what_lies_beside_it_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    found = _numbers(_blocks(6, odd=3), monkeypatch)
    other = 1 + BLOCK * 3
    assert found[other] not in found[:other] + found[other + 1 :]


@pytest.mark.parametrize("fetch", [False, True])
@pytest.mark.parametrize("odd", [-1, 2, 4])
def test_segments_are_those_of_nodes_that_are_all_different(
    odd: int, fetch: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = _blocks(7, odd)
    found = candidates(graph, CostModel(graph, TARGET), fetch_constants=fetch)
    monkeypatch.setattr(module, "classify_nodes", lambda structure, *_: list(range(len(structure.graph.nodes))))
    wanted = candidates(graph, CostModel(graph, TARGET), fetch_constants=fetch)
    assert any(columns.shape[1] > 20 for columns in wanted), "segments of several nodes are among them"
    assert all(np.array_equal(one, other) for one, other in zip(found, wanted, strict=True))


def test_parts_of_a_concatenation_are_like_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    net = Net(24, width=16)
    value = net.input
    for _ in range(3):
        value = net.conv(net.concat(net.conv(value, 3), net.conv(value, 3)), 1)
    found = _numbers(net.finish(value), monkeypatch)
    assert len(set(found)) == len(found)
