"""Find out what is installed and what is missing, with the standard library alone.

Example:
    >>> [part.name for part in diagnosis() if part.state == "missing"]
    []
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from importlib.util import find_spec
from typing import Literal

from openneutron._version import __version__

State = Literal["ok", "missing", "optional"]

# Distributions that every command needs.
NEEDED = ("ai-edge-litert", "flatbuffers", "jinja2", "numpy", "rich", "typer")
_PYTORCH = "PyTorch models and `.pte` files"
_PROCESSES = "`openneutron sweep` with several processes or machines"
# Distribution → version prefixes that are supported, () for any; what needs it; how to get it.
OPTIONAL: dict[str, tuple[tuple[str, ...], str, str]] = {
    "torch": (("2.13.",), _PYTORCH, "'openneutron[executorch]'"),
    "executorch": (("1.5.",), _PYTORCH, "'openneutron[executorch]'"),
    "torchao": (("0.18.",), _PYTORCH, "'openneutron[executorch]'"),
    "onnx": ((), "ONNX models", "'openneutron[onnx]'"),
    "onnxruntime": ((), "comparing ONNX models with onnxruntime", "'openneutron[onnx]'"),
    "tokenizers": ((), "text models and their tokenizers", "'openneutron[text]'"),
    "sentencepiece": ((), "text models and their tokenizers", "'openneutron[text]'"),
    "pyserial": ((), "boards on a serial port", "'openneutron[board]'"),
    "ai-edge-model-explorer": ((), "`openneutron explore`", "'openneutron[model-explorer]'"),
    "ai-edge-quantizer": ((), "float `.tflite` files", "'openneutron[quantize]'"),
    "ortools": ((), "`--optimize max`", "'openneutron[max]'"),
    "dask": ((), _PROCESSES, "'openneutron[cluster]'"),
    "distributed": ((), _PROCESSES, "'openneutron[cluster]'"),
    "pandas": ((), 'tables of a report: `report.table("kernels")`', "'openneutron[tables]'"),
    "pyarrow": ((), "`openneutron sweep --parquet`", "'openneutron[parquet]'"),
    "pillow": (
        (),
        "folders of images as data: `openneutron evaluate --data images/`",
        "'openneutron[images]'",
    ),
    "mkdocs-material": ((), "the documentation site: `make docs`", "mkdocs-material"),
}
# Programs of one purpose → Debian packages that bring them, and what needs them.
PROGRAMS = {
    "Cortex-M33 tools": (
        ("arm-none-eabi-gcc", "qemu-system-arm"),
        "gcc-arm-none-eabi libnewlib-arm-none-eabi qemu-system-arm",
        "`make firmware`",
    ),
    "browser": (("chromium", "chromedriver"), "chromium chromium-driver", "the report's tests in a real browser"),
    "libFuzzer": (("clang", "clang++"), "clang libclang-rt-dev", "the native targets of `make fuzz`"),
}
_COMPATIBLE = "openneutron-eiq-compat"
_SDK = "eiq_neutron_sdk"


@dataclass(frozen=True)
class Part:
    """One part of an installation; `found` is its version or path, or how to get it."""

    name: str
    state: State
    found: str


def diagnosis() -> list[Part]:
    """Every part, needed ones first."""
    return [
        Part("openneutron", "ok", __version__),
        Part("python", "ok" if sys.version_info >= (3, 11) else "missing", sys.version.split()[0]),
        *(_check_needed(name) for name in NEEDED),
        _check_library("driver and kernels", "library_path"),
        *(_check_optional(name, *what) for name, what in OPTIONAL.items()),
        _check_library("ExecuTorch delegate", "delegate_path", "missing" if _version("executorch") else "optional"),
        *(_check_programs(name, *what) for name, what in PROGRAMS.items()),
        _check_sdk(),
    ]


def print_diagnosis(as_json: bool) -> bool:
    """Print every part; True when nothing that is needed is missing."""
    from openneutron.terminal import console

    parts = diagnosis()
    missing = [part.name for part in parts if part.state == "missing"]
    if as_json:
        import json

        ok = {"ok": True, "missing": False, "optional": None}
        console.put(json.dumps([{"part": p.name, "ok": ok[p.state], "found": p.found} for p in parts], indent=2))
        return not missing
    wide = max(len(part.name) for part in parts)
    marks = {"ok": "ok", "missing": "MISSING", "optional": "optional"}
    for part in parts:
        console.put(f"{part.name.ljust(wide)}  {marks[part.state].ljust(8)}  {part.found}")
    console.put(f"missing: {', '.join(missing)}" if missing else "everything that is needed is there")
    return not missing


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _check_needed(name: str) -> Part:
    found = _version(name)
    return Part(name, "ok", found) if found else Part(name, "missing", f"not installed: pip install {name}")


def _check_optional(name: str, prefixes: tuple[str, ...], purpose: str, how: str) -> Part:
    found = _version(name)
    if not found:
        return Part(name, "optional", f"for {purpose}: pip install {how}")
    if prefixes and not found.startswith(prefixes):
        wanted = " or ".join(f"{prefix}x" for prefix in prefixes)
        return Part(name, "missing", f"{found}; OpenNeutron needs {wanted}: pip install '{name}=={prefixes[0]}*'")
    return Part(name, "ok", found)


def _check_programs(name: str, programs: tuple[str, ...], packages: str, purpose: str) -> Part:
    paths = [shutil.which(program) for program in programs]
    if all(paths):
        return Part(name, "ok", ", ".join(filter(None, paths)))
    missing = ", ".join(program for program, path in zip(programs, paths, strict=True) if path is None)
    return Part(name, "optional", f"no {missing}; for {purpose}: apt-get install {packages}")


def _check_library(name: str, finder: str, otherwise: State = "missing") -> Part:
    from openneutron.errors import OpenNeutronError
    from openneutron.machine import native as _native

    find: Callable[[], object] = getattr(_native, finder)
    try:
        return Part(name, "ok", str(find()))
    except OpenNeutronError as error:
        return Part(name, otherwise, str(error))


def _check_sdk() -> Part:
    """NXP's SDK is optional; our stand-in of the same name is recognized."""
    name = "NXP's SDK"
    if _SDK in sys.modules or find_spec(_SDK) is None:  # in this process only `vendor.eiq.install` can have loaded it
        return Part(name, "optional", "only `--converter nxp` needs it: pip install eiq-neutron-sdk from NXP's index")
    makers = packages_distributions().get(_SDK, [])
    if _COMPATIBLE in makers:
        return Part(name, "optional", f"{_SDK} is OpenNeutron's own stand-in ({_COMPATIBLE}), not NXP's")
    return Part(name, "ok", next((found for maker in makers if (found := _version(maker))), "version unknown"))
