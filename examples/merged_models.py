"""Two models in one firmware image: one kernel selection for both, and both run in one process.

    python examples/merged_models.py

Writes a.pte, b.pte and kernel_selection.c; docs/kernel-selection.md says how the image is linked.
"""

from __future__ import annotations

import torch
from torch import nn

import openneutron as on
from openneutron.files import write_file
from openneutron.microcode.selection import merge, parse


def compiled(model: nn.Module, shape: tuple[int, ...], name: str) -> on.Program:
    inputs = torch.randn(16, *shape, generator=torch.Generator().manual_seed(0))
    program = on.compile(model.eval(), (inputs[:1],), calibration=[inputs], name=name, dump_kernel_selection_code=True)
    program.save(f"{name}.pte")
    return program


def main() -> dict[str, set[str]]:
    torch.manual_seed(0)
    detector = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(392, 2))
    classifier = nn.Sequential(nn.Linear(32, 16), nn.Tanh(), nn.Linear(16, 4), nn.Softmax(1))
    programs = {"a": compiled(detector, (3, 32, 32), "a"), "b": compiled(classifier, (32,), "b")}

    merged = merge([(f"{name}.c", program.kernel_selection) for name, program in programs.items()])
    write_file("kernel_selection.c", merged)
    codes = {**{name: program.kernel_selection for name, program in programs.items()}, "both": merged}
    kernels = {name: set(parse(name, code).kernels.values()) for name, code in codes.items()}
    for name, held in kernels.items():
        print(f"{name}: {len(held)} kernels: {', '.join(sorted(held))}")

    # One process, one delegate library, both programs: the second's input depends on the first's output.
    (found,) = programs["a"].run(torch.zeros(1, 3, 32, 32))
    (scores,) = programs["b"].run(torch.full((1, 32), float(found.argmax())))
    print(f"the detector says {found.argmax().item()}, the classifier {scores.argmax().item()}")
    return kernels


if __name__ == "__main__":
    main()
