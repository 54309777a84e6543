"""The loops with Helium: additions with every kind of broadcast, pools and grouped convolutions, byte for byte the host's."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest

from openneutron.litert import DType
from openneutron.litert.write import write_model
from tests.firmware import image
from tests.firmware.conftest import Build
from tests.firmware.models import Model
from tests.firmware.test_dsp import Layers, layers

CORE, WITHOUT = "cortex-m55", "cortex-m55+nomve"
LOOPS = {f"nk_helium_{kernel}" for kernel in ("add", "avg_pool2d", "conv2d", "depthwise_conv2d", "max_pool2d")}
# Below, at and beyond the elements of a vector.
CHANNELS = [3, 4, 16, 21]
# What is added to a tensor of 3 x 5 pixels: as many elements, one for all, one per channel, one per row.
OTHERS = [(1, 3, 5, 0), (1, 1, 1, 1), (1, 1, 1, 0), (1, 3, 1, 0)]
POOLS = [(2, 2), (3, 1), (5, 3)]  # windows and strides


def mixed(dtype: DType) -> bytes:
    """Additions, pools, and convolutions whose groups are no multiple of a vector."""
    made = Layers(dtype)
    g = made.graph

    def tensor(name: str, shape: tuple[int, ...], scale: float) -> int:
        zero = made.low + 41 * len(made.outputs) % 256
        return g.tensor(f"{name}{len(made.outputs)}", shape, dtype, scale=scale, zero_point=zero)

    for channels, other, code in product(CHANNELS, OTHERS, ["ADD", "SUB"]):
        # A zero is replaced by the channels.
        shape = tuple(size or channels for size in other)
        a, b = tensor("a", (1, 3, 5, channels), 0.02), tensor("b", shape, 0.03)
        y = tensor("y", (1, 3, 5, channels), 0.04)
        g.op(code, [a, b], [y])
        made.inputs += [a, b]
        made.outputs.append(y)
    for channels, (kernel, stride), code in product(CHANNELS, POOLS, ["MAX_POOL_2D", "AVERAGE_POOL_2D"]):
        zero = made.low + 99
        x = g.tensor(f"p{len(made.outputs)}", (1, 6, 7, channels), dtype, scale=0.02, zero_point=zero)
        size = (1, -(-6 // stride), -(-7 // stride), channels)
        y = g.tensor(f"q{len(made.outputs)}", size, dtype, scale=0.02, zero_point=zero)
        options = {"padding": "SAME", "stride_w": stride, "stride_h": stride}
        g.op(code, [x], [y], filter_width=kernel, filter_height=kernel, **options)
        made.inputs.append(x)
        made.outputs.append(y)
    for groups, inputs, outputs in [(3, 2, 3), (4, 4, 3), (2, 8, 5)]:
        steps = {"padding": "SAME", "stride_w": 1, "stride_h": 1}
        made.add(
            "CONV_2D",
            (1, 4, 5, groups * inputs),
            (groups * outputs, 3, 3, inputs),
            (1, 4, 5, groups * outputs),
            **steps,
        )
    return write_model(g.finish(made.inputs, made.outputs))


@pytest.mark.full
@pytest.mark.parametrize("core", [CORE, WITHOUT])
@pytest.mark.parametrize("dtype", [DType.INT8, DType.UINT8], ids=["int8", "uint8"])
def test_elementwise_loops_and_pools_are_the_hosts(
    build: Build, litert_model: Callable[..., Model], dtype: DType, core: str
) -> None:
    model = litert_model(f"mixed_{dtype.name}", mixed(dtype), target="cortex_m55")
    path = build(model, f"lean-{core}", selection=model.selection, cpu=core, lean=True)
    ran = image.run_image(path, core)
    assert ran.status == 0, ran.text
    wanted = model.on_host()[0]
    assert [at for at, (mine, hosts) in enumerate(zip(ran.outputs, wanted, strict=True)) if mine != hosts] == []
    assert LOOPS & set(image.symbols(path)) == (LOOPS - {"nk_helium_depthwise_conv2d"} if core == CORE else set())


@pytest.mark.full
@pytest.mark.parametrize("dtype", [DType.INT8, DType.UINT8, DType.INT16], ids=["int8", "uint8", "int16"])
def test_layers_of_every_shape_are_the_hosts(build: Build, litert_model: Callable[..., Model], dtype: DType) -> None:
    model = litert_model(f"layers_{CORE}_{dtype.name}", layers(dtype), target="cortex_m55")
    path = build(model, f"lean-{CORE}", selection=model.selection, cpu=CORE, lean=True)
    ran = image.run_image(path, CORE)
    assert ran.status == 0, ran.text
    wanted = model.on_host()[0]
    assert [at for at, (mine, hosts) in enumerate(zip(ran.outputs, wanted, strict=True)) if mine != hosts] == []
