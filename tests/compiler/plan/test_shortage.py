from __future__ import annotations

from openneutron.compiler.l1 import KernelGraph, Value
from openneutron.compiler.l2 import Buffer, TaskList
from openneutron.compiler.plan.shortage import shortage
from openneutron.machine import targets
from openneutron.microcode.table import ElementType, Region

TARGET = targets.load("mcxn94x")


def _graph() -> KernelGraph:
    graph = KernelGraph()
    graph.inputs = [graph.add_value(Value("x", (1, 2, 5, 10), ElementType.INT8))]
    graph.outputs = [graph.add_value(Value("y", (1, 1, 1, 10), ElementType.INT8))]
    return graph


def _tasks(prefetch: int = 0) -> TaskList:
    buffers = [
        Buffer("early", Region.SCRATCH, 600, first=0, last=1),
        Buffer("wide (3 rows)", Region.SCRATCH, 500, first=2, last=3),
        Buffer("deep", Region.SCRATCH, 200, first=3, last=4),
        Buffer("x", Region.INPUT, 100),
    ]
    return TaskList(buffers=buffers, scratch_bytes=700, prefetch_bytes=prefetch)


def test_it_counts_what_is_missing_and_names_what_lies_at_the_peak() -> None:
    error = shortage(_graph(), _tasks(), 650, "default", TARGET)
    assert "needs 810 bytes (110 of inputs and outputs, 700 of scratch" in error.message
    assert "50 more than the budget" in error.message
    assert "holds 500 bytes of wide (3 rows) and 200 bytes of deep" in error.hint
    assert "raise --fit by 50 bytes" in error.hint and "--optimize max" in error.hint


def test_advice_follows_the_options() -> None:
    assert "--fetch-constants-to-sram" in shortage(_graph(), _tasks(64), 0, "max", TARGET).hint
    assert "--optimize default" in shortage(_graph(), _tasks(), 0, "fast", TARGET).hint
    assert "--fetch" not in shortage(_graph(), _tasks(), 0, "default", TARGET).hint


def test_inputs_alone_may_be_too_large() -> None:
    error = shortage(_graph(), TaskList(), -30, "default", TARGET)
    assert "30 more than the budget" in error.message and "holds" not in error.hint


def test_the_chip_itself_may_be_too_small() -> None:
    tasks = TaskList(scratch_bytes=TARGET.sram_bytes)
    error = shortage(_graph(), tasks, TARGET.sram_bytes - 110, "default", TARGET)
    assert "110 more than mcxn94x has" in error.message and "choose a larger target" in error.hint
