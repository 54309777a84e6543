"""Import of ExecuTorch's own Cortex-M backend on first use: it needs a package that most users do not have."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any, Final

from openneutron.errors import OpenNeutronError, OptionError

# The version that executorch 1.5 names for its Arm extras. Its pins of numpy and flatbuffers contradict executorch's
# own, and the parts used here do not need them.
TOSA_TOOLS: Final = "tosa-tools==2026.5.0"


@dataclass(frozen=True)
class CortexMBackend:
    """The parts of the backend that are used here."""

    quantizer: Any
    pass_manager: Any
    target_config: Any
    per_tensor_config: Any
    annotation: Any
    matched_key: str
    create_constant: Any


def cortex_m_backend(*, where: str) -> CortexMBackend:
    """Import the backend; a clear error when tosa-tools is missing.

    Example:
        >>> quantizer = cortex_m_backend(where="recipe cortex_m").quantizer(use_explicit_layout=True)
    """
    try:
        from executorch.backends.arm.common.annotation_meta import ArmAnnotationInfo
        from executorch.backends.cortex_m.passes.cortex_m_pass_manager import CortexMPassManager
        from executorch.backends.cortex_m.quantizer.pattern_matcher import PatternMatcher
        from executorch.backends.cortex_m.quantizer.quantization_configs import CortexMQuantizationConfig
        from executorch.backends.cortex_m.quantizer.quantizer import CortexMQuantizer
        from executorch.backends.cortex_m.target_config import CortexMTargetConfig
        from executorch.backends.transforms.utils import create_constant_placeholder
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("tosa"):
            raise
        raise OpenNeutronError(
            "ExecuTorch's Cortex-M backend needs tosa-tools, which is not installed",
            where=where,
            hint=f"pip install --no-deps {TOSA_TOOLS}",
        ) from error
    # They warn about every activation without a Cortex-M operator, and about their own deprecated base class.
    for name in ("executorch.backends.cortex_m", "executorch.exir.pass_manager"):
        logging.getLogger(name).setLevel(logging.ERROR)
    return CortexMBackend(
        CortexMQuantizer,
        CortexMPassManager,
        CortexMTargetConfig,
        CortexMQuantizationConfig,
        ArmAnnotationInfo,
        PatternMatcher.Q_PATTERN_MATCHED_KEY,
        create_constant_placeholder,
    )


def target_config(backend: CortexMBackend, cpu: str) -> Any:
    """Return ExecuTorch's configuration for the name of a core."""
    try:
        return backend.target_config.from_target_string(cpu)
    except (ValueError, AttributeError) as error:
        raise OptionError(f"cpu is {cpu!r}: {error}", where="recipe cortex_m") from error
