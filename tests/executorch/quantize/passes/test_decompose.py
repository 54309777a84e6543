"""Attention, layer norms and recurrent layers taken apart: the float results stay, nothing composite is left."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.fx import GraphModule

from openneutron.executorch.fx import module_path, operator_name, source_line, value_of
from openneutron.executorch.quantize.passes.decompose.decompose_attention import decompose_attention
from openneutron.executorch.quantize.passes.decompose.decompose_composites import decompose_composites
from openneutron.executorch.quantize.passes.decompose.decompose_group_norm import decompose_group_norm
from openneutron.executorch.quantize.passes.decompose.decompose_gru import decompose_gru
from openneutron.executorch.quantize.passes.decompose.decompose_layer_norm import decompose_layer_norm
from openneutron.executorch.quantize.passes.decompose.decompose_log_softmax import decompose_log_softmax
from openneutron.executorch.quantize.passes.decompose.decompose_lstm import decompose_lstm
from openneutron.executorch.quantize.passes.decompose.decompose_products import decompose_products
from openneutron.executorch.quantize.passes.decompose.decompose_rnn import decompose_rnn
from openneutron.executorch.quantize.passes.replace.replace_masked_fill import replace_masked_fill
from openneutron.executorch.quantize.passes.replace.replace_max import replace_max

Pass = Callable[[GraphModule], int]
LOWER = torch.ones(5, 5, dtype=torch.bool).tril()
FRAMES = torch.linspace(-2, 2, 2 * 5 * 6).reshape(2, 5, 6)


class Attention(nn.Module):
    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.options = options

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.scaled_dot_product_attention(x, x + 1, x * 2, **self.options)


class Masked(nn.Module):
    def __init__(self, largest: float) -> None:
        super().__init__()
        self.register_buffer("mask", torch.linspace(-largest, 0, 25).reshape(5, 5))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.scaled_dot_product_attention(x, x, x, attn_mask=self.mask)


class Function(nn.Module):
    def __init__(self, function: Callable[[torch.Tensor], Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> Any:
        return self.function(x)


class Scores(nn.Module):
    """Attention by hand: what lies behind a position is forbidden."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("behind", ~LOWER)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x @ x.transpose(1, 2)).masked_fill(self.behind, float("-inf")).softmax(-1)


class Recurrent(nn.Module):
    """All results of a layer; with `states` it begins from them."""

    def __init__(self, layer: nn.Module, states: tuple[torch.Tensor, ...] = ()) -> None:
        super().__init__()
        self.layer = layer
        self.states = states

    def forward(self, x: torch.Tensor) -> Any:
        given = self.states if len(self.states) > 1 else self.states[0] if self.states else None
        y, last = self.layer(x, given)
        return (y, y[:, -1], *(last if isinstance(last, tuple) else (last,)))


class Step(nn.Module):
    """One step of a cell, from given states."""

    def __init__(self, cell: nn.Module, states: tuple[torch.Tensor, ...]) -> None:
        super().__init__()
        self.cell = cell
        self.states = tuple(state[0] for state in states)

    def forward(self, x: torch.Tensor) -> Any:
        return self.cell(x[:, 0], self.states if len(self.states) > 1 else self.states[0])


def ones(*sizes: int) -> tuple[torch.Tensor, ...]:
    return tuple(torch.linspace(-1, 1, 4 * size).reshape(2, 2, size) for size in sizes)


DEFINED: dict[str, Callable[[torch.Tensor], Any]] = {
    "dimensions moved": lambda x: x.movedim(1, -1).swapaxes(0, 1),
    "repeated in place": lambda x: x.repeat_interleave(2, 1).tile(1, 2, 1),
    "turned": lambda x: torch.rot90(x, 1, (1, 2)),
    "stacked": lambda x: (torch.hstack([x, x + 1]), torch.vstack([x, x]), torch.dstack([x, x])),
    "differences": lambda x: torch.diff(x),
    "the larger of two": lambda x: (torch.max(x, -x), torch.fmin(x, x * 0.5)),
    "smallest and largest": lambda x: torch.aminmax(x, dim=1),
    "spread and mean": lambda x: (*torch.std_mean(x, 1, keepdim=True), *torch.var_mean(x, (0, 1), unbiased=False)),
    "lengths of differences": lambda x: (nn.functional.pairwise_distance(x[0], x[1]), torch.cdist(x[:1], x[1:])),
    "angle between vectors": lambda x: nn.functional.cosine_similarity(x[:1], x[1:] + 0.1, dim=-1),
    "norms": lambda x: (torch.linalg.norm(x, dim=1), x.norm(1, dim=-1), torch.linalg.matrix_norm(x)),
    "cross products": lambda x: (
        torch.cross(x[..., :3], x[..., 3:], dim=-1),
        torch.linalg.cross(x[..., :3], x[..., 1:4]),
    ),
    "hypotenuse": lambda x: torch.hypot(x, x + 1),
    "log of two exponentials": lambda x: torch.logaddexp(x, 1 - x),
    "powers of two": lambda x: torch.exp2(x),
    "quotient added": lambda x: torch.addcdiv(x, x, x.abs() + 1, value=0.5),
    "random slope": lambda x: nn.functional.rrelu(x),
    "triangles": lambda x: (x.tril(), x.triu(1)),
    "frames": lambda x: x.unfold(1, 3, 2),
    "frames side by side": lambda x: x.unfold(2, 2, 2),
    "nearest pixels, exactly": lambda x: nn.functional.interpolate(x[None], size=(7, 4), mode="nearest-exact"),
    "twice the pixels, exactly": lambda x: nn.functional.interpolate(x, scale_factor=2, mode="nearest-exact"),
    "a slice replaced": lambda x: (
        torch.slice_scatter(x, x[:, :2], 1, 2, 4),
        torch.slice_scatter(x, x[:, :3], 1, 0, 5, 2),
    ),
    "a row replaced": lambda x: torch.select_scatter(x, x[:, 0] * 2, 1, -1),
    "filled": lambda x: (torch.zeros_like(x) + torch.full_like(x, 2.0), torch.ones_like(x) * x),
    "patches": lambda x: nn.functional.unfold(x[None], (2, 3), dilation=(1, 2), padding=(1, 0), stride=(2, 1)),
}
PRODUCTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "two matrices": lambda x: torch.mm(x[0], x[1].t()),
    "a batch and a matrix": lambda x: x @ x[0].t(),
    "a matrix and a vector": lambda x: torch.mv(x[0], x[1, 0]),
    "two vectors": lambda x: torch.dot(x[0, 0], x[1, 1]),
    "computed weights": lambda x: nn.functional.linear(x, x[0], x[0, :, 0]),
    "a sum and a product": lambda x: torch.addmm(x[0, :, :5], x[0], x[1].t(), beta=0.5, alpha=2),
}

CASES: dict[str, tuple[Pass, Callable[[], nn.Module]]] = {
    "attention": (decompose_attention, Attention),
    "attention with its own scale": (decompose_attention, lambda: Attention(scale=0.3)),
    "attention with a mild mask": (decompose_attention, lambda: Masked(4.0)),
    "attention with a steep mask": (decompose_attention, lambda: Masked(100.0)),
    "attention with a mask of booleans": (decompose_attention, lambda: Attention(attn_mask=LOWER)),
    "attention with a mask of infinities": (decompose_attention, lambda: Attention(attn_mask=LOWER.float().log())),
    "causal attention": (decompose_attention, lambda: Attention(is_causal=True)),
    "products by subscripts": (decompose_composites, lambda: Function(lambda x: torch.einsum("bik,bjk->bij", x, x))),
    "addcmul": (decompose_composites, lambda: Function(lambda x: torch.addcmul(x, x, x, value=0.5))),
    "gated linear unit": (decompose_composites, lambda: nn.GLU()),
    "rms norm": (decompose_composites, lambda: nn.RMSNorm(6)),
    "standard deviation": (decompose_composites, lambda: Function(lambda x: x.std(1))),
    "variance, biased": (decompose_composites, lambda: Function(lambda x: x.var(-1, correction=0, keepdim=True))),
    "log of a sum of exponentials": (decompose_composites, lambda: Function(lambda x: x.logsumexp(1))),
    "lerp": (decompose_composites, lambda: Function(lambda x: torch.lerp(x, x + 1, 0.3))),
    "length of vectors": (decompose_composites, lambda: Function(lambda x: x.norm(dim=-1))),
    "pixel unshuffle": (decompose_composites, lambda: Function(lambda x: nn.functional.pixel_unshuffle(x[:, :4], 2))),
    **{
        name: (decompose_composites, lambda function=function: Function(function)) for name, function in DEFINED.items()
    },
    **{name: (decompose_products, lambda function=function: Function(function)) for name, function in PRODUCTS.items()},
    "group norm": (decompose_group_norm, lambda: nn.GroupNorm(5, 5)),
    "instance norm": (decompose_group_norm, lambda: nn.InstanceNorm1d(5, affine=True)),
    "instance norm with its statistics": (decompose_group_norm, lambda: nn.InstanceNorm1d(5, track_running_stats=True)),
    "largest value": (replace_max, lambda: Function(lambda x: x.max(1).values)),
    "largest value and where": (replace_max, lambda: Function(lambda x: tuple(x.max(1)))),
    "smallest value and where, dimension kept": (
        replace_max,
        lambda: Function(lambda x: tuple(x.min(2, keepdim=True))),
    ),
    "where the largest of all is": (replace_max, lambda: Function(lambda x: (x * x[0, 0]).argmax())),
    "where the smallest is, dimension kept": (replace_max, lambda: Function(lambda x: x.argmin(1, keepdim=True))),
    "adaptive max pooling of signals": (replace_max, lambda: nn.AdaptiveMaxPool1d(1)),
    "adaptive max pooling of windows that differ": (replace_max, lambda: nn.AdaptiveMaxPool2d((3, 4))),
    "adaptive max pooling to one pixel": (replace_max, lambda: nn.AdaptiveMaxPool2d(1)),
    "adaptive max pooling to a grid": (replace_max, lambda: nn.AdaptiveMaxPool2d((5, 3))),
    "masked scores": (replace_masked_fill, lambda: Scores()),
    "rnn": (decompose_rnn, lambda: Recurrent(nn.RNN(6, 4, batch_first=True))),
    "rnn, two layers, both ways": (decompose_rnn, lambda: Recurrent(nn.RNN(6, 4, 2, "relu", bidirectional=True))),
    "log softmax": (decompose_log_softmax, lambda: nn.LogSoftmax(1)),
    "layer norm": (decompose_layer_norm, lambda: nn.LayerNorm(6)),
    "layer norm over two dimensions": (decompose_layer_norm, lambda: nn.LayerNorm([5, 6])),
    "layer norm without gain": (decompose_layer_norm, lambda: nn.LayerNorm(6, elementwise_affine=False)),
    "layer norm without offset": (decompose_layer_norm, lambda: nn.LayerNorm(6, bias=False, eps=0.1)),
    "gru": (decompose_gru, lambda: Recurrent(nn.GRU(6, 4, batch_first=True))),
    "gru, time first": (decompose_gru, lambda: Recurrent(nn.GRU(6, 4))),
    "gru without bias": (decompose_gru, lambda: Recurrent(nn.GRU(6, 4, bias=False, batch_first=True))),
    "gru, two layers, both ways": (
        decompose_gru,
        lambda: Recurrent(nn.GRU(6, 4, 2, batch_first=True, bidirectional=True, dropout=0.5)),
    ),
    "gru from a state": (decompose_gru, lambda: Recurrent(nn.GRU(6, 4, 2, batch_first=True), ones(4))),
    "lstm": (decompose_lstm, lambda: Recurrent(nn.LSTM(6, 4, batch_first=True))),
    "lstm, time first": (decompose_lstm, lambda: Recurrent(nn.LSTM(6, 4))),
    "lstm without bias": (decompose_lstm, lambda: Recurrent(nn.LSTM(6, 4, bias=False, batch_first=True))),
    "lstm, two layers, both ways": (
        decompose_lstm,
        lambda: Recurrent(nn.LSTM(6, 4, 2, batch_first=True, bidirectional=True)),
    ),
    "lstm from states": (decompose_lstm, lambda: Recurrent(nn.LSTM(6, 4, 2, batch_first=True), ones(4, 4))),
    "gru cell": (decompose_gru, lambda: Step(nn.GRUCell(6, 4), ones(4))),
    "lstm cell": (decompose_lstm, lambda: Step(nn.LSTMCell(6, 4), ones(4, 4))),
    "rnn cell": (decompose_rnn, lambda: Step(nn.RNNCell(6, 4, bias=False, nonlinearity="relu"), ones(4))),
    "lstm with projection": (decompose_lstm, lambda: Recurrent(nn.LSTM(6, 4, 2, batch_first=True, proj_size=3))),
}

COMPOSITE = {
    "aten.scaled_dot_product_attention.default", "aten.layer_norm.default", "aten.gru.input", "aten.lstm.input",
    "aten.log_softmax.int", "aten.einsum.default", "aten.group_norm.default", "aten.instance_norm.default",
    "aten.rnn_tanh.input", "aten.rnn_relu.input", "aten.gru_cell.default", "aten.lstm_cell.default",
    "aten.rnn_relu_cell.default", "aten.max.dim", "aten.masked_fill.Scalar", "aten.mm.default", "aten.addmm.default",
    "aten.linalg_vector_norm.default", "aten.linalg_norm.default", "aten.unfold.default", "aten.im2col.default",
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_results_stay_and_nothing_composite_is_left(name: str) -> None:
    step, make = CASES[name]
    torch.manual_seed(0)
    model = make().eval()
    module = torch.export.export(model, (FRAMES,)).module()
    assert step(module) >= 1
    module.graph.eliminate_dead_code()
    module.graph.lint()
    module.recompile()
    left = COMPOSITE & {operator_name(node) for node in module.graph.nodes}
    # A group norm becomes a layer norm, which is another pass's.
    assert left <= ({"aten.layer_norm.default"} if step is decompose_group_norm else set())
    with torch.no_grad():
        wanted, got = model(FRAMES), module(FRAMES)
    many = (wanted, got) if isinstance(wanted, tuple) else ((wanted,), (got,))
    for one, other in zip(*many, strict=True):
        # A penalty is not quite minus infinity.
        torch.testing.assert_close(
            other, one, rtol=1e-5, atol=1e-3 if "attention" in name or "masked" in name else 1e-5
        )
    for node in module.graph.nodes:
        if node.op == "call_function":
            assert value_of(node) is not None, f"{node.name} does not know its shape"


def test_the_new_calls_know_where_they_come_from() -> None:
    module = torch.export.export(nn.Sequential(nn.LayerNorm(6)).eval(), (FRAMES,)).module()
    decompose_layer_norm(module)
    calls = [node for node in module.graph.nodes if node.op == "call_function"]
    assert {module_path(node) for node in calls} == {"0"}
    assert all(source_line(node) for node in calls)


def test_a_reader_of_one_step_gets_that_step_and_no_concatenation() -> None:
    class Last(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gru = nn.GRU(6, 4, batch_first=True)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.gru(x)[0][:, -2]

    model = Last().eval()
    module = torch.export.export(model, (FRAMES,)).module()
    decompose_gru(module)
    module.graph.eliminate_dead_code()
    module.recompile()
    assert "aten.cat.default" not in {operator_name(node) for node in module.graph.nodes}
    torch.testing.assert_close(module(FRAMES), model(FRAMES))


def test_attention_with_dropout_stays() -> None:
    module = torch.export.export(Attention(dropout_p=0.5), (FRAMES,)).module()
    assert decompose_attention(module) == 0


def test_a_mask_computed_at_run_time_and_shared_keys() -> None:
    class Grouped(nn.Module):
        def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            return nn.functional.scaled_dot_product_attention(
                torch.cat([x, x + 1], 1), x, x * 2, attn_mask=mask, enable_gqa=True
            )

    inputs = (FRAMES.reshape(2, 1, 5, 6), LOWER)
    module = torch.export.export(Grouped(), inputs).module()
    assert decompose_attention(module) == 1
    module.graph.lint()
    module.recompile()
    torch.testing.assert_close(module(*inputs), Grouped()(*inputs), rtol=1e-5, atol=1e-4)


def test_recurrent_dropout_in_training_stays() -> None:
    module = torch.export.export(Recurrent(nn.GRU(6, 4, 2, dropout=0.5, batch_first=True)).train(), (FRAMES,)).module()
    assert decompose_gru(module) == 0
