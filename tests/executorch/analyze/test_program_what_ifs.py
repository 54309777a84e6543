"""What-ifs of a whole program are what compiling with those options gives."""

from __future__ import annotations

import pytest

import openneutron as on
from openneutron.executorch.analyze.program_what_ifs import program_what_ifs
from openneutron.machine import targets
from openneutron.report.model import WhatIf
from tests.executorch.analyze.test_layer_sqnr import loaded

CHIPS = [f"--target {name}" for name in targets.chips() if name != "imxrt700"]


@pytest.fixture(scope="module")
def found() -> dict[str, WhatIf]:
    source = loaded()
    program = on.compile(source.model, source.example_inputs, calibration=source.calibration)
    made = program_what_ifs(program, source, {"target": "imxrt700", "observer": "histogram"})
    return {one.option: one for one in made}


def test_borders_placement_and_chips_are_tried(found: dict[str, WhatIf]) -> None:
    assert list(found) == [
        "--int8-io", "--channels-last", "--int8-io --channels-last", "--placement fastest", *CHIPS,
    ]  # fmt: skip
    assert all(one.whole and one.milliseconds_low < one.milliseconds < one.milliseconds_high for one in found.values())


@pytest.mark.parametrize(
    ("option", "values"),
    [
        ("--int8-io --channels-last", {"int8_io": True, "channels_last": True}),
        ("--target mcxn94x", {"target": "mcxn94x"}),
    ],
)
def test_each_is_what_compiling_gives(found: dict[str, WhatIf], option: str, values: dict) -> None:
    source = loaded()
    again = on.compile(source.model, source.example_inputs, calibration=source.calibration, **values).report
    one = found[option]
    assert (one.cycles, one.peak_bytes) == (again.totals.cycles, again.whole.memory_bytes)
    assert one.milliseconds == pytest.approx(again.whole.milliseconds)
    if "target" in values:
        counts = f"{len(again.nodes) - 2} of {len(again.nodes) - 2}"
        assert one.change == f"Run on mcxn94x ({counts} nodes on the NPU)"


def test_nothing_is_tried_that_is_so_already() -> None:
    source = loaded()
    options = {"int8_io": True, "channels_last": True}
    program = on.compile(source.model, source.example_inputs, calibration=source.calibration, **options)
    made = program_what_ifs(program, source, {"target": "imxrt700", **options})
    assert [one.option for one in made] == ["--placement fastest", *CHIPS]
