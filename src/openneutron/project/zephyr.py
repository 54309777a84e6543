"""A Zephyr application: with the open runtime, and, of the same folder, with NXP's Neutron library.

Example:
    >>> sorted(name for name in zephyr_files(content) if "/" not in name)[:3]
    ['CMakeLists.txt', 'Kconfig', 'LICENSE']
"""

from __future__ import annotations

from typing import Any

from openneutron._version import __version__
from openneutron.errors import OptionError
from openneutron.machine.runtime_memory import STACK_BYTES
from openneutron.project.content import Content
from openneutron.project.readme import readme
from openneutron.project.templates import fill, read

# Zephyr's own part of the main thread's stack, and printk's (assumed).
_ZEPHYR_STACK = 1024
_FILES = (("src/", "main() and the console"), ("prj.conf", "Kconfig of the build with the open runtime"))
_NPU_FILES = (
    ("npu/", "the model that NXP's converter made, its resolver, arena and samples"),
    ("npu.conf", "Kconfig of the build with NXP's library"),
)


def zephyr_files(content: Content) -> dict[str, bytes]:
    """Return the application's files by path; an `OptionError` for a board that Zephyr has no name for here."""
    board = content.board
    if not board.zephyr:
        raise OptionError("no name of it in Zephyr is known", where=board.name, hint=board.hint)
    blanks: dict[str, Any] = {
        "title": content.title,
        "name": content.name,
        "board": board,
        "version": __version__,
        "npu": content.npu,
        "main_stack_bytes": STACK_BYTES + _ZEPHYR_STACK,
    }
    texts = {name: fill(f"zephyr/{name}", **blanks) for name in ("CMakeLists.txt", "Kconfig", "prj.conf", "tests.yaml")}
    texts |= {"src/main.c": fill("zephyr/main.c.jinja", **blanks), "src/console.c": read("zephyr/console.c")}
    if content.npu is not None:
        texts["npu.conf"] = fill("zephyr/npu.conf", **blanks)
    files = (*_FILES, *(_NPU_FILES if content.npu else ()))
    return {
        "README.md": readme("zephyr/README.md", content, files, **blanks).encode(),
        **{name: text.encode() for name, text in texts.items()},
        **content.files(sections=False),
        **content.npu_files("zephyr"),
        **content.record("zephyr"),
    }
