"""What a LiteRT file that NXP's converter made says of itself, and whether it was made of a certain model.

Example:
    >>> model = read_model(data)
    >>> converted_for(model.description), converter_version(model.description)
    ('mcxn94x', '1.2.0+0X1c933f1b')
"""

from __future__ import annotations

import re
from typing import Any

from openneutron.errors import OptionError
from openneutron.litert.graph import Graph
from openneutron.machine import targets


def converted_for(description: str) -> str:
    """Return the target that a converted file's description names, "" where it names none that is known here.

    Example:
        >>> converted_for("Converted with eIQ neutron-converter 1.2.0+0X1c933f1b for NXP MCX N94x MCU target.")
        'mcxn94x'
    """
    found = re.search(r"for NXP (.+?)(?: MCU)? target|^Target:? +(\S+)$", description, re.MULTILINE)
    name = targets.canonical_name(found[1] or found[2]) if found else ""
    return name if name in targets.names() else ""


def converter_version(description: str) -> str:
    """Return the version of NXP's converter that a description names, "" where it names none."""
    found = re.search(r"\d+\.\d+\.\d+\+0[xX][0-9a-fA-F]+", description)
    return found[0] if found else ""


def check_same_model(converted: Graph, source: Graph, *, where: str, source_name: str, hint: str) -> None:
    """Raise an `OptionError` unless a file has the inputs and outputs of the model it is said to be made of."""

    def ends(graph: Graph) -> list[tuple[tuple[int, ...], Any]]:
        return [(graph.tensors[at].shape, graph.tensors[at].dtype) for at in (*graph.inputs, *graph.outputs)]

    if ends(converted) != ends(source):
        raise OptionError(f"its inputs and outputs are not those of {source_name}", where=where, hint=hint)
