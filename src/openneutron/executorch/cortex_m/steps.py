"""Cortex-M's passes as steps of ExecuTorch's EDGE_PROGRAM_MANAGER_TRANSFORM stage; each rewrites all methods in place."""

from __future__ import annotations

from typing import Any

from executorch.exir import EdgeProgramManager

from openneutron.executorch.cortex_m.absorb_transposes import absorb_transposes
from openneutron.executorch.cortex_m.claim import Claim, claim_leftovers
from openneutron.executorch.cortex_m.passes import run_cortex_m_passes
from openneutron.executorch.upstream.edge_names import replace_program


class CortexMPasses:
    """Converts a program without an NPU to Cortex-M operators."""

    def __init__(self, cpu: str) -> None:
        self._cpu = cpu

    def __call__(self, manager: EdgeProgramManager) -> list[Any]:
        """Rewrite all methods of the program; returns no further passes."""
        for method in manager.methods:
            program = run_cortex_m_passes(manager.exported_program(method), self._cpu)
            replace_program(manager, method, program)
        return []


class PlaceLeftovers:
    """Converts what the partitioner leaves: claims nodes, runs Cortex-M's passes, removes transposes at borders.

    `claims` records which engine runs each node, and why.
    """

    def __init__(self, cpu: str) -> None:
        self._cpu = cpu
        self.claims: dict[str, Claim] = {}

    def __call__(self, manager: EdgeProgramManager) -> list[Any]:
        """Rewrite all methods of the program; returns no further passes."""
        for method in manager.methods:
            program = manager.exported_program(method)
            # The partitioner has made the remaining tensors contiguous, as the explicit NHWC pass expects.
            self.claims.update(claim_leftovers(program))
            program = run_cortex_m_passes(program, self._cpu)
            absorb_transposes(program)
            replace_program(manager, method, program)
        return []
