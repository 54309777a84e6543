"""The exporter is imported quickly, and reads what it reads otherwise."""

from __future__ import annotations

import subprocess
import sys
from importlib.resources import files

import pytest
from ruamel.yaml import YAML

from openneutron.executorch.upstream.load_exporter import read_types_in_c


def test_the_types_of_operators_are_read_as_before() -> None:
    text = files("executorch.exir.dialects.edge").joinpath("edge.yaml").read_text("utf-8")
    own = YAML.load
    with read_types_in_c():
        assert YAML.load is not own
        fast = YAML(typ="safe").load(text)
    assert YAML.load is own and len(fast) > 100 and fast == YAML(typ="safe").load(text)


@pytest.mark.full
def test_the_exporter_comes_without_the_inductor() -> None:
    code = """
import sys
from openneutron.executorch.upstream.load_exporter import load_exporter
load_exporter()
import openneutron.executorch.pipeline
assert "executorch.exir.program" in sys.modules and "torch._inductor.lowering" not in sys.modules
assert "torch.export._remove_auto_functionalized_pass" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=600)
