"""Models of the zoo on a Cortex-M33: the host's bytes and cycles, without heap or floating point, in the planned memory."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from openneutron.machine.runtime_memory import STACK_BYTES, runtime_memory
from openneutron.microcode.abi import all_kernels
from openneutron.microcode.decode import decode
from openneutron.microcode.payload import Payload
from openneutron.microcode.selection import parse
from tests.firmware import image
from tests.firmware.conftest import Build
from tests.firmware.models import Model

MODELS = ["cifarnet", "resnet8", "ds_cnn", "autoencoder", "vww_mobilenet_v1"]
# newlib's allocator in all its spellings.
HEAP = re.compile(r"_?(malloc|calloc|realloc|free|memalign|aligned_alloc|sbrk)(_r)?$")
# The run-time ABI's and libgcc's floating-point helpers, which -mfloat-abi=soft makes the only way to compute with floats.
FLOATS = re.compile(r"__aeabi_c?[df]|__aeabi_u?[il]2[df]|__(add|sub|mul|div|neg|cmp|fix|float|extend|trunc)\w*[sdt]f")
# Five sixths of the stack every image has: the deepest call keeps the inputs of two pixels as pairs, in more than a kibibyte.
STACK_BOUND = 4256
# What is neither the model's memory nor the stack: the table of kernels, the driver's callbacks and its table of handles.
OTHER_RAM = 256


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest, tools: None, zoo_model: Callable[..., Model]) -> Model:
    return zoo_model(request.param)


@pytest.mark.parametrize("cpu", [image.CPU, image.PORTABLE], ids=["dsp", "portable"])
def test_outputs_and_cycles_are_the_hosts(model: Model, build: Build, cpu: str) -> None:
    ran = image.run_image(build(model, f"selected-{cpu}", selection=model.selection, cpu=cpu))
    assert ran.status == 0, ran.text
    assert (ran.outputs, ran.number("cycles")) == model.on_host()
    assert 0 < ran.number("stack") <= STACK_BOUND


def test_the_image_holds_the_kernels_called_and_no_heap_and_no_floats(model: Model, build: Build) -> None:
    names = image.symbols(build(model, f"selected-{image.CPU}", selection=model.selection))
    assert [name for name in names if HEAP.match(name) or FLOATS.match(name)] == []
    present = {kernel.name for kernel in all_kernels() if f"nk_{kernel.name}" in names}
    program = decode(model.payload.microcode, model.payload.weights, model.payload.kernels)
    assert present == set(parse("selection", model.selection.read_text()).kernels.values()) == _called(program)


def test_memory_is_the_planned_scratch_with_inputs_outputs_and_context(model: Model, build: Build) -> None:
    path = build(model, f"selected-{image.CPU}", selection=model.selection)
    ran, sections = image.run_image(path), image.sections(path)
    arena = ran.number("context") + _planned(model.payload)
    assert ran.number("arena") == arena
    payload = model.payload
    program = decode(payload.microcode, payload.weights, payload.kernels)
    memory = runtime_memory(payload.microcode, payload.weights, program)
    assert (ran.number("context"), ran.number("arena")) == (
        memory.context_bytes,
        memory.context_bytes + memory.arena_bytes,
    )
    assert ran.number("stack") <= STACK_BYTES == sections[".stack"]
    assert arena <= sections[".data"] + sections[".bss"] <= arena + OTHER_RAM


def _called(program: object) -> set[str]:
    from openneutron.microcode.instructions import Call, Loop, Program

    assert isinstance(program, Program)
    steps = [step for item in program.instructions for step in (item.body if isinstance(item, Loop) else (item,))]
    names = {kernel.id: kernel.name for kernel in all_kernels()}
    return {names[step.kernel] for step in steps if isinstance(step, Call)}


def _planned(payload: Payload) -> int:
    """Scratch, prefetch, inputs and outputs as the compiler planned them, each at a multiple of 16."""
    program = decode(payload.microcode, payload.weights, payload.kernels)
    sizes = [program.scratch_bytes, program.prefetch_bytes, *(row.bytes for row in program.tensors)]
    return sum(-(-size // 16) * 16 for size in sizes)
