"""The kernel-registration stage: writes the C source that links only the kernels a program calls."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, Final

from executorch.export import StageType
from executorch.export.stages import PipelineArtifact, Stage
from torch.fx import GraphModule

from openneutron.errors import OptionError
from openneutron.executorch.upstream.edge_names import info_of
from openneutron.files import check_target, write_file

KERNEL_SELECTION: Final = "kernel_selection"  # ExecuTorch's StageType is closed; any hashable serves as a type


class KernelSelectionStage(Stage):
    """Runs after TO_EXECUTORCH and passes the program on unchanged; `selection` is what was written.

    Any delegate takes part whose `_delegate_info_meta` has a `kernel_selection_code`. The recipe must ask for the code
    (`dump_kernel_selection_code=True`).

    Example:
        >>> run_recipe(model, [(image,)], recipe, [KernelSelectionStage("model_kernel_selection.c")])
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__()
        self.path = check_target(path, ".c")
        self.selection = ""
        self._modules: list[GraphModule] = []

    @property
    def stage_type(self) -> Any:
        """Its own type."""
        return KERNEL_SELECTION

    @property
    def valid_predecessor_stages(self) -> list[Any]:
        """Only after TO_EXECUTORCH, which finishes the program."""
        return [StageType.TO_EXECUTORCH]

    @property
    def can_start_pipeline(self) -> bool:
        """Never: there would be no program to select kernels for."""
        return False

    def run(self, artifact: PipelineArtifact) -> None:
        """Merge the selections of all delegates and write them, whole or not at all."""
        from openneutron.executorch.pipeline import merge_selections

        codes = [code for method in artifact.data.methods for code in _codes(artifact.data.exported_program(method))]
        if not codes:
            raise OptionError(
                "no delegate of the program has a kernel selection", where=KERNEL_SELECTION,
                hint="make the recipe with dump_kernel_selection_code=True; chips such as imx95 need no selection",
            )  # fmt: skip
        self.selection = merge_selections(codes)
        if not self.selection:
            raise OptionError(
                "the selections are NXP's, which only NXP's own tool merges", where=KERNEL_SELECTION,
                hint="openneutron.nxp.seam, or compile with one partition",
            )  # fmt: skip
        write_file(self.path, self.selection.encode())
        self._artifact = artifact


def _codes(program: Any) -> Iterator[str]:
    from executorch.exir.delegate import executorch_call_delegate

    module = program.graph_module
    for node in module.graph.nodes:
        if node.op == "call_function" and node.target is executorch_call_delegate:
            found = info_of(getattr(module, node.args[0].target))
            code = getattr(found, "kernel_selection_code", "")
            if code:
                yield code
