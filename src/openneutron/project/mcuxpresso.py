"""Applications for MCUXpresso SDK: one with the open runtime, and one with NXP's Neutron library, in the same folder.

Example:
    >>> "cpu/CMakeLists.txt" in mcuxpresso_files(content)
    True
"""

from __future__ import annotations

from typing import Any

from openneutron._version import __version__
from openneutron.errors import OptionError
from openneutron.project.content import Content
from openneutron.project.readme import readme
from openneutron.project.templates import fill, read

# What the SDK's eIQ examples set aside; the open runtime's own figure is smaller.
_STACK_BYTES = 0x2000
_CONFIG = "flash_release"
_XSPI_CONFIG = "xspi_nor_psram_release"  # i.MX RT2660 has no configuration of the other name
_FILES = (("cpu/", "the application with the open runtime"),)
_NPU_FILES = (("npu/", "the application with NXP's library: converted model, resolver, arena and samples"),)


def mcuxpresso_files(content: Content) -> dict[str, bytes]:
    """Return the applications' files by path; an `OptionError` for a board that the SDK does not have."""
    board = content.board
    if not board.mcuxpresso:
        raise OptionError("it is no board of MCUXpresso SDK", where=board.name, hint=board.hint)
    blanks: dict[str, Any] = {
        "title": content.title,
        "name": content.name,
        "board": board,
        "version": __version__,
        "npu": content.npu,
        "stack_bytes": _STACK_BYTES,
        "config": _CONFIG if board.core_id else _XSPI_CONFIG,
    }
    if content.npu is not None:
        blanks |= _npu_blanks(content)
    texts = {"application/console.c": read("mcuxpresso/console.c")}
    for build in ("cpu", "npu") if content.npu else ("cpu",):
        texts |= {
            f"{build}/CMakeLists.txt": fill(f"mcuxpresso/{build}.cmake", **blanks),
            f"{build}/prj.conf": fill(f"mcuxpresso/{build}.conf", **blanks),
            f"{build}/example.yml": fill("mcuxpresso/example.yml", **blanks, build=build),
            f"{build}/main.c": read(f"mcuxpresso/{build}_main.c"),
        }
    files = (*_FILES, *(_NPU_FILES if content.npu else ()))
    return {
        "README.md": readme("mcuxpresso/README.md", content, files, **blanks).encode(),
        **{name: text.encode() for name, text in texts.items()},
        **content.files(sections=False),
        **content.npu_files("mcuxpresso"),
        **content.record("mcuxpresso"),
    }


def _npu_blanks(content: Content) -> dict[str, Any]:
    """The example whose board files the application takes, and its sources of C++."""
    assert content.npu is not None
    if content.npu.pools is None:
        # Both boards of i.MX RT700 link this example with the script of one of them.
        return {"example": "tflm_cifar10", "script_board": "mimxrt700evk", "npu_sources": "npu/npu_test.cpp"}
    sources = ["npu/program_test.cpp", *(["npu/register_kernels.cpp"] if content.npu.operators else [])]
    return {"example": "executorch_cifarnet", "script_board": "${board}", "npu_sources": " ".join(sources)}
