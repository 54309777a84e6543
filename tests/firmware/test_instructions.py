"""Counting the instructions of an image: `benchmarks/instructions.py`."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from benchmarks import instructions
from openneutron.errors import RuntimeFailure
from tests import tiny
from tests.firmware.conftest import Build
from tests.firmware.models import Model


def test_instructions_are_counted_by_function_and_the_same_at_every_run(
    build: Build, litert_model: Callable[..., Model]
) -> None:
    model = litert_model("counted", tiny.convnet(), target="cortex_m33")
    path = build(model, "counted")
    counted = instructions.count(path)
    assert counted.run.outputs == model.on_host()[0]
    assert instructions.count(path).functions == counted.functions
    products, whole = counted.functions["nk_products_two_by4"], counted.total
    assert 0 < products < whole == sum(counted.functions.values())
    assert counted.functions["main"] > 0 and "?" not in counted.functions


def test_an_image_that_fails_is_not_counted(build: Build, litert_model: Callable[..., Model]) -> None:
    model = litert_model("counted", tiny.convnet(), target="cortex_m33")
    with pytest.raises(RuntimeFailure, match=r"ended with status 3: [^:]*fault: the stack of 768"):
        instructions.count(build(model, "counted-small-stack", stack=768))
