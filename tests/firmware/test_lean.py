"""Lean images, which `make firmware` builds: without cycle model, messages and decoders that their model does not need."""

from __future__ import annotations

from collections.abc import Callable

from tests import tiny
from tests.firmware import image
from tests.firmware.conftest import Build
from tests.firmware.models import Model

# Bytes of CifarNet's image without model and inputs: driver, kernels, start-up and the application.
CIFARNET_CODE = 24 * 1024
KERNEL_MISSING = 0x0313  # docs/reference/errors.md
COSTS, DECODERS = {"nm_call_cost", "nm_encoded_call_cost"}, {"nd_decode_weights", "nd_decode_columns"}


def test_cifarnet_takes_little_flash_and_answers_like_the_host(build: Build, zoo_model: Callable[..., Model]) -> None:
    model = zoo_model("cifarnet", target="cortex_m33")
    path = build(model, "lean", selection=model.selection, lean=True)
    ran = image.run_image(path)
    assert (ran.status, ran.outputs) == (0, model.on_host()[0])
    assert "cycles" not in ran.text
    sections = image.sections(path)
    assert sections[".text"] + sections[".data"] <= CIFARNET_CODE
    assert not (COSTS | DECODERS) & set(image.symbols(path))


def test_coded_constants_keep_their_decoders(build: Build, litert_model: Callable[..., Model]) -> None:
    model = litert_model("convnet", tiny.convnet())
    path = build(model, "lean", selection=model.selection, lean=True)
    assert image.run_image(path).outputs == model.on_host()[0]
    assert DECODERS & set(image.symbols(path)) and not COSTS & set(image.symbols(path))


def test_coded_constants_without_decoders_are_refused_with_a_number(
    build: Build, litert_model: Callable[..., Model]
) -> None:
    model = litert_model("convnet", tiny.convnet())
    # Against what firmware.mk reads in model.h.
    ran = image.run_image(build(model, "no-decoders", selection=model.selection, lean=True, more=["CODED="]))
    assert (ran.status, ran.text.splitlines()[1:]) == (1, [f"error prepare: {KERNEL_MISSING}: : "])
