"""State by name in C++: two loads of one program have two states, and either begins again when its name is set as an option."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from openneutron.litert.read import read_model
from tests.executorch.delegates import compiled, payload_of, program_of
from tests.streaming import running_sum

RUNNER = Path(__file__).parents[3] / "examples" / "cpp_runner"
SOURCE = Path(__file__).parent / "streams.cpp"
INVALID_ARGUMENT, NOT_FOUND = 18, 32  # executorch/runtime/core/error.h

STEP = 5  # ten steps of 0.1 are five of 0.2


@pytest.mark.full  # compiles C++
def test_one_stream_begins_again_and_the_other_goes_on(tmp_path: Path):
    build, model = tmp_path / "build", tmp_path / "sum.pte"
    blocks = compiled(read_model(running_sum()))
    example = torch.zeros((1, 4), dtype=torch.int8)
    model.write_bytes(program_of([payload_of(blocks, [0], [0])], [example], [[example]]))
    configure = ["cmake", "-S", RUNNER, "-B", build, f"-DPython_EXECUTABLE={sys.executable}", f"-Dsource={SOURCE}"]
    for command in (configure, ["cmake", "--build", build]):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    done = subprocess.run([build / "cpp_runner", model], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "loaded 0 0",
        f"a number for a name {INVALID_ARGUMENT}",
        f"sums {STEP} {STEP}",
        f"sums {2 * STEP} {2 * STEP}",
        "reset left 0",
        f"sums {STEP} {3 * STEP}",
        f"reset nobody {NOT_FOUND}",
        f"reset false {INVALID_ARGUMENT}",
        f"reset 1 {INVALID_ARGUMENT}",
        f"threads {INVALID_ARGUMENT}",
        f"sums {2 * STEP} {4 * STEP}",
        "reset all 0",
        f"sums {STEP} {STEP}",
        "loaded 0",
        "reset third 0",
        f"reset a model that is gone {NOT_FOUND}",
    ]
    assert re.findall(r"\] NeutronBackend: (.*)", done.stderr) == [
        "the option stream is a name, a string",
        'no model was loaded with the option stream "nobody"',
        "reset_state is true, or the name of a stream",
        "reset_state is true, or the name of a stream",
        'no option "threads", only reset_state',
        'no model was loaded with the option stream "third"',
    ]
