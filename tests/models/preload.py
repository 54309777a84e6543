"""What every network's process needs, imported once by the server the processes are forked from."""

import openneutron.executorch.pipeline  # noqa: F401  imported for the processes
from tests.models.libraries import declare_operators

declare_operators()  # before torchvision, which timm imports

import timm  # noqa: E402, F401
import torchvision  # noqa: E402, F401
