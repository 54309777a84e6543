"""FuseUpdates: rows written one after another into a result become one CONCATENATION.

Before:  y1 = DYNAMIC_UPDATE_SLICE(y0, h1, [0, 0]); y2 = DYNAMIC_UPDATE_SLICE(y1, h2, [1, 0]); …
or:      y1 = CONCATENATION(y0[:0], h1, y0[1:]); y2 = CONCATENATION(y1[:1], h2, y1[2:]); …
After:   y = CONCATENATION(h1, h2, …)

An unrolled loop that collects the outputs of its steps looks like this. Each tensor is tracked as a list of pieces of other
tensors, and is only written when something else reads it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np

from openneutron.litert.graph import Array, DType, Graph, Operator, Tensor
from openneutron.litert.operator_options import make_options
from openneutron.litert.versions import version_of

Piece = tuple[int, int, int]  # tensor, first element along the axis, how many


@dataclass
class _Rows:
    """A tensor as pieces of others along one axis; `starts` has the start of each piece and the end of the last."""

    axis: int
    pieces: list[Piece]
    starts: list[int]


def _rows(axis: int, pieces: list[Piece]) -> _Rows:
    return _Rows(axis, pieces, [0, *accumulate(count for _, _, count in pieces)])


def fuse_updates(graph: Graph, operators: Iterable[Operator], needed: Iterable[int]) -> list[Operator]:
    """Return the operators that compute the `needed` tensors, with chains of updates fused.

    Example:
        >>> graph.operators = fuse_updates(graph, graph.operators, graph.outputs)
    """
    return _Fusing(graph).fuse(operators, list(needed))


class _Fusing:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.rows: dict[int, _Rows] = {}
        self.written: set[int] = set()
        self.made: list[Operator] = []
        self.cuts: dict[tuple[Piece, int], int] = {}  # what was sliced already

    def fuse(self, operators: Iterable[Operator], needed: list[int]) -> list[Operator]:
        operators = list(operators)
        readers = Counter(index for op in operators for index in op.inputs) + Counter(needed)
        for op in operators:
            rows = self._follow(op)
            if rows is not None:
                self.rows[op.outputs[0]] = rows
            else:
                for index in op.inputs:
                    self._write(index)
                self.made.append(op)
            for index in op.inputs:
                readers[index] -= 1
                if not readers[index]:
                    self.rows.pop(index, None)  # else every step would keep a list of all steps
        for index in needed:
            self._write(index)
        return _keep_read(self.made, needed)

    def _follow(self, op: Operator) -> _Rows | None:
        if len(op.outputs) != 1 or not op.inputs or min(op.inputs) < 0:
            return None
        inputs = [self.graph.tensors[index] for index in op.inputs]
        output = self.graph.tensors[op.outputs[0]]
        if op.code == "DYNAMIC_UPDATE_SLICE" and len(inputs) == 3:
            return self._update(op, inputs, output)
        if any(t.dtype.is_opaque for t in inputs) or (output.elements == 0 and op.code != "SLICE"):
            return None
        if op.code == "CONCATENATION":
            return self._concatenation(op, inputs, output)
        if op.code == "SLICE" and len(inputs) == 3:
            return self._slice(op, inputs, output)
        return None

    def _update(self, op: Operator, inputs: list[Tensor], output: Tensor) -> _Rows | None:
        whole, update, starts = inputs
        if starts.data is None or starts.data.size != len(whole.shape) or len(update.shape) != len(whole.shape):
            return None
        if not whole.dtype is update.dtype is output.dtype or whole.shape != output.shape or not whole.shape:
            return None
        if update.elements == 0 or any(u > w for u, w in zip(update.shape, whole.shape, strict=True)):
            return None
        uneven = [at for at, (u, w) in enumerate(zip(update.shape, whole.shape, strict=True)) if u != w]
        if len(uneven) > 1:
            return None
        axis = uneven[0] if uneven else 0
        count = update.shape[axis]
        # LiteRT moves an update that would leave the tensor back inside.
        first = min(max(int(starts.data.reshape(-1)[axis]), 0), whole.shape[axis] - count)
        rows = self._of(self._requantized_view(op.inputs[0], output), axis)
        piece = (self._requantized_view(op.inputs[1], output), 0, count)
        return _rows(axis, [*_cut(rows, 0, first), piece, *_cut(rows, first + count, whole.shape[axis])])

    def _concatenation(self, op: Operator, inputs: list[Tensor], output: Tensor) -> _Rows | None:
        rank = len(output.shape)
        axis = int(getattr(op.options, "axis", 0))
        if getattr(op.options, "fusedActivationFunction", 0) or not -rank <= axis < rank:
            return None
        axis %= rank
        around = (*output.shape[:axis], *output.shape[axis + 1 :])
        total = 0
        for one in inputs:
            if one.dtype is not output.dtype or one.quantization != output.quantization or len(one.shape) != rank:
                return None
            if (*one.shape[:axis], *one.shape[axis + 1 :]) != around:
                return None
            total += one.shape[axis]
        if total != output.shape[axis]:
            return None
        pieces: list[Piece] = []
        for index, one in zip(op.inputs, inputs, strict=True):
            for piece in self._of(index, axis).pieces if one.elements else ():
                _append(pieces, piece)
        return _rows(axis, pieces)

    def _slice(self, op: Operator, inputs: list[Tensor], output: Tensor) -> _Rows | None:
        whole, begin, size = inputs
        if begin.data is None or size.data is None or whole.quantization != output.quantization:
            return None
        if not begin.data.size == size.data.size == len(whole.shape) == len(output.shape):
            return None
        if whole.dtype is not output.dtype:
            return None
        cut = None
        for axis, (first, count) in enumerate(zip(_numbers(begin.data), _numbers(size.data), strict=True)):
            given = whole.shape[axis] - first if count == -1 else count
            if first < 0 or given != output.shape[axis] or first + given > whole.shape[axis]:
                return None
            if given != whole.shape[axis]:
                if cut is not None:
                    return None
                cut = (axis, first, given)
        axis, first, given = cut or (0, 0, whole.shape[0] if whole.shape else 0)
        if not whole.shape:
            return None
        return _rows(axis, _cut(self._of(op.inputs[0], axis), first, first + given))

    def _of(self, index: int, axis: int) -> _Rows:
        """Return the pieces of a tensor along an axis; the whole tensor where it is not tracked along that axis."""
        rows = self.rows.get(index)
        if rows is not None and rows.axis == axis:
            return rows
        self._write(index)
        return _rows(axis, [(index, 0, self.graph.tensors[index].shape[axis])])

    def _requantized_view(self, index: int, as_: Tensor) -> int:
        """Return the tensor with the quantization of `as_`: LiteRT copies bytes here without rescaling."""
        tensor = self.graph.tensors[index]
        if tensor.quantization == as_.quantization:
            return index
        self._write(index)
        made = self._add(replace(tensor, name=f"{tensor.name}, as {as_.name}", quantization=as_.quantization))
        if tensor.data is None:
            self._op("RESHAPE", [index, self._constant(tensor.shape)], made, new_shape=list(tensor.shape))
        return made

    def _write(self, index: int) -> None:
        """Emit the operators that write a tracked tensor, unless that is done already."""
        rows = self.rows.get(index)
        if rows is None or index in self.written or not self.graph.tensors[index].elements:
            return
        self.written.add(index)
        if len(rows.pieces) == 1:
            self._single(rows.pieces[0], rows.axis, index)
        else:
            self._op("CONCATENATION", [self._piece(piece, rows.axis) for piece in rows.pieces], index, axis=rows.axis)

    def _single(self, piece: Piece, axis: int, index: int) -> None:
        source, _, count = piece
        shape = self.graph.tensors[index].shape
        if self.graph.tensors[source].data is None and count < self.graph.tensors[source].shape[axis]:
            self._write_slice(piece, axis, index)
        else:
            self._op("RESHAPE", [self._piece(piece, axis), self._constant(shape)], index, new_shape=list(shape))

    def _write_slice(self, piece: Piece, axis: int, index: int) -> None:
        source, first, _ = piece
        shape = self.graph.tensors[index].shape
        begin = [first if at == axis else 0 for at in range(len(shape))]
        self._op("SLICE", [source, self._constant(begin), self._constant(shape)], index)
        self.cuts[piece, axis] = index

    def _piece(self, piece: Piece, axis: int) -> int:
        index, first, count = piece
        tensor = self.graph.tensors[index]
        if count == tensor.shape[axis]:
            return index
        if (piece, axis) in self.cuts:
            return self.cuts[piece, axis]
        shape = (*tensor.shape[:axis], count, *tensor.shape[axis + 1 :])
        name = f"{tensor.name} {first} to {first + count}"
        made = self._add(replace(tensor, name=name, shape=shape, data=None, shape_signature=None))
        if tensor.data is None:
            self._write_slice(piece, axis, made)
        else:
            part = np.ascontiguousarray(tensor.data.take(range(first, first + count), axis))
            part.flags.writeable = False
            self.graph.tensors[made].data = part
            self.cuts[piece, axis] = made
        return made

    def _add(self, tensor: Tensor) -> int:
        self.graph.tensors.append(tensor)
        return len(self.graph.tensors) - 1

    def _constant(self, numbers: Iterable[int]) -> int:
        data = np.array(list(numbers), np.int32)
        data.flags.writeable = False
        return self._add(Tensor("", data.shape, DType.INT32, data=data))

    def _op(self, code: str, inputs: list[int], output: int, **options: object) -> None:
        made = make_options(code, dict(options))
        self.made.append(Operator(code, list(inputs), [output], made, version=version_of(code)))


def _numbers(data: Array) -> list[int]:
    return [int(one) for one in data.reshape(-1)]


def _append(pieces: list[Piece], piece: Piece) -> None:
    """Append a piece, merging it with the last one where it continues that."""
    if pieces:
        tensor, first, count = pieces[-1]
        if tensor == piece[0] and first + count == piece[1]:
            pieces[-1] = (tensor, first, count + piece[2])
            return
    pieces.append(piece)


def _cut(rows: _Rows, first: int, end: int) -> list[Piece]:
    """The pieces of elements [first, end)."""
    if first >= end:
        return []
    at = bisect_right(rows.starts, first) - 1
    last = bisect_right(rows.starts, end - 1) - 1
    found = rows.pieces[at : last + 1]
    tensor, start, count = found[-1]
    found[-1] = (tensor, start, count - (rows.starts[last + 1] - end))
    tensor, start, count = found[0]
    skipped = first - rows.starts[at]
    found[0] = (tensor, start + skipped, count - skipped)
    return found


def _keep_read(operators: list[Operator], needed: Iterable[int]) -> list[Operator]:
    """Return the operators whose results are read, in order."""
    wanted, found = set(needed), []
    for op in reversed(operators):
        if not op.outputs or wanted.intersection(op.outputs):
            wanted.update(op.inputs)
            found.append(op)
    return found[::-1]
