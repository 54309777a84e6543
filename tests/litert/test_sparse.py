from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openneutron.litert import DType
from openneutron.litert import sparse as expand

RANGES = {DType.INT4: (-8, 7), DType.UINT4: (0, 15), DType.INT2: (-2, 1)}


@given(st.sampled_from(sorted(RANGES)), st.integers(0, 40), st.integers(0, 2**31))
def test_unpack_inverts_pack(dtype, count, seed):
    low, high = RANGES[dtype]
    values = np.random.default_rng(seed).integers(low, high + 1, count).astype(dtype.numpy)
    packed = expand.pack(values, dtype)
    assert len(packed) == expand.packed_size(count, dtype)
    unpacked = expand.unpack(packed, count, dtype)
    assert unpacked.dtype == dtype.numpy
    np.testing.assert_array_equal(unpacked, values)


def test_the_low_nibble_comes_first():
    np.testing.assert_array_equal(expand.pack(np.array([1, -2, 3], np.int8), DType.INT4), [0xE1, 0x03])


def dense_level(size):
    return SimpleNamespace(format=0, denseSize=size, arraySegments=None, arrayIndices=None)


def sparse_level(segments, indices):
    vectors = [SimpleNamespace(values=np.array(values, np.int32)) for values in (segments, indices)]
    return SimpleNamespace(format=1, denseSize=0, arraySegments=vectors[0], arrayIndices=vectors[1])


def sparsity(order, levels, blocks=None):
    return SimpleNamespace(traversalOrder=order, blockMap=blocks, dimMetadata=levels)


def test_rows_dense_columns_sparse():
    layout = sparsity([0, 1], [dense_level(3), sparse_level([0, 2, 2, 3], [0, 3, 1])])
    dense = expand.densify(np.array([5, 6, 7], np.int8), (3, 4), layout)
    np.testing.assert_array_equal(dense, [[5, 0, 0, 6], [0, 0, 0, 0], [0, 7, 0, 0]])


def test_columns_first():
    layout = sparsity([1, 0], [dense_level(2), sparse_level([0, 1, 3], [2, 0, 1])])
    dense = expand.densify(np.array([5, 6, 7], np.int8), (3, 2), layout)
    np.testing.assert_array_equal(dense, [[0, 6], [0, 7], [5, 0]])


def test_blocks_of_1_by_4():
    """The layout LiteRT's sparse fully connected kernels use: rows, sparse block columns, dense blocks of 4."""
    layout = sparsity([0, 1, 2], [dense_level(2), sparse_level([0, 1, 2], [1, 0]), dense_level(4)], [1])
    dense = expand.densify(np.arange(1, 9, dtype=np.int8), (2, 8), layout)
    np.testing.assert_array_equal(dense, [[0, 0, 0, 0, 1, 2, 3, 4], [5, 6, 7, 8, 0, 0, 0, 0]])


@given(st.integers(0, 2**31), st.integers(1, 5), st.integers(1, 5), st.sampled_from([(1, 1), (2, 1), (2, 3)]))
def test_any_block_matrix(seed, rows, columns, block):
    rng = np.random.default_rng(seed)
    blocks = rng.integers(1, 100, (rows, columns, *block)).astype(np.int8)
    present = rng.random((rows, columns)) < 0.5
    expected = (blocks * present[:, :, None, None]).transpose(0, 2, 1, 3).reshape(rows * block[0], columns * block[1])
    segments = [0, *np.cumsum(present.sum(1))]
    levels = [dense_level(rows), sparse_level(segments, np.nonzero(present)[1]), *map(dense_level, block)]
    layout = sparsity([0, 1, 2, 3], levels, [0, 1])
    dense = expand.densify(blocks[present].reshape(-1), expected.shape, layout)
    np.testing.assert_array_equal(dense, expected)


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        (sparsity([0, 0], [dense_level(3), dense_level(4)]), "traversal order"),
        (sparsity([0, 1], [dense_level(3)]), "traversal order"),
        (sparsity([0, 1, 2], [dense_level(3), dense_level(4), dense_level(1)], [5]), "block map"),
        (sparsity([0, 1, 2], [dense_level(3), dense_level(1), dense_level(3)], [1]), "block size 3 does not divide"),
        (sparsity([0, 1], [dense_level(2), dense_level(4)]), "a dense level of 2"),
        (sparsity([0, 1], [dense_level(3), sparse_level([0, 1, 2], [0, 0])]), "segments"),
        (sparsity([0, 1], [dense_level(3), sparse_level([0, 2, 1, 3], [0, 1, 2])]), "segments"),
        (sparsity([0, 1], [dense_level(3), sparse_level([0, 1, 2, 3], [0, 1, -1])]), "outside its dimension"),
        (sparsity([0, 1], [dense_level(3), dense_level(4)]), "more than the tensor stores"),
        (sparsity([0, 1], [dense_level(3), sparse_level([0, 1, 1, 1], [0])]), "1 stored positions but 3 values"),
    ],
)
def test_inconsistencies_are_refused(layout, message):
    with pytest.raises(ValueError, match=message):
        expand.densify(np.array([5, 6, 7], np.int8), (3, 4), layout)
