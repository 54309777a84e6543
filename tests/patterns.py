"""What torchao makes anew for every training, made once per process; the folders whose tests train import the fixture."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

import pytest
import torch
from torch.fx import GraphModule


@pytest.fixture(scope="session", autouse=True)
def patterns_once() -> Iterator[None]:
    """Each `prepare_qat_pt2e` and `convert_pt2e` exports up to a hundred small patterns, always the same ones.

    They are most of a training test's time and none of its subject.
    """
    from torchao.quantization.pt2e import qat_utils, utils

    if utils._get_aten_graph_module_for_pattern.__module__ == __name__:
        yield  # another folder's tests brought it
        return
    made: dict[Any, GraphModule] = {}
    export = utils._get_aten_graph_module_for_pattern

    def once(pattern: Callable[..., Any], inputs: tuple[Any, ...], is_cuda: bool = False, **named: Any) -> GraphModule:
        key = (_meaning(pattern), _meaning(inputs), _meaning(named), is_cuda)
        if key not in made:
            made[key] = export(pattern, inputs, is_cuda, **named)
        return copy.deepcopy(made[key])  # who matches a pattern also edits it

    with pytest.MonkeyPatch.context() as patch:
        for module in (qat_utils, utils):
            patch.setattr(module, "_get_aten_graph_module_for_pattern", once)
        yield


def _meaning(value: Any) -> Any:
    """What tells two patterns apart: code and captured values of functions, shapes of tensors."""
    if isinstance(value, torch.nn.Module):
        return _meaning(value.fn)
    if isinstance(value, FunctionType):
        captured = tuple(_meaning(cell.cell_contents) for cell in value.__closure__ or ())
        return value.__code__, captured, _meaning(value.__defaults__)
    if isinstance(value, torch.Tensor):
        return tuple(value.shape), value.dtype
    if isinstance(value, (tuple, list)):
        return tuple(map(_meaning, value))
    if isinstance(value, dict):
        return tuple((name, _meaning(one)) for name, one in sorted(value.items()))
    return value
