"""The checker proves what the compiler makes, and refuses forged, foreign and damaged files."""

from __future__ import annotations

import re
import struct
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openneutron.certify.prove import prove
from openneutron.certify.published import KERNELS
from openneutron.certify.refused import Refused
from openneutron.convert import convert
from openneutron.litert.graph import DType
from openneutron.litert.write import write_model
from openneutron.machine import targets
from openneutron.microcode.header import offset_of
from openneutron.microcode.table import HEADER_BYTES, IDENTITY
from openneutron.options import Options
from tests import recurrent, tiny
from tests.certify.forge import Blocks, add_to_parameter, calls, forge_blocks
from tests.compiler.networks import random_network
from tests.golden import ModelMaker
from tests.sampling import examples


@pytest.mark.parametrize("target", targets.geometries())
@pytest.mark.parametrize("make", [tiny.convnet, tiny.sandwich, tiny.floats])
def test_tiny_models_are_proved(make: Callable[[], bytes], target: str) -> None:
    data = make()
    result = convert(data, Options(target=target))
    assert prove(result.model, data).graphs == result.report.totals.neutron_graphs


@examples(15)
@given(
    st.integers(0, 1 << 20), st.sampled_from([DType.INT8, DType.INT16]), st.sampled_from(targets.geometries()),
    st.sampled_from(["fast", "default"]), st.booleans(),
)  # fmt: skip
def test_random_networks_are_proved(seed: int, dtype: DType, target: str, optimize: str, fetch: bool) -> None:
    data, _ = random_network(seed, dtype)
    options = Options(target=target, optimize=optimize, fetch_constants_to_sram=fetch)
    assert prove(convert(data, options).model, data).graphs >= 1


def test_two_byte_elements_that_repeat_are_proved() -> None:
    maker = ModelMaker(np.random.default_rng(0))
    sides = [maker.input(shape, DType.INT16, 1.0, 0) for shape in ((2, 1, 2, 1, 1, 2), (1, 2, 1, 1, 2, 1))]
    maker.op("ADD", sides, maker.output((2, 2, 2, 1, 2, 2), DType.INT16, 1.5, 0))
    maker.check()


@pytest.mark.parametrize("dtype", [DType.INT8, DType.INT16])
def test_means_are_proved_at_any_rank(dtype: DType) -> None:
    maker = ModelMaker(np.random.default_rng(0))
    for shape, axes in (((3, 4, 5), [0, 1]), ((1, 1, 1, 1, 1, 5), [0]), ((6,), [0]), ((1, 3, 4, 5), [1, 2])):
        made = [1 if at in axes else size for at, size in enumerate(shape)]
        where = maker.constant(axes, DType.INT32)
        x = maker.input(shape, dtype, 0.5, 0)
        maker.op("MEAN", [x, where], maker.output(made, dtype, 0.25, 0), keep_dims=True)
    maker.check()


def test_a_product_of_matrices_with_a_fused_function_is_proved() -> None:
    maker = ModelMaker(np.random.default_rng(0))
    sides = [maker.input(shape, DType.INT8, 0.05, zero) for shape, zero in (((2, 3, 4), 3), ((2, 4, 5), -7))]
    product = maker.builder.tensor("product", (2, 3, 5), DType.INT8, 0.1, 1)
    maker.op("BATCH_MATMUL", sides, product, adj_x=False, adj_y=False)
    maker.op("ABS", [product], maker.output((2, 3, 5), DType.INT8, 0.1, 0))
    assert convert(write_model(maker.model()), Options(target="mcxn94x")).report.passes["fuse_lut"] == 1
    maker.check("mcxn94x")


def _model_with_activation(activation: str) -> bytes:
    maker = ModelMaker(np.random.default_rng(0))
    x = maker.input((1, 4), DType.INT8, 0.05, 3)
    total = maker.builder.tensor("total", (1, 4), DType.INT8, 0.1, 1)
    maker.op("ADD", [x, x], total, fused_activation_function=activation)
    maker.op("ABS", [total], maker.output((1, 4), DType.INT8, 0.1, 0))
    return write_model(maker.model())


def test_attributes_that_no_kernel_has_are_left_to_litert() -> None:
    """The operator stays on the CPU as it is, and must be the same one; the rest is proved."""
    data = _model_with_activation("TANH")
    compiled = convert(data, Options()).model
    assert prove(compiled, data).graphs == 1
    with pytest.raises(Refused):
        prove(compiled, _model_with_activation("SIGN_BIT"))


def test_a_forged_offset_is_refused_at_its_call() -> None:
    data = tiny.convnet()

    def move(blocks: Blocks) -> None:
        code = struct.unpack_from("<I", blocks[0], 64)[0]
        assert blocks[0][code] == 1  # a call; the offset of its second operand, the weights
        at = code + 24 + 40 + 4
        struct.pack_into("<I", blocks[0], at, struct.unpack_from("<I", blocks[0], at)[0] + 16)

    with pytest.raises(Refused, match="no operator of the source has these weights"):
        prove(forge_blocks(convert(data, Options()).model, move), data)


def test_one_changed_weight_is_refused() -> None:
    data = tiny.convnet()

    def change(blocks: Blocks) -> None:
        blocks[1][1] ^= 1  # the second of three input channels; the lanes behind them are not used

    with pytest.raises(Refused, match="no operator of the source"):
        prove(forge_blocks(convert(data, Options()).model, change), data)


def test_an_unknown_kernel_is_refused_by_its_byte() -> None:
    data = tiny.convnet()
    places: list[int] = []

    def change(blocks: Blocks) -> None:
        places.append(struct.unpack_from("<I", blocks[0], 64)[0])
        struct.pack_into("<H", blocks[0], places[0] + 4, 999)

    model = forge_blocks(convert(data, Options()).model, change)
    with pytest.raises(Refused, match="kernel 999 is not in the published table") as refusal:
        prove(model, data)
    assert f"byte {places[0]}" in str(refusal.value)


def test_what_the_firmware_refuses_is_refused() -> None:
    """A table of other than 256 entries, and an END of two words."""
    data = recurrent.gru(6)
    compiled = convert(data, Options(passes_off=("roll_steps",))).model

    def table(blocks: Blocks) -> None:
        at, _, operands = next(one for one in calls(blocks[0]) if KERNELS[one[1]][0] == "lut")
        add_to_parameter(blocks[0], at, operands, 0, -4)

    with pytest.raises(Refused, match="a table of 252 entries"):
        prove(forge_blocks(compiled, table), data)

    def end(blocks: Blocks) -> None:
        at, size = struct.unpack_from("<2I", blocks[0], 64)
        struct.pack_into("<BBH", blocks[0], at + size - 4, 0, 0, 2)

    with pytest.raises(Refused, match="instruction 0 of 2 words"):
        prove(forge_blocks(compiled, end), data)

    def goes_on(blocks: Blocks) -> None:
        at, size = struct.unpack_from("<2I", blocks[0], 64)
        struct.pack_into("<BBH", blocks[0], at, 0, 0, 1)
        assert size > 4

    with pytest.raises(Refused, match="the code goes on behind its END"):
        prove(forge_blocks(compiled, goes_on), data)


def test_a_tensor_of_another_shape_is_refused() -> None:
    data = tiny.convnet()

    def change(blocks: Blocks) -> None:
        row = struct.unpack_from("<I", blocks[0], 20)[0]
        sizes = struct.unpack_from("<4I", blocks[0], row + 16)
        struct.pack_into("<4I", blocks[0], row + 16, *sizes[::-1])

    with pytest.raises(Refused, match="row 0 of the tensor table is not"):
        prove(forge_blocks(convert(data, Options()).model, change), data)


def test_a_wrong_checksum_is_refused() -> None:
    data = tiny.convnet()
    compiled = bytearray(convert(data, Options()).model)
    header = bytes(compiled).find(b"nMCd")
    compiled[header + HEADER_BYTES + offset_of(IDENTITY, "checksum")] ^= 1
    with pytest.raises(Refused, match="checksum"):
        prove(bytes(compiled), data)


def test_foreign_microcode_stays_as_it_is() -> None:
    """What NXP's converter made is an operator like any other: equal where its bytes are; ours must be the source's work."""
    data = tiny.convnet()

    def spoil(blocks: Blocks) -> None:
        blocks[0][4] ^= 1  # the version: another format now

    foreign = forge_blocks(convert(data, Options()).model, spoil)
    assert prove(foreign, foreign).graphs == 0
    with pytest.raises(Refused, match="no open microcode"):
        prove(foreign, data)
    with pytest.raises(Refused, match="compiled model itself"):
        prove(foreign, convert(data, Options()).model)


def test_another_source_is_refused() -> None:
    with pytest.raises(Refused):
        prove(convert(tiny.convnet(), Options()).model, tiny.sandwich())


@cache
def compile_once() -> tuple[bytes, bytes]:
    """A model and what it compiles to."""
    return tiny.convnet(), convert(tiny.convnet(), Options()).model


@examples(150)
@given(st.data())
def test_damage_is_refused_or_harmless(data: st.DataObject) -> None:
    source, good = compile_once()
    bad = bytearray(good)
    for _ in range(data.draw(st.integers(1, 4))):
        bad[data.draw(st.integers(0, len(bad) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.one_of(st.none(), st.integers(0, len(bad))))
    try:
        prove(bytes(bad[:cut]), source)
    except Refused:
        return  # what it is not: an exception of another kind, or a search without end


def test_the_checker_needs_nothing_but_the_standard_library() -> None:
    code = (
        "import sys; import openneutron.certify.prove, openneutron.certify.certificate, openneutron.certify.program;"
        "from openneutron.certify import kernels; kernels.load();"
        "print(sorted(m for m in sys.modules if m.split('.')[0] in ('numpy', 'flatbuffers', 'torch', 'typer')))"
    )
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )


def test_an_endless_operand_is_refused_at_once() -> None:
    data = tiny.convnet()

    def change(blocks: Blocks) -> None:
        code = struct.unpack_from("<I", blocks[0], 64)[0]
        struct.pack_into("<I", blocks[0], code + 24 + 28, 1 << 31)  # rows of the first call's input

    with pytest.raises(Refused, match="elements"):
        prove(forge_blocks(convert(data, Options()).model, change), data)


@pytest.mark.parametrize(
    ("word", "value", "target", "why"),
    [
        (36, 1 << 30, "imx95", "no schedule of the source needs"),  # scratch
        (40, 1 << 30, "imx95", "no schedule of the source needs"),  # fetched constants
        (80, 1 << 31, "imxrt700", "a state of"),
    ],
    ids=["scratch", "prefetch", "state"],
)
def test_endless_memory_is_refused_at_once(tmp_path: Path, word: int, value: int, target: str, why: str) -> None:
    """In a process of its own, which allocates nothing but what the proof takes."""
    data = tiny.convnet()

    def change(blocks: Blocks) -> None:
        struct.pack_into("<I", blocks[0], word, value)

    files = tmp_path / "forged.tflite", tmp_path / "source.tflite"
    files[0].write_bytes(forge_blocks(convert(data, Options(target=target)).model, change))
    files[1].write_bytes(data)
    done = subprocess.run([sys.executable, "-c", _PEAK, *map(str, files)], capture_output=True, text=True, check=True)
    peak, refusal = done.stdout.split(" ", 1)
    assert re.search(why, refusal)
    assert int(peak) < 32 << 20


# Prints the bytes that a proof takes at most, and why it is refused.
_PEAK = """
import sys, tracemalloc
from pathlib import Path
from openneutron.certify.prove import prove
from openneutron.certify.refused import Refused
forged, source = (Path(name).read_bytes() for name in sys.argv[1:])
tracemalloc.start()
try:
    prove(forged, source)
except Refused as refused:
    print(tracemalloc.get_traced_memory()[1], refused)
"""


def test_an_endless_loop_is_refused() -> None:
    """A body that is right may be repeated, but not for ever."""
    maker = ModelMaker(np.random.default_rng(0))
    x = maker.input((1, 16, 16, 3), DType.INT8, 0.1, 0)
    maker.op("MAX_POOL_2D", [x], maker.output((1, 16, 16, 3), DType.INT8, 0.1, 0), padding="SAME", stride_h=1, stride_w=1,
             filter_height=3, filter_width=3)  # fmt: skip
    data = write_model(maker.model())

    def change(blocks: Blocks) -> None:
        at, size = struct.unpack_from("<2I", blocks[0], 64)
        body = bytes(blocks[0][at : at + size - 4])
        loop = struct.pack("<BBH2I", 4, 0, 3, 0xFFFFFFFF, len(body) // 4)
        blocks[0][at : at + size] = loop + body + struct.pack("<BBH", 0, 0, 1)
        struct.pack_into("<I", blocks[0], 24, len(blocks[0]))
        struct.pack_into("<I", blocks[0], 68, size + len(loop))
        struct.pack_into("<I", blocks[0], 72, 0xFFFFFFFF)
        struct.pack_into("<I", blocks[0], 52, 0xFFFFFFFF)

    good = convert(data, Options(optimize="fast")).model
    with pytest.raises(Refused, match="more work"):
        prove(forge_blocks(good, change), data)
