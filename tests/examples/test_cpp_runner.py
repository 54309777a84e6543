"""examples/cpp_runner builds against the wheel with one command and computes what Python does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.executorch.delegates import compiled, payload_of, pool, pool_model, program_of, random_int8

SOURCE = Path(__file__).parents[2] / "examples" / "cpp_runner"
X = random_int8(1, 5, 8, 6)


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Path:
    build = tmp_path_factory.mktemp("cpp_runner")
    configure = ["cmake", "-S", str(SOURCE), "-B", str(build), f"-DPython_EXECUTABLE={sys.executable}"]
    for command in (configure, ["cmake", "--build", str(build)]):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    return build / "cpp_runner"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.pte"
    path.write_bytes(program_of([payload_of(compiled(pool_model((1, 8, 6, 5))), [1], [1])], [X], [[pool(X)]]))
    return path


def test_output_bytes_are_those_of_python(runner: Path, model: Path, tmp_path: Path):
    data = tmp_path / "input.bin"
    data.write_bytes(X.numpy().tobytes())
    done = subprocess.run([runner, model, data], capture_output=True, text=True, check=True)
    expected = pool(X).numpy().tobytes()
    assert done.stdout == f"output 0, {len(expected)} bytes: {expected.hex(' ')}\n"


def test_input_of_wrong_size_is_refused(runner: Path, model: Path, tmp_path: Path):
    data = tmp_path / "input.bin"
    data.write_bytes(bytes(7))
    done = subprocess.run([runner, model, data], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "7 bytes, the program wants 240" in done.stderr


def test_damaged_model_is_refused(runner: Path, model: Path):
    data = bytearray(model.read_bytes())
    data[-100] ^= 1
    model.write_bytes(data)
    done = subprocess.run([runner, model], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "the payload's checksum is wrong" in done.stderr
