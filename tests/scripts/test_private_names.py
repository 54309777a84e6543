"""Private names of upstream are used in one folder only, and the rule that says so finds each kind of use."""

from __future__ import annotations

import pytest

from scripts.private_names import main, uses

PLANTED = {
    "from torch._ops import OpOverload": "torch._ops.OpOverload",
    "import torchao._models": "torchao._models",
    "from executorch.exir.program import _program": "executorch.exir.program._program",
    'import_module("torch.export._unlift")': "torch.export._unlift",
    "import torch\nprogram._update(module, signature)": "_update",
    "import torch\nmodule._buffers[name] = value": "_buffers",
    'import torch\ngetattr(target, "_schema", None)': "_schema",
    "from executorch.exir import EdgeCompileConfig\nEdgeCompileConfig(_check_ir_validity=False)": "_check_ir_validity",
    "from torchao.x import Observer\nclass Own(Observer):\n    def _search(self): ...": "Own._search",
    "import torch, sys\nsys.modules['torch.x'] = ours": "sys.modules",
    "import torch\nfrom unittest.mock import patch": "unittest.mock",
}
FREE = (
    "import torch\ntorch.ops.aten._softmax.default",
    "import torch\nclass Own:\n    def __init__(self):\n        self._x = 1\ndef f(own): return own._x",
    "from torchao.x import Observer\nclass Own(Observer):\n    def run(self): self._step()\n    def _step(self): ...",
    "point._replace(x=1)\nobject._private",
)


def test_the_sources_use_none_outside_the_room(capsys: pytest.CaptureFixture[str]) -> None:
    assert main() == 0, capsys.readouterr().out


@pytest.mark.parametrize("source", PLANTED)
def test_a_planted_use_is_found(source: str) -> None:
    assert [name for _, name in uses(source)] == [PLANTED[source]]


@pytest.mark.parametrize("source", FREE)
def test_own_names_and_operators_are_free(source: str) -> None:
    assert uses(source) == []
