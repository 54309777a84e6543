"""Images for a processor's own core, as `make firmware` builds them, on each Cortex-M: the host's bytes in planned memory."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from openneutron.litert import DType
from openneutron.machine.runtime_memory import STACK_BYTES, runtime_memory
from openneutron.microcode.decode import decode
from tests import recurrent
from tests.firmware import image
from tests.firmware.conftest import Build
from tests.firmware.models import Model
from tests.firmware.test_dsp import layers
from tests.streaming import streaming_convnet

MODELS = ["cifarnet", "resnet8", "ds_cnn", "autoencoder", "vww_mobilenet_v1"]
ZOO_CORES = [image.CPU, "cortex-m4", "cortex-m55"]
CORES = [*ZOO_CORES, "cortex-m7", "cortex-m0plus"]
# The M33 has most kernels in other tests, so one other core is enough for each commit.
QUICK = "cortex-m4"
# Every kernel with loops, INT16, state, and gates with tables.
SOURCES: dict[str, Callable[[], bytes]] = {
    "int8": lambda: layers(DType.INT8),
    "int16": lambda: layers(DType.INT16),
    "state": streaming_convnet,
    "lstm": lambda: recurrent.lstm(3),
    "lstm16": lambda: recurrent.lstm(3, wide=True),
}


def marked(core: str) -> object:
    return core if core == QUICK else pytest.param(core, marks=pytest.mark.full)


def check(build: Build, model: Model, core: str) -> None:
    ran = image.run_image(build(model, f"lean-{core}", selection=model.selection, cpu=core, lean=True), core)
    assert ran.status == 0, ran.text
    assert ran.outputs == model.on_host()[0]
    assert 0 < ran.number("stack") <= STACK_BYTES
    # What the report prints, for constants that need no window too: a core reads them where they lie.
    memory = runtime_memory(
        model.payload.microcode,
        model.payload.weights,
        decode(model.payload.microcode, model.payload.weights, model.payload.kernels),
    )
    assert (ran.number("context"), ran.number("arena")) == (
        memory.context_bytes,
        memory.context_bytes + memory.arena_bytes,
    )


@pytest.mark.parametrize("core", [*map(marked, CORES)])
@pytest.mark.parametrize("source", SOURCES)
def test_kernels_are_the_hosts_on_every_core(
    build: Build, litert_model: Callable[..., Model], source: str, core: str
) -> None:
    check(build, litert_model(f"core-{source}", SOURCES[source](), target="cortex_m33"), core)


@pytest.mark.full
@pytest.mark.parametrize("core", ZOO_CORES)
@pytest.mark.parametrize("name", MODELS)
def test_the_zoo_runs_on_every_core(build: Build, zoo_model: Callable[..., Model], name: str, core: str) -> None:
    check(build, zoo_model(name, target="cortex_m33"), core)


@pytest.mark.full
def test_only_cores_with_helium_have_its_loops(build: Build, litert_model: Callable[..., Model]) -> None:
    model = litert_model("core-int8", SOURCES["int8"](), target="cortex_m33")
    loops = {"nk_four_products_of_one", "nk_four_products_of_two", "nk_helium_conv2d"}
    cores = {"cortex-m55": loops, "cortex-m55+nomve": set[str]()}
    for core, expected in cores.items():
        path = build(model, f"lean-{core}", selection=model.selection, cpu=core, lean=True)
        assert loops & set(image.symbols(path)) == expected
        assert image.run_image(path, core).outputs == model.on_host()[0]
