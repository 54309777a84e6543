import pytest

from openneutron.errors import FormatError
from openneutron.litert import DType, GraphBuilder, Model, read_model, write_model
from openneutron.litert.check_graph import check_model
from tests.litert.samples import branches


def chain() -> GraphBuilder:
    """x → a → b → c through RELU."""
    g = GraphBuilder()
    for name in "xabc":
        g.tensor(name, (1, 4), DType.INT8, scale=0.5, zero_point=0)
    for source in range(3):
        g.op("RELU", [source], [source + 1])
    return g


def refuse(
    builder: GraphBuilder, message: str, inputs: tuple[int, ...] = (0,), outputs: tuple[int, ...] = (3,)
) -> None:
    """The builder and the reader both refuse, the reader naming the file."""
    with pytest.raises(FormatError) as caught:
        builder.finish(inputs, outputs)
    assert message in str(caught.value)
    data = write_model(Model([builder.graph]))
    with pytest.raises(FormatError) as caught:
        read_model(data, source="m.tflite")
    assert message in str(caught.value)
    assert str(caught.value).startswith("m.tflite, graph 0")


def test_a_chain_is_fine():
    check_model(chain().finish([0], [3]), "here")


def test_a_cycle_is_refused():
    g = chain()
    g.graph.operators[0].inputs = [3]
    refuse(g, "operator 0 (RELU): it reads tensor 3 before any operator has computed it: the graph is cyclic")


def test_an_operator_that_reads_itself_is_refused():
    g = chain()
    g.graph.operators[1].inputs = [2]
    refuse(g, "operator 1 (RELU): it reads tensor 2 before")


def test_wrong_order_is_refused():
    g = chain()
    g.graph.operators.reverse()
    refuse(g, "operator 0 (RELU): it reads tensor 2 before")


@pytest.mark.parametrize("index", [4, -2, 2**31 - 1])
def test_input_out_of_range(index):
    g = chain()
    g.graph.operators[2].inputs = [index]
    refuse(g, f"operator 2 (RELU): it reads tensor {index} of 4")


@pytest.mark.parametrize("index", [4, -1])
def test_output_out_of_range(index):
    g = chain()
    g.graph.operators[2].outputs = [index]
    refuse(g, f"operator 2 (RELU): it writes tensor {index} of 4")


def test_operators_compute_something():
    g = chain()
    g.op("RELU", [3], [])
    refuse(g, "operator 3 (RELU): it has no outputs")


def test_state_is_no_output():
    g = chain()
    state = g.tensor("state", (1, 4), DType.INT8, scale=0.5)
    g.graph.tensors[state].is_variable = True
    refuse(g, f"graph output tensor {state} is an operator's state", outputs=(state,))


def test_intermediates_out_of_range():
    g = chain()
    g.graph.operators[2].intermediates = [9]
    refuse(g, "operator 2 (RELU): its intermediates name tensor 9 of 4")


def test_a_tensor_has_one_producer():
    g = chain()
    g.graph.operators[2].outputs = [1]
    refuse(g, "operator 2 (RELU): it writes tensor 1, which has been written before")


def test_a_graph_input_has_no_producer():
    g = chain()
    g.graph.operators[2].outputs = [0]
    refuse(g, "operator 2 (RELU): it writes tensor 0, which has been written before")


def test_a_constant_has_no_producer():
    g = chain()
    constant = g.tensor("k", (1, 4), DType.INT8, scale=0.5, data=[[1, 2, 3, 4]])
    g.graph.operators[2].outputs = [constant]
    refuse(g, "operator 2 (RELU): it writes tensor 4, which is a constant")


def test_a_constant_is_no_graph_input():
    g = chain()
    constant = g.tensor("k", (1, 4), DType.INT8, scale=0.5, data=[[1, 2, 3, 4]])
    refuse(g, "tensor 4 is a graph input and a constant at once", inputs=(0, constant))


def test_graph_output_must_be_computed():
    g = chain()
    loose = g.tensor("loose", (1, 4), DType.INT8, scale=0.5)
    refuse(g, "graph output tensor 4 is never computed", outputs=(loose,))


def test_graph_io_out_of_range():
    refuse(chain(), "graph output names tensor 7 of 4", outputs=(7,))
    refuse(chain(), "graph input names tensor -1 of 4", inputs=(-1,))


def test_zero_scale_is_kept_per_channel_only():
    g = chain()
    w = g.tensor("w", (2, 4), DType.INT8, scale=[0.0, 0.5], data=[[0] * 4, [1] * 4])
    y = g.tensor("y", (1, 2), DType.INT8, scale=0.5)
    g.op("FULLY_CONNECTED", [3, w, -1], [y])
    assert g.finish([0], [y]).main.tensors[w].quantization.scale == (0.0, 0.5)


@pytest.mark.parametrize("scale", [float("nan"), float("inf"), -0.5, 0.0])
def test_impossible_scales_are_refused(scale):
    g = chain()
    bad = g.tensor("bad", (1, 4), DType.INT8, scale=scale)
    g.op("RELU", [3], [bad])
    refuse(g, f"tensor 4: its scale is {scale if scale else 0}", outputs=(bad,))


def test_calls_between_graphs():
    check_model(branches(), "here")
    model = branches()
    model.main.operators[0].options.elseSubgraphIndex = 3
    with pytest.raises(FormatError, match=r"graph 0, operator 0 \(IF\): it calls graph 3 of 3"):
        check_model(model, "here")
    model.main.operators[0].options.elseSubgraphIndex = 0
    with pytest.raises(FormatError, match="graph 0 calls itself"):
        check_model(model, "here")


def test_a_model_without_graphs():
    with pytest.raises(FormatError, match="here: the model has no graph"):
        check_model(Model([]), "here")
