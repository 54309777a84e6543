"""What-ifs of other chips are what compiling for those chips gives."""

from __future__ import annotations

import openneutron as on
from openneutron.executorch.analyze.other_targets import target_what_ifs
from tests.executorch.analyze.test_layer_sqnr import loaded


def test_other_chips_are_compiled_for_and_told_as_whole_programs() -> None:
    source = loaded()
    program = on.compile(source.model, source.example_inputs, calibration=source.calibration)
    found = target_what_ifs(program, source, {"target": "imxrt700", "observer": "histogram"})
    assert [one.target for one in found] == ["imx95", "mcxn94x"]
    again = on.compile(source.model, source.example_inputs, calibration=source.calibration, target="mcxn94x").report
    there = found[1]
    assert there.whole and there.milliseconds_low < there.milliseconds < there.milliseconds_high
    assert (there.cycles, there.peak_bytes) == (again.totals.cycles, again.whole.memory_bytes)
    assert there.change == f"Run on mcxn94x ({len(again.nodes) - 2} of {len(again.nodes) - 2} nodes on the NPU)"
