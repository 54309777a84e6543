"""Samples straight through the driver: the program's own bytes, shapes and order in memory, or not at all."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from openneutron.executorch.run.direct import direct_of
from openneutron.executorch.run.runtime import load_program
from openneutron.litert.read import read_model
from openneutron.machine.simulator import Simulator
from tests.executorch.delegates import compiled, payload_of, pool, pool_model, program_of, random_int8
from tests.streaming import running_sum

CONTIGUOUS = random_int8(1, 3, 6, 6)
X = CONTIGUOUS.to(memory_format=torch.channels_last)
MANY = 50


def pooled(x: torch.Tensor) -> torch.Tensor:
    return pool(x).to(memory_format=torch.channels_last)


@pytest.fixture(scope="module")
def pte() -> bytes:
    return program_of([payload_of(compiled(pool_model((1, 6, 6, 3))), [1], [1])], [X], [[pooled(X)]])


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_outputs_are_those_of_the_program(pte: bytes, threads: int) -> None:
    direct, program = direct_of(pte, where="a.pte"), load_program(pte)
    assert direct is not None
    samples: list[Any] = [(random_int8(1, 3, 6, 6),) for _ in range(MANY)]  # in another order than the program's
    samples[3] = (torch.empty(109, dtype=torch.int8)[1:].as_strided(X.shape, X.stride()).copy_(X),)  # unaligned
    samples[4] = (CONTIGUOUS.numpy(),)
    found = direct.run(samples, threads=threads)
    assert len(found) == MANY
    for (y,), sample in zip(found, samples, strict=True):
        (expected,) = program.run(*sample)
        assert torch.equal(y, expected) and y.stride() == expected.stride() and y.dtype == expected.dtype
    kept = [y.clone() for (y,) in found]
    direct.run(samples[::-1], threads=threads)
    assert all(torch.equal(y, before) for (y,), before in zip(found, kept, strict=True))  # later runs leave them


def test_it_stops_before_a_sample_that_fails(pte: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    direct = direct_of(pte, where="a.pte")
    assert direct is not None
    monkeypatch.setattr(Simulator, "handle", 0)  # no model
    assert direct.run([(X,)] * MANY, threads=1) == []


def chained() -> bytes:
    first, second = random_int8(1, 3, 6, 6), random_int8(1, 3, 3, 3)
    blocks = payload_of(compiled(pool_model((1, 6, 6, 3))), [1], [1])
    after = payload_of(compiled(pool_model((1, 3, 3, 3))), [1], [1])
    return program_of([blocks, after], [first], [[pool(first)], [pool(second)]])


def stateful() -> bytes:
    example = torch.zeros((1, 4), dtype=torch.int8)
    return program_of([payload_of(compiled(read_model(running_sum())), [0], [0])], [example], [[example]])


def transposed() -> bytes:
    return program_of([payload_of(compiled(pool_model((1, 6, 6, 3))), [1], [1])], [CONTIGUOUS], [[pool(CONTIGUOUS)]])


@pytest.mark.parametrize("make", [chained, stateful, transposed], ids=["chained", "stateful", "transposed"])
def test_other_programs_go_through_executorch(make: Any) -> None:
    assert direct_of(make(), where="a.pte") is None
    assert load_program(make()).many([(X,)] * MANY, threads=2) == []


def test_recorded_runs_and_other_delegates_are_not_passed_by(pte: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(load_program(pte).many([(X,)] * MANY, threads=2)) == MANY
    assert load_program(pte, etdump=True).many([(X,)] * MANY, threads=2) == []
    monkeypatch.setenv("OPENNEUTRON_DELEGATE", "another.so")
    assert load_program(pte).many([(X,)] * MANY, threads=2) == []
