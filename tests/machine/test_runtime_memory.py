"""Memory of the open runtime; `tests/firmware/test_models.py` compares it with images under QEMU."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

import openneutron
from openneutron.cli.inputs.blocks import blocks_of_file
from openneutron.machine.runtime_memory import STACK_BYTES, context_bytes, runtime_memory
from tests import tiny
from tests.streaming import streaming_convnet

RUNTIME = Path(__file__).parents[2] / "runtime"


def test_the_context_is_the_headers() -> None:
    text = (RUNTIME / "include" / "neutron.h").read_text()
    ((fixed, pointers),) = re.findall(r"#define NEUTRON_CONTEXT_BYTES \((\d+) \+ (\d+) \* sizeof\(void \*\)\)", text)
    assert [int(fixed) + int(pointers) * size for size in (4, 8)] == [context_bytes(), context_bytes(8)]


def test_images_have_this_stack() -> None:
    """The makefile takes the figure out of the source."""
    show = "include runtime/cortex_m33/firmware.mk\n.DEFAULT_GOAL := show\nshow:\n\t@echo $(STACK_BYTES)\n"
    made = subprocess.run(
        ["make", "-s", "-f", "-"], input=show, text=True, capture_output=True, cwd=RUNTIME.parent, check=True
    )
    assert made.stdout.split() == [str(STACK_BYTES)]


@pytest.mark.parametrize("profiling", [False, True])
@pytest.mark.parametrize("make", [tiny.convnet, streaming_convnet])
def test_the_report_has_the_same(make, profiling: bool) -> None:
    compiled = openneutron.compile(make(), use_profiling=profiling)
    (blocks,) = blocks_of_file(compiled.tflite, "m")
    memory, totals = runtime_memory(blocks.microcode, blocks.weights, blocks.program()), compiled.report.totals
    assert (totals.context_bytes, totals.arena_bytes, totals.stack_bytes) == (
        memory.context_bytes,
        memory.arena_bytes,
        STACK_BYTES,
    )
    assert totals.runtime_bytes > totals.peak_bytes + context_bytes()


def test_graphs_share_an_arena_and_have_contexts_of_their_own() -> None:
    compiled = openneutron.compile(tiny.sandwich())
    each = [runtime_memory(b.microcode, b.weights, b.program()) for b in blocks_of_file(compiled.tflite, "m")]
    assert len(each) == 2
    assert compiled.report.totals.context_bytes == sum(one.context_bytes for one in each)
    assert compiled.report.totals.arena_bytes == max(one.arena_bytes for one in each)
