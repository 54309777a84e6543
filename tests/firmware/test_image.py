"""What images do with unusual models and with too little memory."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from benchmarks import instructions
from openneutron.microcode.payload import parse_payload
from openneutron.run.runner import LiteRtRunner
from tests import tiny
from tests.compiler.networks import Network
from tests.firmware import image
from tests.firmware.conftest import Build
from tests.firmware.models import Model
from tests.several_ends import several_ends


@pytest.mark.parametrize(
    "options",
    [{"use_profiling": True}, {"fetch_constants_to_sram": True}, {"target": "mcxn94x"}],
    ids=["profiling", "prefetch", "mcxn94x"],
)
def test_every_kind_of_payload_runs(
    build: Build, litert_model: Callable[..., Model], request: pytest.FixtureRequest, options: dict[str, object]
) -> None:
    model = litert_model(request.node.callspec.id, tiny.convnet(), **options)
    ran = image.run_image(build(model, "selected", selection=model.selection))
    assert ran.status == 0, ran.text
    assert (ran.outputs, ran.number("cycles")) == model.on_host()


def test_constants_are_decoded_in_blocks_call_by_call_or_at_once(
    build: Build, litert_model: Callable[..., Model]
) -> None:
    net = Network(np.random.default_rng(2), (1, 8, 8, 3))
    data = net.finish(net.conv(net.conv(net.input, 20), 40, 1))
    context = {}
    for decode in ("block", "call", "prepare"):
        model = litert_model(f"decoded-at-{decode}", data)
        ran = image.run_image(build(model, "decoded", decode=decode))
        assert ran.status == 0, ran.text
        assert (ran.outputs, ran.number("cycles")) == model.on_host()
        context[decode] = ran.number("context")
    assert context["block"] < context["call"] < context["prepare"]


def test_layers_of_a_cascade_are_decoded_once_where_they_fit(build: Build, litert_model: Callable[..., Model]) -> None:
    net = Network(np.random.default_rng(2), (1, 16, 8, 3))
    data = net.finish(net.max_pool(net.conv(net.conv(net.input, 20), 40)))
    taken, context = {}, {}
    for decode in ("call", "layer"):
        model = litert_model(f"coded-cascade-{decode}", data, fit_bytes=5000)
        counted = instructions.count(build(model, f"cascade-{decode}", decode=decode, lean=True))
        assert counted.run.outputs == model.on_host()[0]
        taken[decode] = sum(counted.functions[name] for name in ("nd_decode_weights", "nd_decode_columns"))
        context[decode] = counted.run.number("context")
    # When it prepares the model, the driver reads all streams once too.
    assert taken["layer"] < taken["call"] / 2
    assert context["call"] < context["layer"]


def test_a_stack_that_is_too_small_is_reported(build: Build, litert_model: Callable[..., Model]) -> None:
    model = litert_model("convnet", tiny.convnet())
    ran = image.run_image(build(model, "small-stack", stack=768))
    assert (ran.status, ran.outputs) == (3, [])
    assert ran.text.endswith("fault: the stack of 768 bytes is too small\n")


def test_damaged_weights_are_refused_before_anything_runs(build: Build, litert_model: Callable[..., Model]) -> None:
    model = litert_model("damaged", tiny.convnet())
    source = model.folder / "model.c"
    word = int.from_bytes(model.payload.weights[:4], "little")
    text = source.read_text()
    assert f"0x{word:08x}," in text
    source.write_text(text.replace(f"0x{word:08x},", f"0x{word ^ 1:08x},", 1))
    ran = image.run_image(build(model, "damaged"))
    assert ran.status == 1
    assert "error prepare: CHECKSUM: the checksum does not match" in ran.text


def test_the_payload_survives_as_it_was(litert_model: Callable[..., Model]) -> None:
    model = litert_model("convnet", tiny.convnet())
    assert parse_payload((model.folder / "payload.bin").read_bytes(), where="payload") == model.payload


def test_outputs_come_in_the_models_order(build: Build, litert_model: Callable[..., Model]) -> None:
    source = several_ends((1, 0), ("flat", "first", "sum"))
    model = litert_model("several_ends", source)
    ran = image.run_image(build(model, "ends", selection=model.selection))
    wanted = LiteRtRunner(source).run(model.inputs).outputs
    assert list(wanted) == ["flat", "first", "sum"]
    assert ran.outputs == [one.tobytes() for one in wanted.values()]
