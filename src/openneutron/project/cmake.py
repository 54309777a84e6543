"""A project for bare metal: CMake, Arm's GCC, and QEMU to run the self-test at once.

Example:
    >>> files = cmake_files(content)
    >>> "platform/startup.c" in files
    True
"""

from __future__ import annotations

from openneutron._version import __version__
from openneutron.executorch.deliver.embed import payload_sizes
from openneutron.machine.runtime_memory import STACK_BYTES
from openneutron.project.boards import emulator
from openneutron.project.content import Content
from openneutron.project.readme import readme
from openneutron.project.runtime_sources import bare_metal_files
from openneutron.project.templates import fill, read

_FILES = (
    ("platform/", "start-up code, linker script, printing through a debugger or QEMU"),
    ("cmake/", "the toolchain"),
)


def cmake_files(content: Content) -> dict[str, bytes]:
    """Return the project's files by path."""
    blanks = {
        "title": content.title,
        "name": content.name,
        "board": content.board,
        "emulator": emulator(content.board.core),
        "version": __version__,
        "stack_bytes": STACK_BYTES,
        # Nothing to decode: all constants are stored as kernels read them.
        "plain": payload_sizes(content.model.payload, content.model.data)["PLAIN_BYTES"] == 0,
    }
    return {
        "README.md": readme("cmake/README.md", content, _FILES, **blanks).encode(),
        "CMakeLists.txt": fill("cmake/CMakeLists.txt", **blanks).encode(),
        "cmake/arm-none-eabi.cmake": read("cmake/arm-none-eabi.cmake").encode(),
        "application/main.c": read("cmake/main.c").encode(),
        **bare_metal_files(),
        **content.files(sections=True),
        **content.record("cmake"),
    }
