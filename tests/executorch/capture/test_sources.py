"""What `openneutron compile` may be given: the zoo, factories, exported programs, LiteRT files; each way to fail."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

import openneutron as on
from openneutron.cli.main import run
from openneutron.errors import OpenNeutronError
from openneutron.executorch.capture.sources import find
from openneutron.executorch.pipeline import quantize
from tests import tiny

NET = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.conv = nn.Conv2d(2, 3, 1)
    def forward(self, x):
        return torch.relu(self.conv(x))

IMAGE = torch.linspace(-1, 1, 32).reshape(1, 2, 4, 4)

def pair(): return Net(), (IMAGE,)
def triple(): return Net(), IMAGE, [(IMAGE * k,) for k in (0.5, 1.0)]
def bare(): return Net()
def number(): return 3
def four(): return Net(), (IMAGE,), [], 1
def wrong_calibration(): return Net(), (IMAGE,), 3
def wrong_inputs(): return Net(), (3,)
def fails(): raise ValueError("no weights\\nhere")
def cuda(): raise RuntimeError("operator torchvision::nms does not exist")
def program(): return torch.export.export(Net(), (IMAGE,))
class Sum(Net):
    def forward(self, pair):
        return {"sum": torch.relu(self.conv(pair["left"])) + self.conv(pair["right"])}
SAMPLE = {"left": IMAGE, "right": IMAGE * 2}
def nested(): return Sum(), (SAMPLE,), [(dict(reversed(SAMPLE.items())),)] * 3
def nested_program(): return torch.export.export(Sum(), (SAMPLE,))
def named_program(): return torch.export.export(Sum(), (), {"pair": SAMPLE})
class Own(Net):
    example_inputs = (IMAGE,)
class holder:
    inner = staticmethod(pair)
instance = Own()
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "models.py").write_text(NET)
    (tmp_path / "own" / "broken.py").write_text("import nothing_of_that_name\n")
    (tmp_path / "own" / "raises.py").write_text("raise RuntimeError('at import')\n")
    (tmp_path / "own" / "cuda.py").write_text("raise RuntimeError('operator torchvision::nms does not exist')\n")
    before = list(sys.path)
    yield tmp_path
    assert sys.path == before
    for name in [name for name in sys.modules if name.partition(".")[0] == "own"]:
        del sys.modules[name]


def exported() -> torch.export.ExportedProgram:
    return torch.export.export(torch.nn.Conv2d(2, 3, 1), (torch.linspace(-1, 1, 32).reshape(1, 2, 4, 4),))


@pytest.mark.parametrize(
    ("text", "kind", "stem"),
    [
        ("cifarnet", "zoo", "cifarnet"),
        ("own.models:pair", "factory", "pair"),
        ("own.models:holder.inner", "factory", "inner"),
        ("models/some.pt2", "pt2", "some"),
        ("m.tflite", "tflite", "m"),
    ],
)
def test_the_text_says_what_it_is(folder: Path, text: str, kind: str, stem: str) -> None:
    (folder / "models").mkdir()
    torch.export.save(exported(), folder / "models" / "some.pt2")
    (folder / "m.tflite").write_bytes(tiny.convnet())
    source = find(text)
    assert (source.kind, source.stem) == (kind, stem)


@pytest.mark.parametrize(
    ("factory", "batches", "noted"),
    [("pair", 1, True), ("triple", 2, False), ("Own", 1, True), ("instance", 1, True), ("holder.inner", 1, True)],
)
def test_a_factory_gives_module_inputs_and_calibration(folder: Path, factory: str, batches: int, noted: bool) -> None:
    loaded = find(f"own.models:{factory}").load()
    assert isinstance(loaded.model, torch.nn.Module)
    assert loaded.example_inputs is not None and loaded.example_inputs[0].shape == (1, 2, 4, 4)
    assert loaded.calibration is not None and len(loaded.calibration) == batches
    assert bool(loaded.notes) == noted


def test_a_factory_is_compiled_by_the_command_and_what_it_lacks_is_noted(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["compile", "own.models:pair"]) == 0
    assert "calibrated with the example inputs alone" in capsys.readouterr().out
    assert (folder / "pair.pte").read_bytes()[4:6] == b"ET"
    assert run(["compile", "own.models:triple", "-o", "b.pte", "--int8-io"]) == 0
    out = capsys.readouterr().out
    assert "alone" not in out and "input x is INT8" in out


@pytest.mark.parametrize(("factory", "batches"), [("nested", 3), ("nested_program", 1), ("named_program", 1)])
def test_arguments_that_hold_tensors_become_inputs(folder: Path, factory: str, batches: int) -> None:
    """A model that takes a mapping is one of its tensors: commands know samples alone."""
    loaded = find(f"own.models:{factory}").load()
    assert loaded.calibration is not None and len(loaded.calibration) == batches
    for left, right in (loaded.example_inputs or (), loaded.calibration[0]):
        assert torch.equal(left * 2, right)
    assert run(["compile", f"own.models:{factory}", "--quality", "plain"]) == 0
    assert (folder / f"{factory}.pte").is_file()


def test_stored_samples_are_told_apart_by_the_names_of_inputs(folder: Path) -> None:
    left = torch.rand(3, 2, 4, 4).numpy()
    np.savez("samples.npz", pair_right=left * 2, pair_left=left)
    loaded = find("own.models:nested", calibration="samples.npz").load()
    assert loaded.calibration is not None and len(loaded.calibration) == 3
    for (first, second), wanted in zip(loaded.calibration, left, strict=True):
        assert first.numpy().tolist() == [wanted.tolist()] and torch.equal(first * 2, second)


def test_an_exported_program_in_float_is_calibrated_with_the_inputs_it_keeps(folder: Path) -> None:
    torch.export.save(exported(), folder / "float.pt2")
    loaded = find("float.pt2", trust=True).load()
    assert loaded.notes and loaded.calibration is not None
    program = on.compile(loaded.model, loaded.example_inputs, calibration=loaded.calibration)
    assert [v.operator for v in program.verdicts if v.delegated] == ["aten.convolution.default"]
    assert find("own.models:program").load().notes


def test_a_quantized_program_is_compiled_as_it_is(folder: Path) -> None:
    image = torch.linspace(-1, 1, 32).reshape(1, 2, 4, 4)
    torch.manual_seed(0)
    model = torch.nn.Conv2d(2, 3, 1)
    quantized = quantize(model, (image,), [(image,)]).program
    torch.export.save(quantized, folder / "q.pt2")
    loaded = find("q.pt2", trust=True).load()
    assert (loaded.example_inputs, loaded.calibration, loaded.notes) == (None, None, ())
    (y,) = on.compile(loaded.model).run(image)
    assert torch.allclose(y, model(image), atol=0.03)


def test_finding_imports_no_torch() -> None:
    import subprocess

    code = (
        "import sys; from openneutron.executorch.capture.sources import find\n"
        "find('cifarnet'); find('a:b'); assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cifarnot", "the zoo has no model 'cifarnot'.*did you mean 'cifarnet'"),
        ("no/model.pt", "no/model.pt: there is no such file.*package.module:factory"),
        ("gone.pt2", "gone.pt2: there is no such file"),
        ("own.models:", "this is no import path.*package.module:factory"),
        ("own models:net", "this is no import path"),
        ("own.nowhere:net", "there is no module 'own.nowhere'"),
        ("./own/models.py:net", "named by modules, not files. Hint: write own.models:net"),
        ("nobody.models:net", "there is no module 'nobody'.*where nobody is importable"),
        ("own.broken:net", "there is no module 'nothing_of_that_name'.*own.broken imports it"),
        ("own.raises:net", "importing own.raises failed: RuntimeError: at import"),
        ("own.cuda:net", "importing own.cuda failed.*torchvision is built for CUDA.*download.pytorch.org/whl/cpu"),
        ("own.models:cuda", "the factory failed.*torchvision is built for CUDA"),
        ("own.models:nets", "own.models has no 'nets'.*it has"),
        ("own.models:bare", "a module without example inputs"),
        ("own.models:number", "the factory gave a int"),
        ("own.models:four", "the factory gave 4 things"),
        ("own.models:wrong_calibration", "calibration is a int"),
        ("own.models:wrong_inputs", r"example_inputs\[0\] is a int"),
        ("own.models:fails", "the factory failed: ValueError: no weights here"),
        ("torn.pt2", "torn.pt2: this is no exported program"),
        ("noise.pt2", "noise.pt2: this is no exported program"),
        ("weights.pt", "weights.pt: this is no exported program: torch.save wrote it"),
        ("script.py", "script.py: this is a Python file.*script:factory"),
        ("script", "script: this is a Python module.*script:factory"),
        ("net.onnx", "net.onnx: this is no ONNX model: it has no graph"),
        ("program.pte", "a compiled ExecuTorch program already"),
        (".", "this is a folder"),
    ],
)
def test_bad_input_is_one_sentence(folder: Path, text: str, message: str) -> None:
    torch.export.save(exported(), folder / "whole.pt2")
    whole = (folder / "whole.pt2").read_bytes()
    (folder / "torn.pt2").write_bytes(whole[: len(whole) // 2])
    (folder / "noise.pt2").write_bytes(bytes(range(256)))
    (folder / "script.py").write_text("import torch\n")
    (folder / "net.onnx").write_bytes(b"\x08\x07\x12\x07pytorch")
    torch.save({"weight": torch.zeros(3)}, folder / "weights.pt")
    (folder / "program.pte").write_bytes(b"\x1c\0\0\0ET12")
    with pytest.raises(OpenNeutronError) as caught:
        find(text, trust=text.endswith(".pt2")).load()
    assert re.search(message, str(caught.value)), str(caught.value)
    assert "\n" not in str(caught.value)
