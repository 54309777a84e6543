"""Gain of kernel selection: sizes of Cortex-M33 images of the zoo with all kernels, a selection, and a merged selection.

    python benchmarks/firmware_size.py [MODEL ...]

An image is driver, kernels, cycle model, start-up and one model; text is its code without the model's payload. Kernel text is
what an image's text has beyond one that holds no kernel at all. Needs the cross compiler, not QEMU.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from openneutron import zoo  # noqa: E402
from openneutron._version import __version__  # noqa: E402
from openneutron.microcode.selection import merge_files, parse, selection_code  # noqa: E402
from openneutron.project.sizes import CODE_BYTES  # noqa: E402
from openneutron.terminal.quiet import quiet  # noqa: E402
from tests.firmware import image, models  # noqa: E402

BUILD = ROOT / "build" / "firmware-size"
# Goals: a small network needs a small part of the kernels, and all of them fit a small flash.
CIFARNET_SHARE = 0.30
FULL_TEXT = CODE_BYTES  # with which projects are checked against a board's flash


@dataclass(frozen=True)
class Size:
    """Bytes of an image's sections, the stack and the payload left out."""

    text: int
    data: int
    bss: int

    def __str__(self) -> str:
        return f"{self.text:>7,} {self.data:>5,} {self.bss:>8,}"


# Models whose weights fit the flash of the board that QEMU emulates; name others to try them.
FITTING = ("autoencoder", "cifarnet", "ds_cnn", "resnet8", "vww_mobilenet_v1")


def main(names: list[str]) -> int:
    """Print the table and whether the promises hold; returns the exit status."""
    absent = [tool for tool in image.missing_tools() if tool != "qemu-system-arm"]
    if absent:
        print(f"{', '.join(absent)} not found; install the Debian packages {image.PACKAGES}", file=sys.stderr)
        return 2
    names = names or [name for name in FITTING if name in zoo.names()]
    with quiet():
        compiled = {name: _compiled(name) for name in names}
    none = _selection(BUILD / "none.c", [])
    print("text, data and bss in bytes; share: kernel text of the selection of that of all kernels\n")
    print(
        f"{'model':<17} {'payload':>9}  {'all kernels':^22}  {'selection':^22}  {'share':>5}  {'merged with the next':^22}"
    )
    shares: dict[str, float] = {}
    full: dict[str, int] = {}
    for position, (name, model) in enumerate(compiled.items()):
        other = compiled[names[(position + 1) % len(names)]]
        merged = BUILD / f"{name}_merged.c"
        merge_files([model.selection, *([other.selection] if other != model else [])], merged)
        every, selected, both = (
            _size(model, *one) for one in (("all", None), ("selected", model.selection), ("merged", merged))
        )
        empty = _size(model, "none", none)
        shares[name] = (selected.text - empty.text) / (every.text - empty.text)
        full[name] = every.text
        payload = image.sections(model.folder / "all.elf")[".payload"]
        print(f"{name:<17} {payload:>9,}  {every}  {selected}  {shares[name]:>5.0%}  {both}")
    print()
    for name, model in compiled.items():
        print(f"{name}: {', '.join(parse(name, model.selection.read_text()).kernels.values())}")
    return _verdict(shares, full)


def _verdict(shares: dict[str, float], full: dict[str, int]) -> int:
    kept = [
        (
            "full firmware",
            f"{max(full.values()):,} bytes of text",
            f"at most {FULL_TEXT:,}",
            max(full.values()) <= FULL_TEXT,
        )
    ]
    if "cifarnet" in shares:
        share = shares["cifarnet"]
        kept.append(
            ("CifarNet's kernels", f"{share:.1%} of all", f"at most {CIFARNET_SHARE:.0%}", share <= CIFARNET_SHARE)
        )
    print()
    for what, measured, promised, holds in kept:
        print(f"{what}: {measured}, promised {promised}: {'kept' if holds else 'BROKEN'}")
    return 0 if all(holds for *_, holds in kept) else 1


def _compiled(name: str) -> models.Model:
    folder = BUILD / name
    folder.mkdir(parents=True, exist_ok=True)
    models.compile_zoo(folder, name)
    return models.load(folder)


def _selection(path: Path, ids: list[int]) -> Path:
    path.write_text(selection_code(ids, "imxrt700", __version__))
    return path


def _size(model: models.Model, name: str, selection: Path | None) -> Size:
    found = image.sections(image.build_image(BUILD / "objects", model.folder, name, selection=selection))
    return Size(found[".text"], found[".data"], found[".bss"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
