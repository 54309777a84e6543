"""Model zoo: small networks with weights and data that are part of the package.

Every file of this folder whose name does not begin with an underscore is one model and defines ``load() -> ZooModel``;
adding a model means adding a file. Importing this package does not import torch; loading a model does.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import cast

from openneutron.extras import extra
from openneutron.zoo._model import LabelledImages, UnknownModelError, ZooModel

__all__ = ["LabelledImages", "UnknownModelError", "ZooModel", "load", "names"]


def names() -> list[str]:
    """Return the names of all models, sorted.

    >>> "cifarnet" in names()
    True
    """
    return sorted(module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_"))


def load(name: str) -> ZooModel:
    """Return the model of that name, in eval mode, with example inputs and calibration data.

    >>> load("cifarnet").example_inputs[0].shape
    torch.Size([1, 3, 32, 32])
    """
    known = names()
    if name not in known:
        raise UnknownModelError(name, known)
    with extra(f"the zoo's {name}"):
        module = importlib.import_module(f"{__name__}.{name}")
    return cast(ZooModel, module.load())
