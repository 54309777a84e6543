"""A private name that is missing ends in a sentence with the version; what is there does what its name here says."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from torch.export import export

from openneutron.errors import OpenNeutronError
from openneutron.executorch.upstream import names

ATEN = torch.ops.aten


def test_what_is_missing_is_named_with_the_version() -> None:
    for call in (lambda: names.is_erased(SimpleNamespace()), lambda: names.with_calls(SimpleNamespace(), [])):  # type: ignore[arg-type]
        with pytest.raises(OpenNeutronError, match=rf"torch {torch.__version__.split('+')[0]}.* does not have .*_\w+"):
            call()


def test_operators() -> None:
    assert names.overload_of(ATEN.add.Tensor) == "Tensor" and names.schema_of(len) is None
    assert (
        names.aten_operator(len) is len
        and names.aten_operator(SimpleNamespace(_op=ATEN.relu.default)) is ATEN.relu.default
    )
    assert names.has_composite_kernel(ATEN.reshape.default) and not names.has_composite_kernel(ATEN.relu.default)
    assert names.definition_of(ATEN.silu.default) is not None
    names.load_quantized_operators()
    assert torch.ops.quantized_decomposed.quantize_per_tensor.default is not None


def test_programs_are_copies() -> None:
    program = export(torch.nn.ReLU(), (torch.ones(1),))
    other = names.with_graph(program, program.graph_module, program.graph_signature)
    assert other is not program and other.graph_signature == program.graph_signature
    calls = list(program.module_call_graph)
    assert names.with_calls(program, calls[:1]).module_call_graph == calls[:1]
    relu = next(node for node in program.graph.nodes if node.op == "call_function")
    assert not names.is_erased(relu)
    relu.replace_all_uses_with(relu.args[0])
    program.graph.erase_node(relu)
    assert names.is_erased(relu)


def test_buffers_can_be_replaced() -> None:
    norm = torch.nn.BatchNorm1d(2)
    names.buffers_of(norm)["running_mean"] = torch.ones(2)
    assert torch.equal(norm.running_mean, torch.ones(2))
