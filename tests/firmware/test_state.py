"""State on a Cortex-M33: a second run goes on from the first, a reset undoes both, as on the host."""

from __future__ import annotations

import re
from collections.abc import Callable

from openneutron.machine.simulator import Simulator
from tests.firmware import image
from tests.firmware.conftest import Build
from tests.firmware.models import Model
from tests.streaming import streaming_convnet


def _lines(text: str, keyword: str) -> list[bytes]:
    return [bytes.fromhex(digits) for digits in re.findall(rf"^{keyword} \d+ ([0-9a-f]*)$", text, re.MULTILINE)]


def test_runs_go_on_from_each_other(build: Build, litert_model: Callable[..., Model]) -> None:
    model = litert_model("streaming_convnet", streaming_convnet())
    ran = image.run_image(build(model, "state", selection=model.selection))
    assert ran.status == 0, ran.text
    payload = model.payload
    with Simulator(payload.microcode, payload.weights, payload.kernels, poison=True) as simulator:
        first, second = ([one.tobytes() for one in simulator.run(model.inputs)] for _ in range(2))
    assert ran.outputs == first
    assert _lines(ran.text, "second") == second != first
    assert _lines(ran.text, "reset") == first
