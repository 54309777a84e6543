"""A small file cannot ask for more memory than its target has, unless the user lifts the limit."""

from __future__ import annotations

import numpy as np
import pytest

from openneutron.errors import RuntimeFailure
from openneutron.machine import driver, targets
from openneutron.machine.simulator import Simulator
from openneutron.microcode.graph_op import Compiled
from openneutron.microcode.instructions import Dma
from openneutron.microcode.table import Region
from tests.hostile import crafted

CODES = {name: word for word, name, _ in driver.errors()}


def sized(target: str, **sizes: int) -> Compiled:
    """Declares memory, and copies the input to the output."""
    copy = (Dma(0, Region.INPUT, 0, Region.SCRATCH, 0, 0, 16), Dma(0, Region.SCRATCH, 0, Region.OUTPUT, 0, 0, 16))
    return crafted.blocks(*copy, target=target, **{"scratch": 16, **sizes})  # type: ignore[arg-type]


HOSTILE = {
    "2 GiB of output": ("imx95", {"output_bytes": 2**31}),
    "2 GiB of scratch": ("imx95", {"scratch": 2**31 - 1}),
    "1.6 G elements": ("imxrt700", {"input_bytes": 1_600_000_000}),
    "a byte more than the chip has": ("mcxn94x", {"scratch": targets.load("mcxn94x").sram_bytes - 127}),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_refused_before_anything_is_allocated(name: str) -> None:
    target, sizes = HOSTILE[name]
    blocks = sized(target, **sizes)
    with pytest.raises(RuntimeFailure, match=r"take [\d]+ bytes, \d+ are allowed") as refused:
        Simulator(blocks.microcode, blocks.weights, blocks.kernels)
    assert refused.value.code == CODES["MEMORY_LIMIT"]


def test_exactly_what_the_chip_has() -> None:
    blocks = sized("mcxn94x", scratch=targets.load("mcxn94x").sram_bytes - 2 * crafted.INPUT_BYTES)
    with Simulator(blocks.microcode, blocks.weights, blocks.kernels) as simulator:
        (found,) = simulator.run([np.arange(crafted.INPUT_BYTES, dtype=np.int8)])
        assert found[:16].tolist() == list(range(16))


def test_lifted(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = sized("mcxn94x", scratch=2**20)
    for limit in ("0", str(2**21)):
        monkeypatch.setenv("OPENNEUTRON_MEMORY", limit)
        with Simulator(blocks.microcode, blocks.weights, blocks.kernels) as simulator:
            simulator.run([np.zeros(crafted.INPUT_BYTES, np.int8)])
    for wrong in ("1G", "-1"):
        monkeypatch.setenv("OPENNEUTRON_MEMORY", wrong)
        with pytest.raises(RuntimeFailure, match="not a number of bytes"):
            Simulator(blocks.microcode, blocks.weights, blocks.kernels)
