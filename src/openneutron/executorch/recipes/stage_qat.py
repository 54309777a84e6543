"""The QAT stage: prepare → the user's train function → convert, in place of ExecuTorch's QUANTIZE stage.

Unlike that one it captures the model with a batch of two, so that example inputs of one image do not fix the batch size,
leaves the caller's model as it was, checks losses, and freezes statistics by a schedule. It knows no backend.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from executorch.export import StageType
from executorch.export.stages import PipelineArtifact, Stage
from torchao.quantization.pt2e.quantizer import ComposableQuantizer, Quantizer

from openneutron.errors import OptionError
from openneutron.executorch.quantize.train.aware import Passes, quantize_aware
from openneutron.executorch.quantize.train.training import STAGE, Schedule, TrainFunction


class QatStage(Stage):
    """A drop-in for the QUANTIZE stage that trains.

    Example:
        >>> stage = QatStage([NeutronQuantizer(is_qat=True)], train, schedule=Schedule(freeze_norms=0.5))
        >>> session.register_stage(StageType.QUANTIZE, stage)
    """

    def __init__(
        self,
        quantizers: Sequence[Quantizer],
        train: TrainFunction,
        *,
        schedule: Schedule | None = None,
        progress: Callable[[str], None] | None = None,
        passes: Passes | None = None,
    ) -> None:
        super().__init__()
        if not quantizers:
            raise OptionError("there is no quantizer", where=STAGE, hint="give at least one")
        self._quantizer = quantizers[0] if len(quantizers) == 1 else ComposableQuantizer(list(quantizers))
        self._train = train
        self._schedule = schedule or Schedule()
        self._progress = progress
        self._passes = passes or Passes()

    @property
    def stage_type(self) -> Any:
        """It takes the place of QUANTIZE, which the stages behind it expect."""
        return StageType.QUANTIZE

    @property
    def valid_predecessor_stages(self) -> list[Any]:
        """As QUANTIZE."""
        return [StageType.SOURCE_TRANSFORM]

    @property
    def can_start_pipeline(self) -> bool:
        """As QUANTIZE."""
        return True

    def run(self, artifact: PipelineArtifact) -> None:
        """Train every method's model; a failure leaves no artifact."""
        inputs = artifact.get_context("example_inputs")
        quantized = {}
        for method, model in artifact.data.items():
            if not inputs.get(method):
                raise OptionError(f"method {method} has no example inputs", where=STAGE)
            quantized[method] = quantize_aware(
                model, inputs[method][0], self._quantizer, self._train,
                schedule=self._schedule, progress=self._progress, passes=self._passes,
            )  # fmt: skip
        self._artifact = artifact.copy_with_new_data(quantized)
