"""Building a LiteRT graph by hand, for lowering and for tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from openneutron.errors import OptionError
from openneutron.litert.check_graph import check_model
from openneutron.litert.graph import DType, Graph, Model, Operator, Quantization, Signature, Tensor
from openneutron.litert.operator_options import make_options, options_number
from openneutron.litert.table_composite import CODE as COMPOSITE
from openneutron.litert.table_composite import ENTRIES, decomposition, table_options
from openneutron.litert.versions import version_of


class GraphBuilder:
    """Collects tensors and operators, then hands out a checked `Model`.

    Example:
        >>> g = GraphBuilder()
        >>> x = g.tensor("x", (1, 4), DType.INT8, scale=0.5, zero_point=-3)
        >>> y = g.tensor("y", (1, 4), DType.INT8, scale=1 / 256, zero_point=-128)
        >>> _ = g.op("SOFTMAX", [x], [y], beta=1.0)
        >>> data = write_model(g.finish([x], [y]))
    """

    def __init__(self, name: str = "main") -> None:
        self.graph = Graph(name, [], [], [], [])
        self.called: list[Graph] = []
        self.tables = 0  # the called graph of look-up tables, once there is one
        self.first_contents: Graph | None = None  # what CALL_ONCE runs

    def tensor(
        self,
        name: str,
        shape: Sequence[int],
        dtype: DType | str,
        scale: float | Sequence[float] | npt.NDArray[Any] | None = None,
        zero_point: int | Sequence[int] | npt.NDArray[Any] | None = None,
        axis: int = 0,
        data: npt.ArrayLike | None = None,
    ) -> int:
        """Add a tensor and return its index; `data` makes it a constant, several scales quantize along `axis`."""
        kind = DType(dtype)
        sizes = tuple(int(size) for size in shape)
        value = None
        if data is not None:
            value = np.ascontiguousarray(data)
            if value.dtype != kind.numpy:
                cast = value.astype(kind.numpy)
                if not np.array_equal(cast, value):
                    raise OptionError(f"the data of tensor {name!r} does not fit {kind}")
                value = cast
            value = value.reshape(sizes) if not kind.is_opaque else value.reshape(-1)
            value = value.view()
            value.flags.writeable = False
        self.graph.tensors.append(Tensor(name, sizes, kind, _quantization(name, sizes, scale, zero_point, axis), value))
        return len(self.graph.tensors) - 1

    def op(
        self, code: str, inputs: Sequence[int], outputs: Sequence[int], version: int | None = None, **options: Any
    ) -> Operator:
        """Append an operator; `options` are fields of its options table, in snake_case or as the schema spells them."""
        made = make_options(code, options)
        field = 1 if made is None else options_number(made)[0]
        operator = Operator(
            code=code,
            inputs=[int(index) for index in inputs],
            outputs=[int(index) for index in outputs],
            options=made if field == 1 else None,
            options2=made if field == 2 else None,
            version=version_of(code) if version is None else version,
        )
        self.graph.operators.append(operator)
        return operator

    def variable(self, name: str, initial: npt.ArrayLike, dtype: DType | str) -> int:
        """Add a resource variable with its first contents; returns the resource tensor that names it.

        Example:
            >>> history = g.variable("history", np.zeros((1, 2, 40)), DType.INT8)
            >>> g.op("READ_VARIABLE", [history], [before])
            >>> g.op("ASSIGN_VARIABLE", [history, after], [])
        """
        if self.first_contents is None:
            self.first_contents = Graph("first_contents", [], [], [], [])
        outer, self.graph = self.graph, self.first_contents
        try:
            handle = self._handle(name)
            data = np.asarray(initial)
            value = self.tensor(f"{name}_at_first", data.shape, dtype, data=data)
            self.op("ASSIGN_VARIABLE", [handle, value], [])
        finally:
            self.graph = outer
        return self._handle(name)

    def _handle(self, name: str) -> int:
        made = self.tensor(f"{name}_handle", (), DType.RESOURCE)
        self.op("VAR_HANDLE", [], [made], container="", shared_name=name)
        return made

    def state(self, name: str, shape: Sequence[int], dtype: DType | str, scale: float, zero_point: int = 0) -> int:
        """Add a variable tensor, which a recurrent operator updates; it holds its zero point at first."""
        made = self.tensor(name, shape, dtype, scale, zero_point)
        self.graph.tensors[made].is_variable = True
        return made

    def custom(
        self, custom_code: str, inputs: Sequence[int], outputs: Sequence[int], custom_options: bytes = b""
    ) -> Operator:
        """Append a custom operator."""
        operator = Operator("CUSTOM", list(inputs), list(outputs), custom_code=custom_code)
        operator.custom_options = custom_options
        self.graph.operators.append(operator)
        return operator

    def table(self, source: int, entries: npt.ArrayLike, output: int, function: str = "") -> Operator:
        """Append a look-up of each INT8 value in `entries`, 256 INT8 values from the one for -128 on.

        `function` says what they were computed from, so that a checker can compute them again (`certify/functions.py`).
        """
        if not self.tables:
            self.tables = self.calls(decomposition())
        made = self.graph.tensors[output]
        q = made.quantization
        table = self.tensor(
            f"{made.name}_table",
            (ENTRIES,),
            made.dtype,
            q.scale if q else None,
            q.zero_point if q else None,
            data=entries,
        )
        return self.op(COMPOSITE, [source, table], [output], **table_options(self.tables, function))

    def calls(self, graph: Graph) -> int:
        """Add a graph that operators run; returns its number, for the options of WHILE and IF.

        Example:
            >>> body = g.calls(inner.finish([i, x], [n, y]).main)
            >>> g.op("WHILE", [i, x], [n, y], cond_subgraph_index=condition, body_subgraph_index=body)
        """
        self.called.append(graph)
        return len(self.called)

    def finish(
        self, inputs: Sequence[int], outputs: Sequence[int], *, description: str = "", signature: str = ""
    ) -> Model:
        """The finished model, checked like one from a file; `signature` adds an entry point of that name."""
        graph = self.graph
        graph.inputs, graph.outputs = [int(index) for index in inputs], [int(index) for index in outputs]
        graphs = [graph, *self.called]
        if self.first_contents is not None:
            self.op("CALL_ONCE", [], [], init_subgraph_index=len(graphs))
            graph.operators.insert(0, graph.operators.pop())
            graphs.append(self.first_contents)
        model = Model(graphs, description)
        check_model(model, "GraphBuilder")
        if signature:
            named = [tuple((graph.tensors[i].name, i) for i in indices) for indices in (graph.inputs, graph.outputs)]
            model.signatures.append(Signature(signature, 0, named[0], named[1]))
        return model


def _quantization(
    name: str,
    shape: tuple[int, ...],
    scale: float | Sequence[float] | npt.NDArray[Any] | None,
    zero_point: int | Sequence[int] | npt.NDArray[Any] | None,
    axis: int,
) -> Quantization | None:
    if scale is None:
        if zero_point is not None:
            raise OptionError(f"tensor {name!r} has a zero point but no scale")
        return None
    scales = tuple(float(value) for value in np.asarray(scale, np.float32).reshape(-1))
    zeros = tuple(int(value) for value in np.asarray(0 if zero_point is None else zero_point).reshape(-1))
    if len(zeros) == 1:
        zeros *= len(scales)
    fits = len(scales) == 1 or (0 <= axis < len(shape) and shape[axis] == len(scales))
    if not fits or len(zeros) != len(scales):
        given = f"{len(scales)} scales and {len(zeros)} zero points on axis {axis}"
        raise OptionError(f"tensor {name!r} of shape {list(shape)} has {given}")
    return Quantization(scales, zeros, axis if len(scales) > 1 else 0)
