"""The SIMD loops give the definition's bytes: whole schedules with their rings and stripes, and how a set is chosen.

Random single calls, byte for byte against the portable kernels and under sanitizers, are in tests/c/test_simd.c.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openneutron.convert import convert
from openneutron.litert.graph import DType
from openneutron.machine import driver
from openneutron.options import Options
from tests.compiler.kernels.test_conv2d import BASE, add_convolution
from tests.compiler.networks import random_network
from tests.golden import ModelMaker, execute, seeds
from tests.sampling import examples

SETS = ("portable", "avx2", "avx512vnni")


def choose(name: str | None) -> bool:
    """Use an instruction set from now on; False when this processor does not have it."""
    chooser = driver.library().neutronSetIsa
    chooser.restype, chooser.argtypes = ctypes.c_bool, [ctypes.c_char_p]
    return bool(chooser(None if name is None else name.encode()))


@pytest.fixture(autouse=True)
def environments_choice() -> Iterator[None]:
    yield
    choose(None)


def available() -> list[str]:
    found = [name for name in SETS if choose(name)]
    choose(None)
    return found


def assert_alike(model: bytes, inputs: list[Any], **options: Any) -> None:
    """Every instruction set gives the portable outputs."""
    compiled = convert(model, Options(**options)).model
    outputs = {}
    for name in available():
        assert choose(name)
        outputs[name] = execute(compiled, inputs)
    for name, found in outputs.items():
        for expected, got in zip(outputs["portable"], found, strict=True):
            assert np.array_equal(expected, got), f"{name}: {np.count_nonzero(expected != got)} bytes differ"


@examples(15)
@given(seeds(), st.sampled_from(["default", "fast"]))
def test_whole_networks(seed: int, optimize: str) -> None:
    model, image = random_network(seed)
    assert_alike(model, [image], optimize=optimize)


@st.composite
def layers(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """Convolutions wider than a vector, ragged in channels and columns."""
    code = draw(st.sampled_from(["CONV_2D", "DEPTHWISE_CONV_2D"]))
    kernel = draw(st.sampled_from([1, 3, 3, 5]))
    cin = draw(st.integers(1, 80))
    dtype = draw(st.sampled_from([DType.INT8, DType.INT8, DType.UINT8, DType.INT16]))
    wide = dtype is DType.INT16
    case = BASE | {
        "dtype": dtype, "cin": cin,
        "cout": cin if code.startswith("DEPTH") else draw(st.integers(1, 80)), "kernel": (kernel, kernel),
        "image": (draw(st.integers(kernel, 12)), draw(st.integers(kernel, 60))), "stride": (draw(st.integers(1, 2)),) * 2,
        "activation": draw(st.sampled_from(["NONE", "RELU", "RELU6"])), "gain": 2.0 ** draw(st.floats(-6, 3)),
        "x_zero": 0 if wide else draw(st.integers(0, 127)), "y_zero": 0 if wide else draw(st.integers(0, 127)),
    }  # fmt: skip
    return code, case


@pytest.mark.parametrize("name", SETS[1:])
@examples(15)
@given(st.lists(layers(), min_size=1, max_size=4), seeds())
def test_wide_layers_equal_the_reference(name: str, cases: list[tuple[str, dict[str, Any]]], seed: int) -> None:
    maker = ModelMaker(np.random.default_rng(seed))
    for code, case in cases:
        add_convolution(maker, code, case)
    if choose(name):
        maker.check()
    else:
        assert name not in available()


@pytest.mark.parametrize("target", ["mcxn94x", "imx95"])
def test_other_packings_work(target: str) -> None:
    maker = ModelMaker(np.random.default_rng(3))
    add_convolution(maker, "CONV_2D", BASE | {"cin": 20, "cout": 40})
    add_convolution(maker, "DEPTHWISE_CONV_2D", BASE | {"cin": 40, "cout": 40})
    maker.check(target)


def isa_under(variable: str | None) -> tuple[str, str]:
    """Instruction set and complaints of a fresh process."""
    environment = {key: value for key, value in os.environ.items() if key != "OPENNEUTRON_ISA"}
    environment |= {} if variable is None else {"OPENNEUTRON_ISA": variable}
    code = (
        "import ctypes; from openneutron.machine import driver as d; f = d.library().neutronGetIsa; "
        "f.restype = ctypes.c_char_p; print(f().decode(), f().decode())"
    )
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    first, second = done.stdout.split()
    assert first == second
    return first, done.stderr


def test_the_environment_names_a_set() -> None:
    for name in available():
        assert isa_under(name) == (name, "")


def test_without_a_name_the_best_is_used() -> None:
    assert isa_under(None) == (available()[-1], "")


def test_an_unknown_name_is_said_once_and_the_best_used() -> None:
    found, complaint = isa_under("avx1024")
    assert found == available()[-1]
    assert complaint.count("avx1024") == 1 and "portable, avx2, avx512vnni" in complaint
