"""Functions of one value as tables: each is exactly the quantized PyTorch graph."""

from __future__ import annotations

from collections.abc import Callable

import torch
from executorch.exir import to_edge
from torch.nn import functional

from openneutron.executorch.fx import operator_name
from openneutron.executorch.lower.encoding import Constants
from openneutron.executorch.lower.ops.functions import _DECOMPOSED, _KEPT
from openneutron.executorch.operators import annotation_rules, lowerings
from openneutron.executorch.partition.clusters import examine, find_clusters
from openneutron.executorch.partition.trial_lowering import TrialLowerings
from openneutron.executorch.pipeline import quantize
from openneutron.litert.table_composite import CODE
from openneutron.options import Options
from openneutron.verdict import OK
from tests.executorch.harness import Case, Function, check, reasons

# Functions with a restricted domain: their argument is moved there first.
_POSITIVE = frozenset({"log10", "log1p", "log2", "reciprocal"})
_UNIT = frozenset({"acos", "asin", "atanh", "logit", "tan"})


def _function(name: str) -> Callable[[torch.Tensor], torch.Tensor]:
    if name == "threshold":
        return lambda x: functional.threshold(x, 0.1, -0.5)
    if name == "log_sigmoid":
        return functional.logsigmoid
    return getattr(torch, name, None) or getattr(functional, name)


def _case(name: str) -> Case:
    def make() -> tuple[Callable[[torch.Tensor], torch.Tensor], tuple[torch.Tensor, ...]]:
        x = torch.rand(2, 9) * 0.9 + 0.05 if name in _UNIT | _POSITIVE | {"acosh"} else torch.randn(2, 9) * 2
        return _function(name), (x + {"acosh": 1.1}.get(name, 0.3 if name in _POSITIVE else 0.0),)

    return make


NUMBERS: dict[str, Case] = {
    "cube": lambda: (lambda x: x**3, (torch.randn(2, 9),)),
    "square root as a power": lambda: (lambda x: x**0.5, (torch.rand(2, 9),)),
    "power of two": lambda: (lambda x: 2**x, (torch.randn(2, 9),)),
    "number over tensor": lambda: (lambda x: 2 / x, (torch.rand(2, 9) + 0.3,)),
    "number minus tensor": lambda: (lambda x: 1 - x, (torch.randn(2, 9),)),
    "remainder": lambda: (lambda x: x % 0.7, (torch.randn(2, 9),)),
    "fmod": lambda: (lambda x: torch.fmod(x, 0.7), (torch.randn(2, 9),)),
    "elu with alpha": lambda: (lambda x: functional.elu(x, 0.5), (torch.randn(2, 9),)),
    "softplus with beta": lambda: (lambda x: functional.softplus(x, 2.0, 5.0), (torch.randn(2, 9),)),
    "clamp at one end": lambda: (lambda x: x.clamp(min=0.3), (torch.randn(2, 9),)),
    "an image": lambda: (functional.mish, (torch.randn(1, 3, 4, 5),)),
}


def test_every_function() -> None:
    checked = check({name: _case(name) for name in (*_KEPT, *_DECOMPOSED)})
    assert set(checked.codes) == {CODE}


def test_functions_with_numbers() -> None:
    assert set(check(NUMBERS, layouts=True).codes) == {CODE}


def test_a_function_behind_a_layer_costs_no_pass_of_its_own() -> None:
    """The table is applied where the convolution writes its result."""
    checked = check({"conv": lambda: (torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.Mish()), _image())})
    assert len(checked.built.report.kernels) == 1


def _image() -> tuple[torch.Tensor, ...]:
    return (torch.randn(1, 3, 6, 6),)


def test_where_a_function_has_no_value_the_table_holds_zero() -> None:
    from openneutron.executorch.pipeline import build
    from openneutron.executorch.run.runtime import load_program

    x = torch.linspace(-1, 1, 64).reshape(1, 64)
    built = build(Function(torch.log10), (x,), calibration=[(x.abs() + 0.1,)])
    (got,) = load_program(built.pte).run(x)
    assert torch.isfinite(got).all()


def test_the_nxp_converter_gets_no_tables() -> None:
    inputs = (torch.randn(2, 9),)
    program = quantize(Function(lambda x: torch.sin(torch.relu(x))), inputs, [inputs]).program
    edge = to_edge(program).exported_program()
    clusters = find_clusters(edge.graph)
    for cluster in clusters:
        examine(cluster, TrialLowerings(Constants(edge), lambda signature: OK, Options("imxrt700", converter="nxp")))
    (left,) = [cluster.reason for cluster in clusters if cluster.reason]
    assert left.code == "needs_table" and "NXP" in left.message and left.hint


def test_an_excluded_function_is_not_tabulated_in_pieces() -> None:
    found = reasons(
        lambda x: functional.softplus(torch.relu(x)), _image(), operators_not_to_delegate=("aten.softplus",)
    )
    assert "aten.softplus" in found["excluded"]


def test_every_name_is_an_operator() -> None:
    """A misspelt name would silently never match."""
    names = [*annotation_rules(), *lowerings()]
    for name in names:
        namespace, base, overload = name.split(".")
        if namespace == "aten" and base in (*_KEPT, *_DECOMPOSED):
            assert hasattr(getattr(torch.ops.aten, base), overload), name


def test_each_is_annotated_with_its_own_range() -> None:
    module = quantize(Function(torch.expm1), (torch.randn(3, 4),), [(torch.randn(3, 4),)]).module
    scales = {node.args[1] for node in module.graph.nodes if "quantize" in operator_name(node)}
    assert len(scales) == 2
