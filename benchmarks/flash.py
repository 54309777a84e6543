"""Flash: constants and microcode of our files, in bytes, against Vela's and NXP's.

    python benchmarks/flash.py                         the reference networks, with random weights
    python benchmarks/flash.py a.tflite b.tflite       models of one's own: random weights do not compress, trained ones do
    python benchmarks/flash.py --nxp a=compiled.tflite a.tflite     beside the weights block of a file that NXP's converter made
    python benchmarks/flash.py --schemes a.tflite      the weights alone: bytes and decoding time of each way to store them

Vela's columns need Vela (`pip install openneutron[bench]`, or --vela path); without it only ours are printed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks import vela  # noqa: E402
from benchmarks.compiler import TARGET, Model, models_of, print_table, totals  # noqa: E402
from openneutron.convert import convert  # noqa: E402
from openneutron.litert.read import read_model  # noqa: E402
from openneutron.machine import targets  # noqa: E402
from openneutron.machine.simulator import Simulator  # noqa: E402
from openneutron.microcode.container import decode_container  # noqa: E402
from openneutron.microcode.decode import decode  # noqa: E402
from openneutron.microcode.encode import encode_blocks  # noqa: E402
from openneutron.microcode.graph_op import blocks_of, is_graph_op  # noqa: E402
from openneutron.microcode.instructions import Program, TensorRow, Wait  # noqa: E402
from openneutron.microcode.storage.sections import Section, choose  # noqa: E402
from openneutron.microcode.storage.weights import MAX_RICE, rice_bits, write_rice, write_static  # noqa: E402
from openneutron.microcode.table import ElementType, Storage  # noqa: E402
from openneutron.options import Options  # noqa: E402

PLAIN = ("code_weights", "pack_code")
_CODED = (Storage.PACKED, Storage.RICE, Storage.STATIC)
_RUNS = 5


def nxp_weights(path: Path) -> int:
    """Return the size of the weights blocks in a file that NXP's converter made."""
    graph = read_model(path.read_bytes()).main
    blocks = [blocks_of(graph, op, outputs=0) for op in graph.operators if is_graph_op(op)]
    return sum(decode_container(one.microcode).weights_bytes for one in blocks)


def sizes(models: Sequence[Model], peer: str, nxp: dict[str, Path]) -> None:
    """Print the table of whole files."""
    rows = []
    for model in models:
        ours, plain = totals(model), totals(model, passes_off=PLAIN)
        total = ours.weight_bytes + ours.microcode_bytes
        theirs = vela.estimate(peer, model.path).flash_bytes if peer else 0
        block = nxp_weights(nxp[model.name]) if model.name in nxp else 0
        rows.append(
            (
                model.name,
                f"{ours.weight_bytes:,}",
                f"{ours.microcode_bytes:,}",
                f"{total:,}",
                f"{plain.weight_bytes + plain.microcode_bytes:,}",
                f"{theirs:,}" if theirs else "-",
                f"{total / theirs:.2f}x" if theirs else "-",
                f"{block:,}" if block else "-",
                f"{ours.weight_bytes / block:.2f}x" if block else "-",
                f"{ours.cycles / plain.cycles:.3f}x",
            )
        )
    head = (
        "model",
        "constants",
        "microcode",
        "both",
        "plain",
        "Vela",
        "both/Vela",
        "NXP's block",
        "constants/NXP's",
        "cycles/plain",
    )
    print_table(f"Flash in bytes, {TARGET}", head, rows)


def _weights(model: Model) -> Iterator[tuple[Section, bytes]]:
    """Yield every weights section of a compiled model, with its plain bytes."""
    graph = read_model(convert(model.data, Options(target=TARGET, source=model.name)).model).main
    for op in graph.operators:
        if is_graph_op(op):
            blocks = blocks_of(graph, op, outputs=0)
            program, at = decode(blocks.microcode, blocks.weights, blocks.kernels), 0
            for section in program.sections:
                if section.storage in (*_CODED, Storage.GROUPS):
                    yield section, program.weights[at : at + section.plain]
                at += -(-section.plain // 16) * 16


def _seconds(section: Section, plain: bytes) -> float:
    """Return the shortest time in which a driver prepares a program whose constants are this one section."""
    target = targets.load(TARGET)
    padded = plain + bytes(-len(plain) % 16)
    rows = (TensorRow(True, 0, ElementType.UINT8, (1,), 1),)
    program = Program(target.name, target.hw_version, target.cores, target.units, target.length, (0, 0, 0), rows, (Wait(0),),
                      padded, bytes(4), 0, sections=(section,))  # fmt: skip
    blocks = encode_blocks(program)
    best = float("inf")
    for _ in range(_RUNS):
        began = time.perf_counter()
        with Simulator(*blocks, program.kernels):
            best = min(best, time.perf_counter() - began)
    return best


def schemes(models: Sequence[Model]) -> None:
    """Print the table of the weights alone, in every form."""
    target = targets.load(TARGET)
    rows = []
    for model in models:
        found = dict.fromkeys(("padded", "packed", "entropy", "rice", "static", "chosen"), 0)
        spent = dict.fromkeys(_CODED, 0.0)
        for section, plain in _weights(model):
            order = section.order(target.units, target.length)
            weights = order.without_padding(np.frombuffer(plain, np.int8))
            assert weights is not None
            k, bits = rice_bits(np.bincount(weights.view(np.uint8), minlength=256))
            rice = len(write_rice(weights, order, k)[0]) if bits < 16 * weights.size else weights.size
            static = len(write_static(weights, order)[0])
            share = np.bincount(weights.view(np.uint8), minlength=256) / weights.size
            share = share[share > 0]
            found["padded"] += len(plain)
            found["packed"] += weights.size
            found["entropy"] += round(-float((share * np.log2(share)).sum()) * weights.size / 8)
            found["rice"] += rice
            found["static"] += static
            found["chosen"] += min(weights.size, rice, static)
            bare = _seconds(choose(Section(Storage.RAW, len(plain)), plain, 1, 1), plain)
            for storage in _CODED:
                if storage is not Storage.RICE or bits < 16 * weights.size:
                    form = Section(storage, section.plain, section.packing, min(k, MAX_RICE) if storage is Storage.RICE else 0,
                                   section.groups, section.channels, section.taps, section.inputs)  # fmt: skip
                    spent[storage] += _seconds(form, plain) - bare
        if found["packed"]:
            rows.append(
                (
                    model.name,
                    *(f"{one:,}" for one in found.values()),
                    *(f"{spent[one] / found['packed'] * 1e9:.1f}" for one in _CODED),
                )
            )
    head = ("model", "padded", "packed", "entropy", "Rice", "static", "chosen", "packed ns", "Rice ns", "static ns")
    print_table(
        "Weights alone in bytes, and nanoseconds per weight to decode them when a model is prepared", head, rows
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("files", nargs="*", help=".tflite files; without any, the reference networks")
    parser.add_argument("--models", help="a folder of .tflite files")
    parser.add_argument("--vela", default="", help="Vela's command, where it is not on the path")
    parser.add_argument(
        "--nxp", action="append", default=[], metavar="NAME=FILE", help="a model as NXP's converter made it"
    )
    parser.add_argument("--schemes", action="store_true", help="the weights alone, in every form")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        models = models_of(given.files, given.models, Path(name))
        if given.schemes:
            schemes(models)
            return
        peer = vela.find(given.vela)
        if not peer:
            print(
                "Vela is not installed: only our figures follow. `pip install openneutron[bench]` or --vela brings its columns"
            )
        sizes(models, peer, {pair.partition("=")[0]: Path(pair.partition("=")[2]) for pair in given.nxp})


if __name__ == "__main__":
    main()
