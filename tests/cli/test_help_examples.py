"""Every example in the help texts runs as printed, in a folder with the files they name."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from openneutron.cli.app import all_commands
from openneutron.cli.main import run
from openneutron.compiler import kernels
from openneutron.litert.read import read_model
from openneutron.litert.write import write_model
from openneutron.microcode.selection import selection_code
from tests import decoders, tiny
from tests.analyze.data.test_shards import archive, npy
from tests.cli.inputs.test_front_end import write_wav
from tests.compat.nxp_file import converted
from tests.modelrunner.fakes import LiteRtBoard, plug_in
from tests.onnx.models import convnet as onnx_convnet

# A model that takes what the LiteRT one takes, so that one test.npz serves both.
MODEL = """
import numpy as np
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8 * 8 * 3, 5)

    def forward(self, x):
        return self.layer(x.flatten(1))

def factory():
    torch.manual_seed(0)
    data = [(torch.rand(1, 8, 8, 3),) for _ in range(4)]
    return Net().eval(), data[0], data

def test_samples():
    for number in range(4):
        yield np.zeros((8, 8, 3), np.float32), number
"""
BUDGETS = '[[model]]\nsource = "model.tflite"\n[model.budget]\nsram = "4K"\n'


def examples() -> Iterator[tuple[str, str]]:
    """(command, line): a line of a help text that begins with the program's name, or follows "Example:"."""
    for name, function in all_commands().items():
        for line in re.findall(r"^\s*(?:Example: )?(openneutron .+)$", function.__doc__ or "", re.MULTILINE):
            yield name, line


EXAMPLES = list(examples())
# Models of the zoo take seconds each; what they show, tests of their own show too.
SLOW = [line for _, line in EXAMPLES if re.search(r" (cifarnet\b(?![._])|story_decoder\b)|^openneutron chat ", line)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Everything the examples name."""
    made = tmp_path_factory.mktemp("examples")
    original = tiny.convnet()
    with contextlib.chdir(made):
        Path("model.tflite").write_bytes(original)
        Path("converted_by_nxp.tflite").write_bytes(write_model(converted(read_model(original))))
        Path("package").mkdir()
        Path("package/module.py").write_text(MODEL)
        rng = np.random.default_rng(0)
        np.save("image.npy", rng.random((1, 8, 8, 3), np.float32))
        np.save("sample.npy", rng.integers(-128, 128, (1, 8, 8, 3), np.int8))
        for number in range(50):
            image = npy(rng.random((8, 8, 3), np.float32))
            archive(Path(f"val-{number:03}.tar"), {"0.npy": image, "0.cls": b"%d" % (number % 5)})
        np.savez("test.npz", x=rng.random((6, 8, 8, 3), np.float32), y=rng.integers(0, 5, 6))
        for name in ("cat", "dog"):
            Path("images", name).mkdir(parents=True)
            np.save(Path("images", name, "1.npy"), rng.random((8, 8, 3), np.float32))
        Path("models").mkdir()
        Path("models/model.tflite").write_bytes(original)
        for file in ("openneutron.toml", "models/openneutron.toml"):
            Path(file).write_text(BUDGETS)
        kernels.rules()
        for model, ids in (("cifarnet", [1, 4]), ("resnet8", [1, 5])):
            Path(f"{model}_kernel_selection.c").write_text(selection_code(ids, "imxrt700", "0.1.0"))
        Path("model.onnx").write_bytes(onnx_convnet(batch="batch").SerializeToString())
        np.savez("samples.npz", image=rng.normal(size=(8, 3, 16, 16)).astype(np.float32))
        write_wav(Path("hello.wav"), rng.uniform(-1, 1, 3 * 8 * 8 * 3))
        Path("features.py").write_text("def log_mel(samples): return samples.reshape(3, 8, 8, 3)")
        np.savez("frames.npz", rng.integers(-128, 128, (3, 1, 8, 8, 3), np.int8))
        assert call("openneutron compile model.tflite -o out.tflite") == 0
        Path("wake.tflite").write_bytes(Path("out.tflite").read_bytes())
        assert call("openneutron check models/openneutron.toml --json > main.json") == 0
        assert call("openneutron compile package.module:factory -o cifarnet.pte") == 0
        for name in ("model", "before", "after"):
            Path(f"{name}.pte").write_bytes(Path("cifarnet.pte").read_bytes())
    return made


def call(line: str) -> int:
    """Run a line as a shell would: `&&` and `>` are all the examples use."""
    for part in line.split("&&"):
        words = shlex.split(part)
        into = Path(words[words.index(">") + 1]) if ">" in words else None
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            code = run(words[1 : words.index(">") if into else None])
        if into is not None:
            into.write_text(out.getvalue())
        if code:
            return code
    return 0


def test_every_command_has_an_example() -> None:
    assert {name for name, _ in EXAMPLES} == set(all_commands())


# Those that serve a page run until Ctrl-C: tests/cli/test_studio.py and tests/cli/test_explore.py start them.
SERVING = [line for name, line in EXAMPLES if name == "studio" or (name == "explore" and " -o " not in line)]


# Files that an example reads and another one writes, by what stands before them there.
WRITERS = {"report.json": "--json >", "points.toml": "--ledger"}


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(line, marks=[pytest.mark.full] if line in SLOW else [])
        for name, line in EXAMPLES
        if line not in SERVING
    ],
    ids=str,
)
def test_it_runs_as_printed(line: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In files of its own: examples run in any order and in several processes, and some write what others read."""
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    plug_in(monkeypatch, LiteRtBoard(tiny.convnet()))
    if line.startswith("openneutron chat"):
        decoders.program().save("decoder.pte")
        Path("vocabulary.json").write_text(decoders.vocabulary().to_json())
    if "--quantization q.toml" in line:
        Path("q.toml").write_text("per_channel = true\n")
    for file, option in WRITERS.items():
        if file in line.split() and option not in line:
            writer = next(one for _, one in EXAMPLES if f"{option} {file}" in one)
            assert call(writer.split(" && ")[0]) == 0
    assert call(line) == 0
