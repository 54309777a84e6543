"""Computes output shapes as LiteRT does, from the shapes, constants and options of an operator.

LiteRT computes these shapes when it loads a model, whatever the file declares. A file that declares other shapes contradicts
itself: its operators would run with shapes that were not proved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import zip_longest
from math import prod

from openneutron.certify.operators import Context, axis_of
from openneutron.certify.refused import Refused

Shape = tuple[int, ...]
Shapes = list[Shape]
SHAPES: dict[str, Callable[[Context], Shapes | None]] = {}

_SAME = [
    "QUANTIZE",
    "DEQUANTIZE",
    "RELU",
    "RELU6",
    "RELU_N1_TO_1",
    "RELU_0_TO_1",
    "LOGISTIC",
    "TANH",
    "ABS",
    "NEG",
    "EXP",
    "LOG",
    "SQRT",
    "RSQRT",
    "SIN",
    "COS",
    "FLOOR",
    "CEIL",
    "ROUND",
    "CAST",
    "SOFTMAX",
    "LOG_SOFTMAX",
    "HARD_SWISH",
    "GELU",
    "ELU",
    "LEAKY_RELU",
    "SQUARE",
    "SIGN",
    "LOGICAL_NOT",
    "CUMSUM",
    "REVERSE_V2",
    "REVERSE_SEQUENCE",
    "L2_NORMALIZATION",
    "LOCAL_RESPONSE_NORMALIZATION",
    "ZEROS_LIKE",
    "FAKE_QUANT",
    "DYNAMIC_UPDATE_SLICE",
]
_BROADCAST = [
    "ADD",
    "SUB",
    "MUL",
    "DIV",
    "MAXIMUM",
    "MINIMUM",
    "SQUARED_DIFFERENCE",
    "POW",
    "FLOOR_DIV",
    "FLOOR_MOD",
    "EQUAL",
    "NOT_EQUAL",
    "LESS",
    "LESS_EQUAL",
    "GREATER",
    "GREATER_EQUAL",
    "LOGICAL_AND",
    "LOGICAL_OR",
    "PRELU",
    "SELECT_V2",
    "ATAN2",
    "BITWISE_XOR",
    "RIGHT_SHIFT",
]


def check_shapes(c: Context) -> bool:
    """Refuse outputs whose shape differs from LiteRT's; return False where no rule computes the shape."""
    made = _make_shapes(c)
    if made is None or len(made) != len(c.op.outputs):
        return False
    for index, shape in zip(c.op.outputs, made, strict=True):
        tensor = c.graph.tensors[index]
        if tensor.shape == shape:
            continue
        if 0 in tensor.shape:
            return False  # files declare sizes known only at run time as 0
        text = f"operator {c.op.number} ({c.op.code}) makes {list(shape)}, {tensor.name!r} is declared {list(tensor.shape)}"
        raise Refused(text, c.op.offset)
    return True


def has_declared_sizes(c: Context) -> bool:
    """Return whether every computed input has its declared size; inputs of unknown size are one tag each."""
    tensors = ((index, c.graph.tensors[index]) for index in c.op.inputs if index >= 0)
    return all(one.data is not None or len(c.values[index]) == one.size for index, one in tensors)


def _make_shapes(c: Context) -> Shapes | None:
    rule = SHAPES.get(c.op.code)
    if rule is None or any(index < 0 for index in c.op.outputs):
        return None
    if not has_declared_sizes(c):
        return None
    try:
        return rule(c)
    except (LookupError, ValueError, TypeError, ArithmeticError):
        return None


def _shape(*codes: str) -> Callable[[Callable[[Context], Shapes | None]], Callable[[Context], Shapes | None]]:
    def wrap(function: Callable[[Context], Shapes | None]) -> Callable[[Context], Shapes | None]:
        for code in codes:
            SHAPES[code] = function
        return function

    return wrap


def _vector(c: Context, position: int) -> list[int] | None:
    """Return the known integers of a rank 1 tensor; LiteRT refuses other ranks for sizes, positions and orders."""
    return c.numbers(position) if len(c.tensor(position).shape) == 1 else None


@_shape(*_SAME)
def _same(c: Context) -> Shapes:
    return [c.tensor(0).shape]


@_shape(*_BROADCAST)
def _broadcast(c: Context) -> Shapes | None:
    return [_joint(c.tensor(at).shape for at in range(len(c.op.inputs)))]


def _joint(shapes: Iterable[Shape]) -> Shape:
    made: list[int] = []
    for shape in shapes:
        pairs = zip_longest(reversed(made), reversed(shape), fillvalue=1)
        both = [(b if a == 1 else a, a == b or 1 in (a, b)) for a, b in pairs]
        if not all(fits for _, fits in both):
            raise ValueError("shapes do not broadcast")
        made = [size for size, _ in reversed(both)]
    return tuple(made)


@_shape("RESHAPE")
def _reshape(c: Context) -> Shapes | None:
    given = c.numbers(1) if c.has(1) else list(c.op.options.get("NewShape", ()))
    if given is None or (c.has(1) and (c.tensor(1).dtype != "INT32" or len(c.tensor(1).shape) != 1)):
        return None
    if not c.has(1) and given == [0]:
        given = []  # how old files write a scalar
    count = prod(c.tensor(0).shape)
    if given.count(-1) == 1:
        rest = prod(one for one in given if one != -1)
        given[given.index(-1)] = count // rest if rest and count % rest == 0 else -1
    if prod(given) != count or min(given, default=0) < 0:
        return None  # LiteRT refuses such a model
    return [tuple(given)]


@_shape("SQUEEZE")
def _squeeze(c: Context) -> Shapes:
    shape = c.tensor(0).shape
    axes = {axis_of(one, len(shape)) for one in c.op.options.get("SqueezeDims", ())} or {
        at for at, size in enumerate(shape) if size == 1
    }
    return [tuple(size for at, size in enumerate(shape) if at not in axes)]


@_shape("EXPAND_DIMS")
def _expand(c: Context) -> Shapes | None:
    shape, axis = c.tensor(0).shape, c.numbers(1)
    if axis is None or len(axis) != 1:
        return None
    at = axis_of(axis[0], len(shape) + 1)
    return [(*shape[:at], 1, *shape[at:])]


@_shape("TRANSPOSE")
def _transpose(c: Context) -> Shapes | None:
    shape, order = c.tensor(0).shape, _vector(c, 1)
    return (
        None if order is None or len(order) != len(shape) else [tuple(shape[axis_of(one, len(shape))] for one in order)]
    )


@_shape("BROADCAST_TO")
def _broadcast_to(c: Context) -> Shapes | None:
    given = _vector(c, 1)
    return None if given is None else [tuple(given)]


@_shape("FILL")
def _fill(c: Context) -> Shapes | None:
    given = _vector(c, 0)
    return None if given is None else [tuple(given)]


@_shape("TILE")
def _tile(c: Context) -> Shapes | None:
    times = _vector(c, 1)
    return None if times is None else [tuple(a * b for a, b in zip(c.tensor(0).shape, times, strict=True))]


@_shape("PAD", "PADV2", "MIRROR_PAD")
def _pad(c: Context) -> Shapes | None:
    frame = c.numbers(1)
    if frame is None or c.tensor(1).shape != (len(c.tensor(0).shape), 2):
        return None
    return [tuple(a + b + n for n, a, b in zip(c.tensor(0).shape, frame[::2], frame[1::2], strict=True))]


@_shape("SLICE")
def _slice(c: Context) -> Shapes | None:
    begin, size = _vector(c, 1), _vector(c, 2)
    if begin is None or size is None:
        return None
    return [tuple(n - b if s == -1 else s for n, b, s in zip(c.tensor(0).shape, begin, size, strict=True))]


@_shape("STRIDED_SLICE")
def _strided_slice(c: Context) -> Shapes | None:
    shape, o = c.tensor(0).shape, c.op.options
    begin, end, step = _vector(c, 1), _vector(c, 2), _vector(c, 3)
    if begin is None or end is None or step is None or o["Offset"] or o["EllipsisMask"] or o["NewAxisMask"]:
        return None
    made = []
    for at, size in enumerate(shape):
        if at >= len(begin):
            made.append(size)
        elif not o["ShrinkAxisMask"] >> at & 1:
            first = None if o["BeginMask"] >> at & 1 else begin[at]
            made.append(len(range(size)[slice(first, None if o["EndMask"] >> at & 1 else end[at], step[at])]))
    return [tuple(made)]


@_shape("CONCATENATION")
def _concatenation(c: Context) -> Shapes:
    shapes = [c.tensor(at).shape for at in range(len(c.op.inputs))]
    axis = axis_of(c.op.options.get("Axis", 0), len(shapes[0]))
    return [(*shapes[0][:axis], sum(shape[axis] for shape in shapes), *shapes[0][axis + 1 :])]


@_shape("PACK")
def _pack(c: Context) -> Shapes:
    shape = c.tensor(0).shape
    axis = axis_of(c.op.options.get("Axis", 0), len(shape) + 1)
    return [(*shape[:axis], len(c.op.inputs), *shape[axis:])]


@_shape("UNPACK")
def _unpack(c: Context) -> Shapes:
    shape = c.tensor(0).shape
    axis = axis_of(c.op.options.get("Axis", 0), len(shape))
    return [(*shape[:axis], *shape[axis + 1 :])] * shape[axis]


@_shape("SPLIT")
def _split(c: Context) -> Shapes | None:
    axis, shape, parts = c.numbers(0), c.tensor(1).shape, c.op.options.get("NumSplits", 0)
    if axis is None:
        return None
    at = axis_of(axis[0], len(shape))
    return [(*shape[:at], shape[at] // parts, *shape[at + 1 :])] * parts


@_shape("SPLIT_V")
def _split_v(c: Context) -> Shapes | None:
    sizes, axis, shape = _vector(c, 1), c.numbers(2), c.tensor(0).shape
    if sizes is None or axis is None:
        return None
    at = axis_of(axis[0], len(shape))
    rest = shape[at] - sum(one for one in sizes if one != -1)
    return [(*shape[:at], rest if one == -1 else one, *shape[at + 1 :]) for one in sizes]


@_shape("GATHER")
def _gather(c: Context) -> Shapes:
    shape, indices = c.tensor(0).shape, c.tensor(1).shape
    axis, batch = axis_of(c.op.options.get("Axis", 0), len(shape)), c.op.options.get("BatchDims", 0)
    batch += len(indices) if batch < 0 else 0
    return [(*shape[:axis], *indices[batch:], *shape[axis + 1 :])]


@_shape("GATHER_ND")
def _gather_nd(c: Context) -> Shapes | None:
    shape, indices = c.tensor(0).shape, c.tensor(1).shape
    return [(*indices[:-1], *shape[indices[-1] :])] if indices and 1 <= indices[-1] <= len(shape) else None


@_shape("EMBEDDING_LOOKUP")
def _embedding_lookup(c: Context) -> Shapes:
    return [(*c.tensor(0).shape, *c.tensor(1).shape[1:])]


@_shape("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD", "REDUCE_ANY", "REDUCE_ALL")
def _reduce(c: Context) -> Shapes | None:
    shape, given = c.tensor(0).shape, c.numbers(1)
    if given is None:
        return None
    axes = {axis_of(one, len(shape)) for one in given}
    keep = c.op.options.get("KeepDims", False)
    return [tuple(1 if at in axes else size for at, size in enumerate(shape) if keep or at not in axes)]


@_shape("ARG_MAX", "ARG_MIN")
def _arg(c: Context) -> Shapes | None:
    shape, axis = c.tensor(0).shape, c.numbers(1)
    if axis is None:
        return None
    at = axis_of(axis[0], len(shape))
    return [(*shape[:at], *shape[at + 1 :])]


@_shape("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR")
def _resize(c: Context) -> Shapes | None:
    size, shape = _vector(c, 1), c.tensor(0).shape
    return None if size is None else [(shape[0], size[0], size[1], shape[3])]


@_shape("TRANSPOSE_CONV")
def _transpose_conv(c: Context) -> Shapes | None:
    given = _vector(c, 0)
    return None if given is None else [tuple(given)]


@_shape("CONV_2D", "DEPTHWISE_CONV_2D")
def _convolution(c: Context) -> Shapes:
    shape, kernel, o = c.tensor(0).shape, c.tensor(1).shape, c.op.options
    channels = kernel[0] if c.op.code == "CONV_2D" else kernel[3]
    sides = ((kernel[1], "StrideH", "DilationHFactor"), (kernel[2], "StrideW", "DilationWFactor"))
    sizes = [_steps(n, (k - 1) * o[d] + 1, o[s], o["Padding"]) for n, (k, s, d) in zip(shape[1:3], sides, strict=True)]
    return [(shape[0], sizes[0], sizes[1], channels)]


@_shape("MAX_POOL_2D", "AVERAGE_POOL_2D", "L2_POOL_2D")
def _pool(c: Context) -> Shapes:
    shape, o = c.tensor(0).shape, c.op.options
    height = _steps(shape[1], o["FilterHeight"], o["StrideH"], o["Padding"])
    return [(shape[0], height, _steps(shape[2], o["FilterWidth"], o["StrideW"], o["Padding"]), shape[3])]


def _steps(size: int, window: int, stride: int, valid: int) -> int:
    return -(-(size - window + 1 if valid else size) // stride)


@_shape("FULLY_CONNECTED")
def _fully_connected(c: Context) -> Shapes | None:
    shape, weights = c.tensor(0).shape, c.tensor(1).shape
    if c.op.options.get("KeepNumDims"):
        return [(*shape[:-1], weights[0])]
    count = prod(shape)
    return [(count // weights[1], weights[0])] if count % weights[1] == 0 else None


@_shape("BATCH_MATMUL")
def _batch_matmul(c: Context) -> Shapes:
    left, right, o = c.tensor(0).shape, c.tensor(1).shape, c.op.options
    rows, columns = left[-1 if o.get("AdjX") else -2], right[-2 if o.get("AdjY") else -1]
    return [(*_joint((left[:-2], right[:-2])), rows, columns)]


@_shape("SPACE_TO_DEPTH", "DEPTH_TO_SPACE")
def _blocks(c: Context) -> Shapes:
    n, h, w, d = c.tensor(0).shape
    b = c.op.options["BlockSize"]
    return [(n, h // b, w // b, d * b * b) if c.op.code == "SPACE_TO_DEPTH" else (n, h * b, w * b, d // (b * b))]


@_shape("SPACE_TO_BATCH_ND", "BATCH_TO_SPACE_ND")
def _batches(c: Context) -> Shapes | None:
    shape, block, frame = c.tensor(0).shape, c.numbers(1), c.numbers(2)
    if block is None or frame is None:
        return None
    sums = [a + b for a, b in zip(frame[::2], frame[1::2], strict=True)]
    inner = zip(shape[1:], block, sums, strict=False)
    if c.op.code == "SPACE_TO_BATCH_ND":
        sizes, batch = [(n + s) // b for n, b, s in inner], shape[0] * prod(block)
    else:
        sizes, batch = [n * b - s for n, b, s in inner], shape[0] // prod(block)
    return [(batch, *sizes, *shape[1 + len(block) :])]


@_shape("TOPK_V2")
def _top(c: Context) -> Shapes | None:
    count = c.numbers(1)
    return None if count is None else [(*c.tensor(0).shape[:-1], count[0])] * 2


@_shape("SHAPE")
def _rank(c: Context) -> Shapes:
    return [(len(c.tensor(0).shape),)]


@_shape("ONE_HOT")
def _one_hot(c: Context) -> Shapes | None:
    shape, depth, axis = c.tensor(0).shape, c.numbers(1), c.op.options.get("Axis", 0)
    if depth is None:
        return None
    at = len(shape) if axis == -1 else axis
    return [(*shape[:at], depth[0], *shape[at:])]
