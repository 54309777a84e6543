"""An application that sees one header: the model's functions initialise and run it, in C and in C++."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

import openneutron
from openneutron.cli.inputs.payloads import payload_of_file
from openneutron.executorch.deliver.embed import embed, random_inputs
from openneutron.machine import native
from openneutron.machine.simulator import Simulator
from openneutron.microcode.payload import parse_payload
from tests import tiny

ROOT = Path(__file__).parents[3]
# Two handles of one model, their runs interleaved; each prints its output. What an arena is not is refused.
MAIN = r"""
#include <stdio.h>
#include <string.h>
#include "net.h"
static uint8_t arenas[2][NET_ARENA_BYTES] __attribute__((aligned(16)));
static uint8_t result[4096] __attribute__((aligned(16)));
int main(void) {
    void *outputs[] = {result};
    if (!net_run(arenas[0], net_inputs, outputs) || !net_reset(arenas[0])) return 1;
    memset(arenas, 0xA5, sizeof arenas);
    if (!net_init(arenas[0], NET_ARENA_BYTES - 1) || !net_init(arenas[0] + 8, NET_ARENA_BYTES)) return 2;
    for (int at = 0; at < 2; at++)
        if (net_init(arenas[at], NET_ARENA_BYTES)) return 3;
    static const uint32_t bytes[] = NET_OUTPUT_BYTES;
    for (int at = 0; at < 4; at++) {
        memset(result, 0x5A, sizeof result);
        if (net_run(arenas[at % 2], net_inputs, outputs)) return 4;
        for (uint32_t one = 0; one < bytes[0]; one++) printf("%02x", result[one]);
        printf("\n");
    }
    return net_reset(arenas[1]) != 0 || net_run(arenas[1], NULL, outputs) == 0;
}
"""


@pytest.mark.parametrize("compiler", ["cc", "c++"])
@pytest.mark.parametrize("target", ["imxrt700", "cortex_m33"])
def test_an_application_runs_two_handles_of_a_model(tmp_path: Path, compiler: str, target: str) -> None:
    compiled = openneutron.compile(tiny.convnet(), target=target).tflite
    where, data = payload_of_file(compiled, "net.tflite", None)
    payload = parse_payload(data, where=where)
    inputs = random_inputs(payload, seed=1, where=where)
    made = embed(data, name="net", header="net.h", where=where, inputs=inputs)
    suffix = "c" if compiler == "cc" else "cpp"
    for name, text in (("net.c", made.source), ("net.h", made.header), (f"main.{suffix}", MAIN)):
        (tmp_path / name).write_text(text)
    library = Path(native.__file__).parents[1] / "lib"
    build = ["-Wall", "-Werror", f"-I{ROOT / 'runtime' / 'include'}"]
    subprocess.run(["cc", "-c", "net.c", *build], cwd=tmp_path, check=True)
    link = [f"-L{library}", f"-Wl,-rpath,{library}", "-l:libopenneutron.so", "-o", "app"]
    subprocess.run([compiler, f"main.{suffix}", "net.o", *build, *link], cwd=tmp_path, check=True)
    done = subprocess.run(["./app"], cwd=tmp_path, capture_output=True, text=True)
    with Simulator(payload.microcode, payload.weights, payload.kernels) as simulator:
        (wanted,) = simulator.run(inputs)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [np.ascontiguousarray(wanted).tobytes().hex()] * 4
