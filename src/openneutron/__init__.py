"""OpenNeutron: an open compiler, runtime and ExecuTorch backend for NXP's eIQ Neutron NPU.

Every public name is imported when it is first used, so importing the package costs milliseconds and never imports
torch.

Example:
    >>> import openneutron as on
    >>> program = on.compile(model, example_inputs, calibration=batches, target="imxrt700")
    >>> program.save("model.pte")
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from openneutron._version import __version__
from openneutron.errors import OpenNeutronError
from openneutron.extras import extra

if TYPE_CHECKING:
    from openneutron import zoo
    from openneutron.api import Program, compile
    from openneutron.executorch.capture.weights import load_weights
    from openneutron.executorch.run.runtime import register_runtime
    from openneutron.generation import generate
    from openneutron.machine import targets
    from openneutron.machine.native import litert_delegate
    from openneutron.sweeps.sweeping import sweep

__all__ = [
    "OpenNeutronError",
    "Program",
    "__version__",
    "compile",
    "generate",
    "litert_delegate",
    "load_weights",
    "register_runtime",
    "sweep",
    "targets",
    "zoo",
]

_HOMES = {
    "Program": "openneutron.api",
    "compile": "openneutron.api",
    "generate": "openneutron.generation",
    "litert_delegate": "openneutron.machine.native",
    "load_weights": "openneutron.executorch.capture.weights",
    "register_runtime": "openneutron.executorch.run.runtime",
    "sweep": "openneutron.sweeps.sweeping",
}
# Names that are modules themselves.
_MODULES = {"targets": "openneutron.machine.targets", "zoo": "openneutron.zoo"}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        value: Any = import_module(_MODULES[name])
    elif name in _HOMES:
        with extra(f"openneutron.{name}"):
            value = getattr(import_module(_HOMES[name]), name)
    else:
        raise AttributeError(f"module 'openneutron' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
