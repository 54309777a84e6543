"""Streams: every layer of every frame, with what the model keeps from frame to frame."""

from __future__ import annotations

import numpy as np
import pytest

from openneutron.analyze import litert_layers, verify
from openneutron.analyze.litert_layers import verify_compiled, verify_litert
from openneutron.convert import convert
from openneutron.options import Options
from openneutron.run.golden import Golden
from tests.loops import Loop
from tests.streaming import running_sum, streaming_convnet

FRAMES = [[frame] for frame in np.random.default_rng(1).integers(-128, 128, (5, 1, 1, 1, 4)).astype(np.int8)]


@pytest.mark.parametrize("target", ["imxrt700", "imx95"])
def test_every_frame_of_a_stream_is_compared(target: str) -> None:
    one = verify_litert(streaming_convnet(), FRAMES[:1], Options(target=target))
    found = verify_litert(streaming_convnet(), FRAMES, Options(target=target))
    assert found.equal and found.frames == 5
    assert [layer.elements for layer in found.layers] == [5 * layer.elements for layer in one.layers]
    assert found.values["out"].shape == (5, *one.values["out"].shape)


def test_golden_values_follow_the_stream() -> None:
    golden = Golden(running_sum())
    x = np.full((1, 4), 10, np.int8)
    totals = [golden.run([x]) for _ in range(3)]
    last = max(totals[0])
    assert [values[last].tolist() for values in totals] == [[[5] * 4], [[10] * 4], [[15] * 4]]


def test_a_state_that_is_lost_shows_in_the_second_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    original = verify.snapshot

    def forgetful(simulator, program, inputs):
        simulator.reset()
        return original(simulator, program, inputs)

    compiled = convert(streaming_convnet(), Options()).model
    assert verify_compiled(compiled, streaming_convnet(), FRAMES, source="x").equal
    monkeypatch.setattr(verify, "snapshot", forgetful)
    found = verify_compiled(compiled, streaming_convnet(), FRAMES, source="x")
    assert not found.equal and found.first_frame == 1


def test_layers_of_a_loop_are_compared_unrolled_and_its_outputs_as_the_file_has_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = Loop(outputs=("sequence", "counter", "state")).data()
    inputs = [np.ones((6, 1, 6), np.int8), np.ones((1, 12), np.int8)]
    options = Options(target="imxrt700", passes_off=("roll_steps",))
    found = verify_litert(data, [inputs], options)
    assert found.equal and {"fc12/0", "tanh/5"} <= {layer.name for layer in found.layers}
    assert [layer.name for layer in found.outputs if layer.kernel == "model output"] == [
        "y_out",
        "loop_counter_out",
        "h_out",
    ]
    compiled = convert(data, Options()).model
    assert verify_compiled(compiled, data, [inputs], source="x").equal
    other = Loop(start=1, outputs=("sequence", "counter", "state")).data()
    runner = litert_layers.LiteRtRunner
    monkeypatch.setattr(
        litert_layers, "LiteRtRunner", lambda model, source: runner(other if model == data else model, source=source)
    )
    assert not verify_compiled(compiled, data, [inputs], source="x").equal
