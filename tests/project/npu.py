"""A model and what NXP's converter could make of it, and the files that the stand-in of TensorFlow Lite Micro reads."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from openneutron.litert.read import read_model
from openneutron.litert.write import write_model
from openneutron.project import boards
from openneutron.project.npu import NpuModel, npu_model
from openneutron.project.samples import Array
from tests import tiny
from tests.compat.nxp_file import converted

# Softmax stays on the CPU, as NXP's converter leaves it.
_SOFTMAX = 4


@dataclass(frozen=True)
class Pair:
    """A model and its converted file."""

    source: Path
    converted: Path

    def npu(self, board: str = "mimxrt700evk") -> NpuModel:
        data = self.converted.read_bytes()
        return npu_model(data, self.converted.name, self.source, boards.load(board), inputs=[], count=2, seed=0)


def pair(folder: Path) -> Pair:
    """Write both files."""
    made = Pair(folder / "model.tflite", folder / "model_npu.tflite")
    made.source.write_bytes(tiny.convnet())
    model = converted(read_model(tiny.convnet(), source="convnet"), left=[_SOFTMAX])
    made.converted.write_bytes(write_model(model))
    return made


def answers(folder: Path, npu: NpuModel, outputs: tuple[tuple[Array, ...], ...]) -> dict[str, str]:
    """The environment in which the stand-in has these outputs."""
    sizes = [[array.nbytes for array in arrays] for arrays in (npu.inputs[0], npu.exact[0])]
    (folder / "sizes.txt").write_text(" ".join(f"{len(one)} {' '.join(map(str, one))}" for one in sizes))
    (folder / "outputs.bin").write_bytes(b"".join(array.tobytes() for run in outputs for array in run))
    named = {"STANDIN_SIZES": str(folder / "sizes.txt"), "STANDIN_OUTPUTS": str(folder / "outputs.bin")}
    return os.environ | named
