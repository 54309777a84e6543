"""Models that take and return mappings, lists and tuples of tensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import torch
from torch import nn

import openneutron
from openneutron.errors import OptionError
from openneutron.executorch.capture.structure import flat_module, structure_of


class Pair(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.left, self.right = nn.Linear(4, 8), nn.Linear(4, 3)

    def forward(self, pair: Mapping[str, torch.Tensor], scale: float | None = None) -> dict[str, Any]:
        left, right = self.left(pair["left"]).relu(), self.right(pair["right"])
        return {"left": left, "both": (right, [pair["left"] + pair["right"]])}


class Named(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 8)

    def forward(self, ids: torch.Tensor, position: Any = None, *, mask: torch.Tensor | None = None) -> torch.Tensor:
        found: torch.Tensor = self.layer(ids)
        return found if mask is None else found * mask


def pair(seed: int) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return {name: torch.rand(2, 4, generator=generator) * 2 - 1 for name in ("left", "right")}


def test_a_program_takes_and_returns_what_its_model_does() -> None:
    model, x = Pair().eval(), pair(0)
    program = openneutron.compile(model, (x,), calibration=[(pair(seed),) for seed in range(8)], exclude=("right",))
    found, wanted = program.run(x), model(x)
    assert found.keys() == wanted.keys() and isinstance(found["both"][1], list)
    torch.testing.assert_close(found["left"], wanted["left"], atol=0.02, rtol=0)
    torch.testing.assert_close(found["both"][0], wanted["both"][0], atol=1e-5, rtol=0)  # left in float by its own name
    assert program.input_names == ("pair_left", "pair_right") and program.report.source == "Pair"
    for same in (program.run({"right": x["right"], "left": x["left"]}), program.run(x["left"], x["right"])):
        assert torch.equal(same["left"], found["left"])
    assert [torch.equal(one["left"], found["left"]) for one in program.run_many([x, (x,)])] == [True, True]
    with pytest.raises(OptionError, match=r"not built as example_inputs.*pair_left, pair_right"):
        program.run({"left": x["left"]})


def test_an_exported_program_and_one_bare_mapping() -> None:
    samples = [pair(seed) for seed in range(8)]
    exported = torch.export.export(Pair().eval(), (samples[0],))
    from_export = openneutron.compile(exported, calibration=samples).run(samples[0])
    from_module = openneutron.compile(Pair().eval(), samples[0], calibration=samples).run(samples[0])
    assert torch.equal(from_export["left"], from_module["left"])


def test_arguments_by_name_alone() -> None:
    model = Named().eval()
    samples = [{"mask": torch.rand(2, 8), "ids": torch.rand(2, 4)} for _ in range(8)]
    program = openneutron.compile(model, samples[0], calibration=samples)
    for (found,) in (program.run(samples[1]), program.run(**samples[1])):
        torch.testing.assert_close(found, model(**samples[1]), atol=0.02, rtol=0)
    with pytest.raises(OptionError, match=r"calibration\[0\] is not built as"):
        openneutron.compile(model, samples[0], calibration=[{"ids": torch.rand(2, 4)}])


def test_a_flat_module_shares_everything_but_forward() -> None:
    model, x = Pair(), pair(0)
    structure = structure_of((x,), {}, ["pair"])
    flat = flat_module(model, structure)
    assert flat.left is model.left and type(flat).__name__ == "Pair" and structure.names == ("pair_left", "pair_right")
    assert torch.equal(flat(x["left"], x["right"])["left"], model(x)["left"])
    assert structure.arrange([1, 2]) == (({"left": 1, "right": 2},), {})
