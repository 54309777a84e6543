"""ONNX's standard interface, and with it ONNX's own tests of operators."""

from __future__ import annotations

import numpy as np
import pytest

from openneutron.errors import OpenNeutronError, OptionError
from openneutron.onnx import backend
from tests.onnx.models import convnet, node, run_reference
from tests.onnx.suite import MISSES, PASSED, cases, fails, listed, ours

# Every so many of the pass list in the ordinary tests: about a hundred of 1,600.
STRIDE = 16


def test_a_model_computes_what_onnxruntime_computes() -> None:
    image = np.random.default_rng(1).normal(size=(1, 3, 16, 16)).astype(np.float32)
    expected = run_reference(convnet(), {"image": image})
    for inputs in ([image], {"image": image}, image):
        (made,) = backend.run_model(convnet(), inputs)
        np.testing.assert_allclose(made, expected[0], atol=1e-5)


def test_a_node_runs_alone() -> None:
    (made,) = backend.run_node(node("LeakyRelu", ["x"], ["y"], alpha=0.5), [np.array([-2.0, 4.0], np.float32)])
    np.testing.assert_array_equal(made, [-1.0, 4.0])


def test_devices_and_compatibility() -> None:
    assert backend.supports_device("CPU") and not backend.supports_device("CUDA:1")
    assert backend.is_compatible(convnet())
    odd = convnet()
    odd.graph.node[0].op_type = "ImageDecoder"
    assert not backend.is_compatible(odd)
    with pytest.raises(OptionError, match="device is 'CUDA'"):
        backend.prepare(convnet(), "CUDA")


def test_a_missing_input_is_named() -> None:
    with pytest.raises(OpenNeutronError, match="input 'image' is missing"):
        backend.prepare(convnet()).run({})


def _failures(names: list[str]) -> list[str]:
    found = cases()
    gone = [name for name in names if name in found and fails(found[name], ours)]
    return [f"{name}: {fails(found[name], ours)[:300]}" for name in gone]


def test_a_sample_of_onnx_own_tests_still_passes() -> None:
    assert _failures(listed(PASSED)[::STRIDE]) == []


@pytest.mark.full
def test_all_of_onnx_own_tests_that_passed_still_pass() -> None:
    assert _failures(listed(PASSED)) == []


def test_the_lists_of_passes_and_misses_do_not_overlap() -> None:
    assert len(listed(PASSED)) > 1500
    assert not set(listed(PASSED)) & set(listed(MISSES))
    assert all(": " in line for line in MISSES.read_text().splitlines() if not line.startswith("#"))
