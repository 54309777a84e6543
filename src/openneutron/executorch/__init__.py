"""The PyTorch side: quantizer, partitioner and backend for ExecuTorch. Beside it only `onnx` and `zoo` import torch.

A name is imported when it is first used. So importing this package needs Python alone, and the quantizer needs only torch
and torchao.

Example:
    >>> from openneutron.executorch import NeutronPartitioner, NeutronQuantizer, generate_neutron_compile_spec
    >>> partitioner = NeutronPartitioner(generate_neutron_compile_spec("imxrt700"))
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from openneutron.extras import extra

if TYPE_CHECKING:
    from openneutron.executorch.compile_spec import NeutronCompileSpecBuilder, generate_neutron_compile_spec
    from openneutron.executorch.deliver.backend import NeutronBackend
    from openneutron.executorch.partition.delegation import CustomDelegationOptions
    from openneutron.executorch.partition.partitioner import NeutronPartitioner
    from openneutron.executorch.quantize import NeutronQuantizer
    from openneutron.executorch.target_spec import NeutronTargetSpec

__all__ = [
    "CustomDelegationOptions",
    "NeutronBackend",
    "NeutronCompileSpecBuilder",
    "NeutronPartitioner",
    "NeutronQuantizer",
    "NeutronTargetSpec",
    "generate_neutron_compile_spec",
]

_HOMES = {
    "CustomDelegationOptions": "partition.delegation",
    "NeutronBackend": "deliver.backend",
    "NeutronCompileSpecBuilder": "compile_spec",
    "NeutronPartitioner": "partition.partitioner",
    "NeutronQuantizer": "quantize.quantizer",
    "NeutronTargetSpec": "target_spec",
    "generate_neutron_compile_spec": "compile_spec",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with extra(f"openneutron.executorch.{name}"):
        value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
