"""Projects that are ready to build: sources, build files, model, self-test and sizes for a board.

Example:
    >>> from openneutron.project import write
    >>> write("model.tflite", "folder", platform="cmake", board="mps2-an505").files[0]
    PosixPath('folder/README.md')
"""

from __future__ import annotations

from openneutron.project.make import PLATFORMS, Project, make, write

__all__ = ["PLATFORMS", "Project", "make", "write"]
