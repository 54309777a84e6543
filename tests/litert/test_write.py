import os
import subprocess
import sys

import numpy as np
import pytest

from openneutron.errors import FormatError
from openneutron.litert import DType, GraphBuilder, read_model, write_model
from tests.litert.samples import RUNNABLE, SAMPLES, convolution, custom, run, sparse
from tests.work import calls


def assert_same(left, right):
    assert len(left) == len(right)
    for a, b in zip(left, right, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", RUNNABLE)
def test_round_trip_keeps_the_interpreters_output(name):
    data = write_model(RUNNABLE[name]())
    again = read_model(data)
    expected = run(data)
    assert_same(run(write_model(again)), expected)
    assert_same(run(write_model(again, buffers_after=True)), expected)


@pytest.mark.parametrize("name", SAMPLES)
def test_writing_is_a_fixed_point(name):
    data = write_model(SAMPLES[name]())
    assert write_model(read_model(data)) == data
    assert write_model(SAMPLES[name]()) == data


def test_same_bytes_in_other_processes():
    code = (
        "import hashlib; from tests.litert.samples import SAMPLES; from openneutron.litert import write_model\n"
        "print(hashlib.sha256(b''.join(write_model(make()) for make in SAMPLES.values())).hexdigest())"
    )
    digests = set()
    for seed in ("0", "12345"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        digests.add(done.stdout)
    assert len(digests) == 1


@pytest.mark.parametrize("buffers_after", [False, True])
def test_buffers_are_aligned(buffers_after):
    data = write_model(convolution(), buffers_after=buffers_after)
    base = np.frombuffer(data, np.uint8).__array_interface__["data"][0]
    constants = [t.data for t in read_model(data).main.tensors if t.is_constant]
    assert data[4:8] == b"TFL3"
    assert all((value.__array_interface__["data"][0] - base) % 16 == 0 for value in constants)


def test_shared_constants_stay_shared():
    model = convolution()
    size = len(write_model(model))
    names = [tensor.name for tensor in model.main.tensors]
    second = model.main.tensors[names.index("qw")]
    assert second.data is not None
    second.data = second.data.copy()
    assert len(write_model(model)) >= size + second.data.nbytes


def test_dense_copy_of_a_sparse_model_computes_the_same():
    model = sparse()
    expected = run(write_model(model))
    model.main.tensors[1].sparsity = None
    assert_same(run(write_model(model)), expected)


def test_non_contiguous_constants():
    g = GraphBuilder()
    x = g.tensor("x", (1, 3), DType.FLOAT32)
    w = g.tensor("w", (2, 3), DType.FLOAT32, data=np.zeros((2, 3), np.float32))
    y = g.tensor("y", (1, 2), DType.FLOAT32)
    g.op("FULLY_CONNECTED", [x, w, -1], [y])
    model = g.finish([x], [y])
    model.main.tensors[w].data = np.arange(6, dtype=np.float32).reshape(3, 2).T
    np.testing.assert_array_equal(read_model(write_model(model)).main.tensors[w].data, [[0, 2, 4], [1, 3, 5]])


def test_data_that_contradicts_its_tensor_is_refused():
    model = custom()
    model.main.tensors[1].data = np.zeros(5, np.int32)
    with pytest.raises(FormatError, match=r"tensor 'blob' is uint8 \[5\], but its data is int32 \[5\]"):
        write_model(model)


def test_long_models_grow_linearly():
    def work(count: int) -> int:
        g = GraphBuilder()
        last = first = g.tensor("x", (1, 4), DType.INT8, scale=0.5, zero_point=0)
        for number in range(count):
            following = g.tensor(f"t{number}", (1, 4), DType.INT8, scale=0.5, zero_point=0)
            g.op("RELU", [last], [following])
            last = following
        model = g.finish([first], [last])
        return calls(lambda: read_model(write_model(model)))

    assert work(2000) < 12 * work(200)


@pytest.mark.real
def test_real_models_round_trip(real_model):
    data = real_model.read_bytes()
    model = read_model(data, source=real_model.name)
    written = write_model(model)
    assert write_model(read_model(written)) == written
    if all(op.code != "CUSTOM" for op in model.main.operators):
        assert_same(run(written), run(data))
        assert_same(run(write_model(model, buffers_after=True)), run(data))
