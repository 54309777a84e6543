"""The work behind a latency, priced with any constants: kernel calls and copies on the NPU, and what stays on the CPU.

The constants are those that `benchmarks/calibrate.py` fits on published latencies, and `openneutron board learn` on a user's.

Example:
    >>> work = workload_of(converted_by_stock(model, target), target)
    >>> work.milliseconds(constants_in_files())
    1.015
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from openneutron.board.cpu import CORTEX_M, delegate_call, on_core
from openneutron.board.interval import EXERCISED_OPERATORS
from openneutron.board.loops import CpuWork
from openneutron.machine import targets
from openneutron.machine.pricing import Machine, call_cost, cycles_of, dma_cost
from openneutron.machine.targets import Cost, Target
from openneutron.microcode import abi
from openneutron.microcode.encode import encode_call
from openneutron.microcode.instructions import Call, Dma, Wait

if TYPE_CHECKING:
    from openneutron.board.answer import Converted

Vector = npt.NDArray[np.float64]
Constants = Sequence[float] | Vector  # in cycles, in the order of `NAMES`

STEPS = 1024  # constants of a target file count 1/1024 cycle
NEUTRON_C = ("imxrt700", "mcxn94x")  # the chips that share the constants
CODE_IN_FLASH_TARGETS = ("mcxn94x",)  # imxrt700 runs its examples out of zero-wait SRAM
FITTED = ("mac", "lane", "row", "weight_byte", "call", "dma_byte")  # those in the target files
DRIVEN = ("row", "call")  # the CPU's work, which is slower where its code is in flash
CODE_IN_FLASH, SOFTMAX = "code_in_flash", "softmax"
NAMES = (*FITTED, CODE_IN_FLASH, SOFTMAX)
_STEP = 1e-2  # of a logarithm: even the smallest constant moves by several 1/1024 cycle
# Operators whose cost on the CPU comes from published times: softmax's from the fit, the others' from times without an NPU.
_TIMED_OPERATORS = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "SOFTMAX")


class Workload(NamedTuple):
    """A plan by NXP's rules as encoded calls with their output rows, sizes of copies, and the CPU's work without softmax.

    Of its cycles, `assumed_cycles` come from costs that no published time determines, though it contains such work.
    """

    target: Target
    calls: tuple[tuple[bytes, int], ...]
    copies: tuple[int, ...]
    cpu_cycles: int
    softmax_elements: int
    assumed_cycles: int

    def npu_milliseconds(self, constants: Constants) -> float:
        """Return the NPU's time for these constants, in cycles and in the order of `NAMES`."""
        machine = Machine(replace(self.target, cost=with_constants(self.target, constants)))
        cycles = sum(cycles_of(call_cost(machine, words, 0, rows)) for words, rows in self.calls)
        cycles += sum(cycles_of(dma_cost(machine, size)) for size in self.copies)
        return self.target.milliseconds(cycles)

    def cpu_milliseconds(self, constants: Constants) -> float:
        """Return the CPU's time for these constants."""
        cycles = self.cpu_cycles + self.softmax_elements * constants[NAMES.index(SOFTMAX)]
        return cycles / self.target.cpu_clock_hz * 1e3

    def milliseconds(self, constants: Constants) -> float:
        """Return the latency for these constants."""
        return self.npu_milliseconds(constants) + self.cpu_milliseconds(constants)

    def slopes(self, constants: Vector) -> Vector:
        """Return by how much the latency's logarithm changes with that of each constant."""
        here = math.log(self.milliseconds(constants))
        moved = [math.log(self.milliseconds(constants * np.exp(_STEP * unit))) for unit in np.eye(len(NAMES))]
        return (np.array(moved) - here) / _STEP

    def assumed_share(self, constants: Constants) -> float:
        """Return the share of the latency in work whose cost on the CPU is assumed."""
        return self.assumed_cycles / self.target.cpu_clock_hz * 1e3 / self.milliseconds(constants)


def workload_of(made: Converted, target: Target) -> Workload:
    """Return the work of a model as NXP's converter would leave it."""
    calls: list[tuple[bytes, int]] = []
    copies: list[int] = []
    for step in (step for plan in made.plans for step in plan.program.instructions):
        if isinstance(step, Call):
            height = step.operands[abi.by_id(step.kernel).operands.index("output")].height
            calls.append((encode_call(step), height))
        elif isinstance(step, Dma):
            copies.append(step.bytes)
        else:
            assert isinstance(step, Wait), "stock plans have no loops"
    graph = made.graph
    costs = on_core(CORTEX_M, target)._replace(exponential=0.0)
    work = CpuWork(made.model, costs)
    cpu = assumed = float(delegate_call(target) * len(made.plans))
    elements = 0
    for index in made.left:
        op = graph.operators[index]
        spent = work.operator(graph, op)
        cpu += spent.total()
        assumed += sum(spent[code] for code in spent if code in EXERCISED_OPERATORS and code not in _TIMED_OPERATORS)
        elements += math.prod(graph.tensors[op.outputs[0]].shape) if op.code == "SOFTMAX" else 0
    return Workload(target, tuple(calls), tuple(copies), round(cpu), elements, round(assumed))


def with_constants(target: Target, constants: Constants) -> Cost:
    """Return the target's costs with the fitted constants replaced."""
    values = dict(zip(NAMES, constants, strict=True))
    slower = values[CODE_IN_FLASH] if target.name in CODE_IN_FLASH_TARGETS else 1.0
    fitted = {name: values[name] * (slower if name in DRIVEN else 1.0) for name in FITTED}
    return replace(target.cost, **{name: round(value * STEPS) for name, value in fitted.items()})


def constants_in_files() -> Vector:
    """Return the constants in the target files and the CPU model, in cycles and in the order of `NAMES`."""
    plain, slow = (targets.load(name).cost for name in NEUTRON_C)
    values = [getattr(plain, name) / STEPS for name in FITTED]
    return np.array([*values, slow.row / plain.row, CORTEX_M.exponential])
