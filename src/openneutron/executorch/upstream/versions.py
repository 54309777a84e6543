"""Which ExecuTorch is installed, and whether we work with it.

Example:
    >>> check_executorch()
    '1.5'
"""

from __future__ import annotations

import os
from importlib.metadata import PackageNotFoundError, version

from openneutron.errors import MissingExtraError, OpenNeutronError
from openneutron.executorch.upstream.switch import TESTED, unknown_version
from openneutron.machine.native import delegate_built_for


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
    if unknown_version("executorch"):
        raise OpenNeutronError(
            f"executorch {installed} is installed, this OpenNeutron works with {TESTED['executorch']}",
            hint=f"pip install 'executorch=={TESTED['executorch']}.*'",
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
