"""Run ExecuTorch's Cortex-M passes on a program, with or without NPU delegates."""

from __future__ import annotations

from typing import Any

from executorch.exir import EdgeCompileConfig
from torch.export import ExportedProgram

from openneutron.errors import OpenNeutronError, UnsupportedError
from openneutron.executorch.cortex_m.backend_parts import CortexMBackend, cortex_m_backend, target_config
from openneutron.executorch.cortex_m.settle_orders import settle_orders
from openneutron.executorch.upstream.edge_names import unchecked_config

STAGE = "cortex_m passes"
# This pass refuses any convolution or pooling that is not quantized; here these stay in portable kernels.
_LEFT_OUT = frozenset({"ValidateCortexMExplicitLayoutPass"})


def edge_compile_config(*, preserve: bool) -> EdgeCompileConfig:
    """Return a configuration without verification, because INT8 operands of ATen operators are invalid in Edge.

    With `preserve`, linear layers and activations are not decomposed, as the Cortex-M passes need them. If a partitioner runs
    before, it decides that itself.
    """
    if not preserve:
        return unchecked_config()
    from executorch.backends.cortex_m.edge_compile_config import cortex_m_edge_compile_config

    return cortex_m_edge_compile_config()


def run_cortex_m_passes(program: ExportedProgram, cpu: str) -> ExportedProgram:
    """Rewrite quantized nodes to `cortex_m::*` operators, with explicit NHWC where these need it.

    Example:
        >>> program = run_cortex_m_passes(edge.exported_program(), "cortex-m33")
    """
    backend = cortex_m_backend(where=STAGE)
    manager = backend.pass_manager(
        program, passes=_passes(backend), target_config=target_config(backend, cpu), use_explicit_layout=True
    )
    try:
        rewritten = manager.transform()
    except OpenNeutronError:
        raise
    except Exception as error:
        first = (str(error).strip().splitlines() or ["no message"])[0]
        raise UnsupportedError(
            f"ExecuTorch's Cortex-M passes failed: {type(error).__name__}: {first}", where=STAGE,
            hint='name the operator in exclude, or take the recipe "neutron"',
        ) from error  # fmt: skip
    settle_orders(rewritten)
    return rewritten


def _passes(backend: CortexMBackend) -> list[Any]:
    return [step for step in backend.pass_manager.explicit_layout_pass_list if step.__name__ not in _LEFT_OUT]
