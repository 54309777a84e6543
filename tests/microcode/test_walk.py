from __future__ import annotations

from openneutron.machine.simulator import Simulator
from openneutron.microcode.instructions import Dma, Wait
from openneutron.microcode.walk import executed_calls, output_of, steps
from tests.analyze.subjects import subject_of
from tests.compiler.networks import random_network


def test_the_walk_is_what_the_simulator_executes() -> None:
    model, inputs = random_network(3)
    for target in ("imxrt700", "imx95"):
        subject = subject_of(model, target)
        program = subject.program()
        with Simulator(subject.microcode, subject.weights, subject.kernels_block) as simulator:
            _, events = simulator.run_with_events([inputs])
        walked = [(0 if isinstance(step, Dma) else last - first) for step, first, last in steps(program)]
        assert walked == [event.rows for event in events]
        assert len(list(executed_calls(program))) == program_calls(events)


def program_calls(events) -> int:
    return sum(bool(event.kernel) for event in events)


def test_rows_stay_inside_the_output() -> None:
    program = subject_of(random_network(1)[0]).program()
    for call, first, last in executed_calls(program):
        assert 0 <= first < last <= output_of(call).height
    assert not any(isinstance(step, Wait) for step, _, _ in steps(program))
