"""The open runtime's C sources, which every project contains: from the checkout, or as the wheel installed them.

Example:
    >>> "runtime/firmware/driver/run.c" in runtime_files()
    True
"""

from __future__ import annotations

from pathlib import Path

from openneutron.errors import OptionError

_PACKAGE = Path(__file__).parents[1]
# A wheel has them inside the package, a checkout beside src/.
_PLACES = (_PACKAGE / "runtime", _PACKAGE.parents[1] / "runtime")
_PARTS = ("firmware", "include")
BARE_METAL = ("image.ld", "semihost.c", "semihost.h", "stack.c", "stack.h", "startup.c")


def runtime_files() -> dict[str, bytes]:
    """Return driver, kernels, cycle model and public headers, by their paths in a project."""
    root = runtime_folder()
    return {
        f"runtime/{path.relative_to(root).as_posix()}": path.read_bytes()
        for part in _PARTS
        for path in sorted((root / part).rglob("*"))
        if path.suffix in (".c", ".h", ".inc")
    }


def bare_metal_files() -> dict[str, bytes]:
    """Return start-up code, linker script and semihosting of a Cortex-M, by their paths in a project."""
    root = runtime_folder() / "cortex_m33"
    return {f"platform/{name}": (root / name).read_bytes() for name in BARE_METAL}


def license_text() -> str:
    """Return the licence of the open runtime."""
    return _license_file().read_text("utf-8")


def _license_file() -> Path:
    inside = runtime_folder() / "LICENSE"
    return inside if inside.is_file() else runtime_folder().parent / "LICENSE"


def runtime_places() -> list[str]:
    """Return what a process in a sandbox must be allowed to read to make a project."""
    return [str(runtime_folder()), str(_license_file())]


def runtime_folder() -> Path:
    """Return where the sources are; an `OptionError` where an installation lacks them."""
    for place in _PLACES:
        if (place / "firmware" / "driver").is_dir():
            return place
    raise OptionError(
        "the open runtime's C sources are not part of this installation",
        hint="install a wheel for Linux or macOS, or use a checkout after `make setup`",
    )
