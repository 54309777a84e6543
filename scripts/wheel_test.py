"""Install the wheel in dist/ into fresh environments outside the checkout and use it, for every Python of this machine.

    python scripts/wheel_test.py                              the core: no torch, no executorch, no OR-Tools
    python scripts/wheel_test.py --extras executorch --python 3.11
    python scripts/wheel_test.py --sizes                      installed bytes of the core and of each extra, and start-up

Exit code 1 when a command fails. pip's own settings (index, --find-links) say where packages come from; with an index of
CPU builds, torch comes without CUDA.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
STARTS = 5  # of `openneutron --help`, the best counts: the first one writes bytecode

# Files made with the installed package alone: quantized and float models, and data for them. What needs an extra only has to
# be recognised for what it is.
MODEL = """
import numpy as np
from pathlib import Path
from openneutron.litert import DType, GraphBuilder
from openneutron.litert.write import write_model
rng = np.random.default_rng(7)
g = GraphBuilder()
x = g.tensor("image", (1, 8, 8, 3), DType.INT8, scale=1 / 128, zero_point=0)
scales = rng.uniform(0.002, 0.01, 8).astype(np.float32)
filters = g.tensor("filters", (8, 3, 3, 3), DType.INT8, scales, data=rng.integers(-127, 128, (8, 3, 3, 3)))
bias = g.tensor("bias", (8,), DType.INT32, scales / np.float32(128), data=rng.integers(-400, 400, 8))
y = g.tensor("conv", (1, 8, 8, 8), DType.INT8, scale=0.02, zero_point=-128)
g.op("CONV_2D", [x, filters, bias], [y], padding="SAME", stride_w=1, stride_h=1, fused_activation_function="RELU")
Path("model.tflite").write_bytes(write_model(g.finish([x], [y])))
"""
OTHERS = """
import numpy as np
from pathlib import Path
from openneutron.litert import DType, GraphBuilder
from openneutron.litert.write import write_model
g = GraphBuilder()
x, y = g.tensor("x", (1, 8), DType.FLOAT32), g.tensor("y", (1, 4), DType.FLOAT32)
weights = g.tensor("weights", (4, 8), DType.FLOAT32, data=np.eye(4, 8, dtype=np.float32))
g.op("FULLY_CONNECTED", [x, weights], [y], fused_activation_function="NONE")
Path("float.tflite").write_bytes(write_model(g.finish([x], [y])))
np.savez("data.npz", x=np.linspace(-1, 1, 32, dtype=np.float32).reshape(4, 8))
Path("images/cat").mkdir(parents=True)
Path("images/cat/1.png").write_bytes(bytes.fromhex("89504e470d0a1a0a"))
Path("model.onnx").write_bytes(bytes.fromhex("080a3a021200"))
"""
# Command → a part of what it says.
CORE = {
    "compile model.tflite -o out.tflite --certificate out.json": "",
    "run out.tflite --check model.tflite": "0 LSB",
    "verify model.tflite": "0 LSB",
    "fits model.tflite": "",
    "report model.tflite -o report.html": "report.html",
    "profile out.tflite": "cycles",
    "inspect out.tflite": "conv2d",
    "certify out.tflite model.tflite --certificate out.json": "",
    "sweep model.tflite --target imxrt700,mcxn94x --workers 1 -o swept": "2 of 2",
    "project model.tflite --for cmake --board cortex-m33 -o made": "arena",
    "doctor": "everything that is needed is there",
}
# Command → the extra that it asks for. It must say so, in one sentence, where that extra is not installed.
EXTRAS = {
    "compile cifarnet -o cifarnet.pte": "executorch",
    "compile model.onnx -o onnx.pte": "onnx",
    "compile float.tflite -o float_out.tflite --calibration data.npz": "quantize",
    "compile model.tflite -o max.tflite --optimize max": "max",
    "evaluate model.tflite --data images": "images",
    "sweep model.tflite --target imxrt700,mcxn94x --workers 2 -o swept2": "cluster",
    "sweep model.tflite --workers 1 --parquet -o swept3": "parquet",
}
WITHOUT = (
    "import sys, openneutron.api, openneutron.cli.app; print({'torch', 'executorch', 'ortools'} & set(sys.modules))"
)


class Failed(Exception):
    """A sentence: what was run and what it said."""


def main() -> int:
    """Test the wheel of this machine; return the exit status."""
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("--extras", default="", help="extras to install, separated by commas")
    arguments.add_argument("--python", default="", help="only this version, such as 3.12")
    arguments.add_argument("--sizes", action="store_true", help="measure instead: bytes of each extra, start-up")
    chosen = arguments.parse_args()
    found = sorted((ROOT / "dist").glob(f"openneutron-*_{platform.machine()}.whl"))
    if not found:
        print("wheel-test: there is no wheel in dist/; run `make wheel`", file=sys.stderr)
        return 1
    failures = 0
    for minor in [chosen.python] if chosen.python else PYTHONS:
        interpreter = find_python(minor)
        if interpreter is None:
            print(f"Python {minor}: not on this machine, not tested")
            continue
        with tempfile.TemporaryDirectory(prefix="openneutron-wheel-") as folder:
            try:
                if chosen.sizes:
                    measure(found[-1], interpreter, Path(folder))
                    break
                test(found[-1], interpreter, Path(folder), chosen.extras)
                print(f"Python {minor}{f' [{chosen.extras}]' if chosen.extras else ''}: works")
            except Failed as error:
                failures += 1
                print(f"Python {minor}: {error}", file=sys.stderr)
    return min(failures, 1)


def find_python(minor: str) -> str | None:
    """An interpreter of that version: in PATH, or installed by pyenv."""
    shims = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for candidate in (shutil.which(f"python{minor}"), *sorted(map(str, shims.glob(f"{minor}.*/bin/python")))):
        if candidate and subprocess.run([candidate, "-c", "import venv"], capture_output=True).returncode == 0:
            return candidate
    return None


def call(folder: Path, *command: str) -> tuple[int, str]:
    """Run a command in the folder, as a user whose environment knows nothing of the checkout."""
    known = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "OPENNEUTRON"))}
    known["PATH"] = f"{folder / 'venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command, cwd=folder, env=known, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    return done.returncode, done.stdout


def need(folder: Path, *command: str) -> str:
    """The same, for commands that have to work."""
    code, said = call(folder, *command)
    if code:
        raise Failed(f"`{' '.join(command)[:200]}` ended with {code}:\n{said}")
    return said


def install(wheel: Path, interpreter: str, folder: Path, extras: str) -> None:
    """A new environment with the wheel and its extras, and nothing else."""
    need(folder, interpreter, "-m", "venv", str(folder / "venv"))
    what = f"openneutron[{extras}] @ {wheel.as_uri()}" if extras else str(wheel)
    need(folder, str(folder / "venv" / "bin" / "python"), "-m", "pip", "install", "-qq", "--no-input", what)


def test(wheel: Path, interpreter: str, folder: Path, extras: str) -> None:
    """Every command a user meets first; with ExecuTorch the README's example too."""
    install(wheel, interpreter, folder, extras)
    need(folder, "python", "-c", MODEL)
    need(folder, "python", "-c", OTHERS)
    for line, part in CORE.items():
        said = need(folder, "openneutron", *line.split())
        if part not in said:
            raise Failed(f"`openneutron {line}` does not say {part!r}:\n{said}")
        if "Traceback" in said or "Warning" in said or "INFO:" in said:
            raise Failed(f"`openneutron {line}` is not quiet:\n{said}")
    given = set(extras.split(","))
    for line, extra in EXTRAS.items():
        if {extra, "all"} & given or (extra == "executorch" and "onnx" in given):
            continue
        code, said = call(folder, "openneutron", *line.split())
        if code != 2 or f"pip install 'openneutron[{extra}]'" not in said or said.count("\n") != 1:
            raise Failed(f"`openneutron {line}` ended with {code} and does not ask for [{extra}]:\n{said}")
    for line in sorted(line for line, extra in EXTRAS.items() if extra in given & {"executorch", "max", "cluster"}):
        need(folder, "openneutron", *line.split())
    if {"executorch", "onnx", "all"} & given:
        need(folder, "python", "-c", readme_example())
    elif (said := need(folder, "python", "-c", WITHOUT).strip()) != "set()":
        raise Failed(f"importing openneutron imported {said}")


def readme_example() -> str:
    """The Python example of the README, with what it takes for granted."""
    text = (ROOT / "README.md").read_text()
    example = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    assert example, "README.md has no Python example"
    given = """
import torch
from torch import nn
class MyNet(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.AvgPool2d(4), nn.Flatten(), nn.Linear(512, 10))
def load_some_images():
    return torch.rand(16, 3, 32, 32)
"""
    return given + example[1]


def measure(wheel: Path, interpreter: str, folder: Path) -> None:
    """Print installed sizes and the CPU time of `openneutron --help`."""
    need(folder, interpreter, "-m", "venv", str(folder / "venv"))
    empty = bytes_in(folder / "venv")
    shutil.rmtree(folder / "venv")
    install(wheel, interpreter, folder, "")
    core = bytes_in(folder / "venv")
    times = []
    for _ in range(STARTS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        need(folder, "openneutron", "--help")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    print(f"openneutron --help: {min(times):.3f} s CPU")
    print(f"core: {(core - empty) / 1e6:,.0f} MB installed, wheel {wheel.stat().st_size / 1e6:.1f} MB")
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for name in sorted(extras.keys() - {"all", "bench", "train"}):
        shutil.rmtree(folder / "venv")
        try:
            install(wheel, interpreter, folder, name)
        except Failed as error:
            print(f"[{name}]: not installed here: {str(error).strip().splitlines()[-1]}")
            continue
        print(f"[{name}]: {(bytes_in(folder / 'venv') - core) / 1e6:,.0f} MB more")


def bytes_in(folder: Path) -> int:
    """Bytes of all files, links and bytecode not counted."""
    return sum(p.stat().st_size for p in folder.rglob("*") if p.is_file() and not p.is_symlink() and p.suffix != ".pyc")


if __name__ == "__main__":
    sys.exit(main())
