"""Bundled programs: a `.pte` with inputs and expected outputs, as ExecuTorch's developer tools read them (`.bpte`).

Example:
    >>> Path("model.bpte").write_bytes(bundle(program.pte, [(image,)], program.run))
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from openneutron.executorch.run.inputs import arrange_inputs
from openneutron.microcode.pte import read_plan

_METHOD = "forward"


def bundle(pte: bytes, samples: Sequence[Sequence[Any]], run: Callable[..., Any]) -> bytes:
    """Return the bundled program; `run` gives the outputs that each sample must have, bit for bit."""
    from executorch.devtools import BundledProgram
    from executorch.devtools.bundled_program.config import MethodTestCase, MethodTestSuite
    from executorch.devtools.bundled_program.serialize import serialize_from_bundled_program_to_flatbuffer

    plan = read_plan(pte, where="<pte>")
    cases = []
    for sample in samples:
        inputs = arrange_inputs(plan.inputs, [torch.as_tensor(one) for one in sample], where="the bundle")
        outputs = [one if isinstance(one, torch.Tensor) else torch.as_tensor(one) for one in run(*inputs)]
        cases.append(MethodTestCase(inputs=list(inputs), expected_outputs=outputs))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "program.pte"
        file.write_bytes(pte)
        suites = [MethodTestSuite(method_name=_METHOD, test_cases=cases)]
        bundled = BundledProgram(executorch_program=None, method_test_suites=suites, pte_file_path=str(file))
        return bytes(serialize_from_bundled_program_to_flatbuffer(bundled))
