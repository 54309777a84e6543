"""Cortex-M's passes as steps of ExecuTorch's EDGE_PROGRAM_MANAGER_TRANSFORM stage; each rewrites every method in place."""

from __future__ import annotations

from typing import Any

from executorch.exir import EdgeProgramManager

from openneutron.executorch.cortex_m.absorb_transposes import absorb_transposes
from openneutron.executorch.cortex_m.claim import Claim, claim_leftovers
from openneutron.executorch.cortex_m.passes import replace_program, run_cortex_m_passes


class CortexMPasses:
    """For a program without an NPU: its operators as Cortex-M's own."""

    def __init__(self, cpu: str) -> None:
        self._cpu = cpu

    def __call__(self, manager: EdgeProgramManager) -> list[Any]:
        """Rewrite; there are no passes left to run."""
        for method in manager.methods:
            program = run_cortex_m_passes(manager.exported_program(method), self._cpu)
            replace_program(manager, method, program)
        return []


class PlaceLeftovers:
    """For what the partitioner leaves: claim, Cortex-M's passes, then borders without transposes.

    `claims` keeps who runs what and why.
    """

    def __init__(self, cpu: str) -> None:
        self._cpu = cpu
        self.claims: dict[str, Claim] = {}

    def __call__(self, manager: EdgeProgramManager) -> list[Any]:
        """Rewrite; there are no passes left to run."""
        for method in manager.methods:
            program = manager.exported_program(method)
            # The partitioner has made what is left contiguous, which is what explicit NHWC starts from.
            self.claims.update(claim_leftovers(program))
            program = run_cortex_m_passes(program, self._cpu)
            absorb_transposes(program)
            replace_program(manager, method, program)
        return []
