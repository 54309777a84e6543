"""Shell completion: the values that the Tab key offers for options and arguments.

Example:
    >>> target_names("imx")
    ['imx95', 'imxrt700']
"""

from __future__ import annotations

from pathlib import Path

_SOURCES = {".tflite", ".onnx", ".pt2"}


def target_names(incomplete: str) -> list[str]:
    """Return the names of targets that begin with `incomplete`."""
    from openneutron.machine import targets

    return [name for name in targets.names() if name.startswith(incomplete)]


def efforts(incomplete: str) -> list[str]:
    """Return the values of `--optimize` that begin with `incomplete`."""
    from openneutron.options import OPTIMIZE

    return [name for name in OPTIMIZE if name.startswith(incomplete)]


def model_names(incomplete: str) -> list[str]:
    """Return the zoo models, model files and folders whose names begin with `incomplete`."""
    from openneutron import zoo

    found = [name for name in zoo.names() if name.startswith(incomplete)]
    folder, _, start = incomplete.rpartition("/")
    place = Path(folder or ("/" if incomplete.startswith("/") else "."))
    entries = sorted(place.iterdir()) if place.is_dir() else []
    for entry in entries:
        if entry.name.startswith(start) and not (entry.name.startswith(".") and not start):
            shown = f"{folder}/{entry.name}" if "/" in incomplete else entry.name
            if entry.is_dir():
                found.append(f"{shown}/")
            elif entry.suffix in _SOURCES:
                found.append(shown)
    return found
