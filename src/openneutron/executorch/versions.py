"""Which ExecuTorch is installed, whether we work with it, and everything that differs between its versions.

Example:
    >>> check_executorch()
    '1.5'
"""

from __future__ import annotations

import ctypes
import os
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from openneutron.errors import MissingExtraError, OpenNeutronError
from openneutron.machine.native import delegate_built_for

SUPPORTED: Final = ("1.4", "1.5")  # minor versions, oldest first
_COUNT: Final = "_ZN10executorch7runtime27get_num_registered_backendsEv"  # a C++ function without arguments


def check_executorch(purpose: str = "this") -> str:
    """The minor version that is installed; an `OpenNeutronError` when there is none or it is not supported."""
    try:
        installed = version("executorch")
    except PackageNotFoundError:
        raise MissingExtraError(
            f"{purpose} needs the Python package executorch, which is not installed",
            hint="pip install 'openneutron[executorch]'",
        ) from None
    minor = ".".join(installed.split(".")[:2])
    if minor not in SUPPORTED:
        raise OpenNeutronError(
            f"executorch {installed} is installed, this OpenNeutron works with {' and '.join(SUPPORTED)}",
            hint=f"pip install 'executorch=={SUPPORTED[-1]}.*'",
        )
    return minor


def check_delegate() -> str:
    """The same before the delegate is loaded, which is built for one minor version."""
    minor = check_executorch("running a program")
    built = delegate_built_for()
    if built and built != minor and not os.environ.get("OPENNEUTRON_DELEGATE"):
        raise OpenNeutronError(
            f"executorch {version('executorch')} is installed; the delegate was built for {built}.x",
            hint=f"pip install 'executorch=={built}.*', or build OpenNeutron from source beside this one",
        )
    return minor


def show_registry(minor: str, backends: int) -> int:
    """Let the delegate find ExecuTorch's registries, where `backends` are known; the mode to load it with.

    From 1.5 on they are in libexecutorch, which the delegate names. In 1.4 kernels register in the Python extension, which
    the interpreter loads for itself alone: opening it again makes its symbols visible. The registry of backends is in
    whichever of two libraries was loaded first; if it is the one that the delegate links, the delegate must not see
    the other.
    """
    if minor != "1.4" or sys.platform != "linux":
        return ctypes.DEFAULT_MODE
    extension = Path(sys.modules["executorch.extension.pybindings._portable_lib"].__file__ or "")
    package = extension.parents[2]
    linked = package / "backends" / "qualcomm" / "libqnn_executorch_backend.so"
    visible = os.RTLD_NOW | os.RTLD_GLOBAL | os.RTLD_NOLOAD
    mode = ctypes.DEFAULT_MODE
    if linked.is_file() and ctypes.CDLL(str(linked))[_COUNT]() == backends:
        mode = os.RTLD_NOW | os.RTLD_DEEPBIND
    else:
        for other in (package / "kernels" / "quantized").glob("libquantized_ops_aot_lib.*"):
            ctypes.CDLL(str(other), mode=visible)
    ctypes.CDLL(str(extension), mode=visible)
    return mode
