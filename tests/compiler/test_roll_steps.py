"""Equal steps become one loop: exact, proved, and as small for 250 steps as for 25."""

from __future__ import annotations

import numpy as np
import pytest

from openneutron.certify.prove import prove
from openneutron.convert import convert
from openneutron.machine import targets
from openneutron.options import Options
from openneutron.run.runner import LiteRtRunner, random_inputs
from tests.recurrent import gru

FORMS = {
    "last state": gru(6),
    "sequence": gru(6, sequence=True),
    "backwards": gru(6, backwards=True),
    "sequence backwards": gru(6, sequence=True, backwards=True),
    "16 bits": gru(6, wide=True),
    "16 bits, sequence backwards": gru(5, sequence=True, backwards=True, wide=True),
    "batch": gru(5, batch=2),
    "sequence of a batch": gru(5, batch=2, sequence=True),
}


@pytest.mark.parametrize("target", targets.names())
@pytest.mark.parametrize("name", FORMS)
def test_rolled_steps_are_litert(name: str, target: str) -> None:
    data = FORMS[name]
    result = convert(data, Options(target=target))
    assert result.report.passes["roll_steps"] == 1
    if "16 bits" not in name:  # the checker has no rules for moves of two-byte elements
        assert prove(result.model, data).calls > 5 * 9
    reference, compiled = LiteRtRunner(data), LiteRtRunner(result.model)
    for seed in range(3):
        inputs = random_inputs(reference.inputs, seed=seed)
        wanted, got = reference.run(inputs).outputs, compiled.run(inputs).outputs
        assert all(np.array_equal(wanted[key], got[key]) for key in wanted)


def test_microcode_and_weights_do_not_grow_with_the_steps() -> None:
    few, many = (convert(gru(steps), Options(target="imxrt700")).report.totals for steps in (25, 75))
    assert (few.microcode_bytes, few.weight_bytes) == (many.microcode_bytes, many.weight_bytes)


def test_a_loop_holds_one_row_of_what_only_it_reads() -> None:
    rolled = convert(gru(25), Options(target="imxrt700")).report
    loop = [kernel for kernel in rolled.kernels if "25 equal steps as one" in kernel.notes]
    assert len(loop) == 9 and all(kernel.calls == 25 for kernel in loop)
    assert rolled.totals.scratch_bytes < 2 * 25 * 36 + 25 * 12  # the gates of all steps and the states, and little more


def test_switched_off_every_step_stays() -> None:
    report = convert(gru(6), Options(target="imxrt700", passes_off=("roll_steps",))).report
    assert len(report.kernels) > 6 * 9
