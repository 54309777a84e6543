"""Names found quickly are the names torch finds."""

from __future__ import annotations

from importlib import import_module

import pytest
import torch

from openneutron.executorch.upstream.find_names import find_names, is_call_name
from tests.work import calls


def test_names_are_those_of_torch_and_cost_the_same_each() -> None:
    prepare = import_module("torch.ao.quantization.fx.prepare")  # the package has a function of that name
    slow, module = prepare.get_new_attr_name_with_prefix, torch.nn.Module()
    work = []
    with find_names():
        assert prepare.get_new_attr_name_with_prefix is not slow
        for _ in range(40):
            made: list[str] = []
            find = prepare.get_new_attr_name_with_prefix("post.process_")
            work.append(calls(lambda find=find, made=made: made.append(find(module))))
            assert made == [slow("post.process_")(module)]
            setattr(module, made[0], torch.nn.Identity())
        assert max(work[2:]) <= work[1] + 2
        for name in [name for name, _ in module.named_children()]:
            delattr(module, name)
        assert prepare.get_new_attr_name_with_prefix("post.process_")(module) == "post_process_0"
    assert prepare.get_new_attr_name_with_prefix is slow


@pytest.mark.parametrize("name", ["conv", "conv@1", "conv@12", "conv@", "conv@x", "convs", "con", "my.conv"])
def test_calls_of_a_module_are_known_as_torch_knows_them(name: str) -> None:
    unflatten = import_module("torch.export.unflatten")
    assert is_call_name(name, "conv") == unflatten._is_call_name(name, "conv")
