"""LSTM, GRU and RNN in ONNX's gate order.

Layers that equal torch's become torch layers, which the quantizer supports. Others (peepholes, other activations, clipping,
sequences of different lengths, a GRU that resets before its product) are unrolled step by step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.nn import functional

from openneutron.errors import FormatError
from openneutron.onnx.ops import converts

if TYPE_CHECKING:
    from openneutron.onnx.call import Call

# ONNX's gates → torch's: LSTM i o f c → i f c o; GRU z r h → r z h.
_ORDER = {"LSTM": (0, 2, 3, 1), "GRU": (1, 0, 2), "RNN": (0,)}
_DEFAULTS = {"LSTM": ("Sigmoid", "Tanh", "Tanh"), "GRU": ("Sigmoid", "Tanh"), "RNN": ("Tanh",)}
Activation = Callable[[torch.Tensor], torch.Tensor]


@dataclass
class _Layer:
    """One call: its tensors in torch's gate order, one entry per direction."""

    kind: str
    x: torch.Tensor  # [time, batch, features]
    weights: list[torch.Tensor]
    recurrent: list[torch.Tensor]
    biases: list[tuple[torch.Tensor, torch.Tensor] | None]
    hidden: list[torch.Tensor | None]
    cell: list[torch.Tensor | None]
    peepholes: list[torch.Tensor | None]
    lengths: list[int] | None
    direction: str
    size: int

    @property
    def backwards(self) -> list[bool]:
        """Whether each direction runs backwards."""
        return {"forward": [False], "reverse": [True], "bidirectional": [False, True]}[self.direction]


def _reorder_gates(call: Call, index: int, kind: str, at: int, size: int, part: int | None = None) -> torch.Tensor:
    """Return a direction's weights or one half of its biases, with gates in torch's order."""
    data = call.value(index).data
    if data is None:
        return _gates(call.tensor(index)[at], kind, size, part)
    return call.constant(lambda: _gates(data[at], kind, size, part))


def _gates(one: torch.Tensor, kind: str, size: int, part: int | None) -> torch.Tensor:
    if part is not None:
        one = one[part * len(_ORDER[kind]) * size : (part + 1) * len(_ORDER[kind]) * size]
    gates = [one[gate * size : (gate + 1) * size] for gate in _ORDER[kind]]
    return torch.cat(gates) if len(gates) > 1 else gates[0]


def _state(call: Call, index: int, at: int, batch_first: bool) -> torch.Tensor | None:
    if not call.has(index):
        return None
    whole = call.tensor(index)
    return whole[:, at] if batch_first else whole[at]


def _read(call: Call, kind: str) -> _Layer:
    batch_first = bool(call.attribute("layout", 0))
    x = call.tensor(0)
    if x.dim() != 3:
        raise FormatError(
            f"its input has the shape {list(x.shape)}, not three dimensions", hint="export the model again"
        )
    x = x.transpose(0, 1) if batch_first else x
    direction = call.text("direction", "forward", ("forward", "reverse", "bidirectional"))
    count = 2 if direction == "bidirectional" else 1
    size = int(call.attribute("hidden_size", 0)) or call.shape(2)[-1]
    lengths = call.numbers(4) if call.has(4) else None
    if lengths is not None and all(length == x.shape[0] for length in lengths):
        lengths = None
    layer = _Layer(kind, x, [], [], [], [], [], [], lengths, direction, size)
    for at in range(count):
        layer.weights.append(_reorder_gates(call, 1, kind, at, size))
        layer.recurrent.append(_reorder_gates(call, 2, kind, at, size))
        both = (
            (_reorder_gates(call, 3, kind, at, size, 0), _reorder_gates(call, 3, kind, at, size, 1))
            if call.has(3)
            else None
        )
        layer.biases.append(both)
        layer.hidden.append(_state(call, 5, at, batch_first))
        layer.cell.append(_state(call, 6, at, batch_first) if kind == "LSTM" else None)
        layer.peepholes.append(call.tensor(7)[at] if kind == "LSTM" and call.has(7) else None)
    return layer


def _activations(call: Call, kind: str, count: int) -> list[list[Activation]]:
    names = [str(one) for one in call.attribute("activations") or _DEFAULTS[kind] * count]
    alphas, betas = list(call.attribute("activation_alpha") or ()), list(call.attribute("activation_beta") or ())
    made: list[Activation] = []
    for name in names:
        made.append(_activation(call, name, alphas, betas))
    each = len(_DEFAULTS[kind])
    if len(made) != each * count:
        raise FormatError(f"it has {len(made)} activations, not {each * count}", hint="export the model again")
    return [made[at * each : (at + 1) * each] for at in range(count)]


def _activation(call: Call, name: str, alphas: list[float], betas: list[float]) -> Activation:
    def take(numbers: list[float], default: float) -> float:
        return float(numbers.pop(0)) if numbers else default

    plain: dict[str, Activation] = {
        "sigmoid": torch.sigmoid, "tanh": torch.tanh, "relu": torch.relu, "softsign": functional.softsign,
        "softplus": functional.softplus,
    }  # fmt: skip
    key = name.lower()
    if key in plain:
        return plain[key]
    if key == "affine":
        a, b = take(alphas, 1.0), take(betas, 0.0)
        return lambda x: x * a + b
    if key == "leakyrelu":
        a = take(alphas, 0.01)
        return lambda x: functional.leaky_relu(x, a)
    if key == "thresholdedrelu":
        a = take(alphas, 1.0)
        return lambda x: functional.threshold(x, a, 0.0)
    if key == "scaledtanh":
        a, b = take(alphas, 1.0), take(betas, 1.0)
        return lambda x: torch.tanh(x * b) * a
    if key == "hardsigmoid":
        a, b = take(alphas, 0.2), take(betas, 0.5)
        return lambda x: torch.clamp(x * a + b, 0.0, 1.0)
    if key == "elu":
        a = take(alphas, 1.0)
        return lambda x: functional.elu(x, a)
    raise call.refuse(f"its activation is {name}", "use Sigmoid, Tanh or Relu")


def _torch_supports(call: Call, layer: _Layer) -> bool:
    """Return whether one of torch's layers computes the same."""
    names = [str(one).lower() for one in call.attribute("activations") or ()]
    usual = [one.lower() for one in _DEFAULTS[layer.kind]] * len(layer.weights)
    if layer.kind == "RNN" and names and set(names) == {"relu"}:
        names = usual
    resets_after = layer.kind != "GRU" or bool(call.attribute("linear_before_reset", 0))
    return (
        (not names or names == usual) and call.attribute("clip") is None and layer.lengths is None
        and not call.attribute("input_forget", 0) and all(one is None for one in layer.peepholes) and resets_after
        and layer.direction != "reverse" and all((one is None) == (layer.biases[0] is None) for one in layer.biases)
    )  # fmt: skip


def _by_torch(call: Call, layer: _Layer) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
    """Return (outputs [time, batch, directions · size], last hidden, last cell) of torch's layer."""
    count, batch = len(layer.weights), layer.x.shape[1]
    parameters: list[torch.Tensor] = []
    for at in range(count):
        parameters += [layer.weights[at], layer.recurrent[at], *(layer.biases[at] or ())]
    zeros = layer.x.new_zeros(count, batch, layer.size)
    hidden = zeros if layer.hidden[0] is None else torch.stack([one for one in layer.hidden if one is not None])
    settings = (parameters, layer.biases[0] is not None, 1, 0.0, False, count == 2, False)
    if layer.kind == "LSTM":
        cell = zeros if layer.cell[0] is None else torch.stack([one for one in layer.cell if one is not None])
        y, h, c = torch.lstm(layer.x, [hidden, cell], *settings)
        return y, h, c
    relu = [str(one).lower() for one in call.attribute("activations") or ()][:1] == ["relu"]
    function: Any = torch.gru if layer.kind == "GRU" else torch.rnn_relu if relu else torch.rnn_tanh
    y, h = function(layer.x, hidden, *settings)
    return y, h, None


def _by_steps(call: Call, layer: _Layer) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
    """Return the results of a recurrent layer from unrolled steps."""
    clip = call.attribute("clip")
    count = len(layer.weights)
    activations = _activations(call, layer.kind, count)
    outputs, hiddens, cells = [], [], []
    for at, backward in enumerate(layer.backwards):
        state = _Steps(call, layer, at, activations[at], None if clip is None else float(clip))
        times = range(layer.x.shape[0])
        made: dict[int, torch.Tensor] = {}
        for time in reversed(times) if backward else times:
            made[time] = state.step(time)
        outputs.append(torch.stack([made[time] for time in times]))
        hiddens.append(state.hidden)
        cells.append(state.cell)
    y = torch.cat(outputs, -1) if count > 1 else outputs[0]
    return y, torch.stack(hiddens), torch.stack(cells) if layer.kind == "LSTM" else None


class _Steps:
    """One direction of a layer, computed step by step."""

    def __init__(self, call: Call, layer: _Layer, at: int, functions: list[Activation], clip: float | None) -> None:
        self.call, self.layer, self.at, self.functions, self.clip = call, layer, at, functions, clip
        shape = (layer.x.shape[1], layer.size)
        given, cell = layer.hidden[at], layer.cell[at]
        self.hidden = layer.x.new_zeros(shape) if given is None else given
        self.cell = layer.x.new_zeros(shape) if cell is None else cell
        both = layer.biases[at]
        self.bias = None if both is None else both[0]
        self.recurrent_bias = None if both is None else both[1]

    def step(self, time: int) -> torch.Tensor:
        """Return the output of one step and advance the state; past the end of a sequence the state is kept and the
        output is 0.
        """
        x = self.layer.x[time]
        hidden, cell = {"LSTM": self._lstm, "GRU": self._gru, "RNN": self._rnn}[self.layer.kind](x)
        out = hidden
        lengths = self.layer.lengths
        if lengths is not None:
            alive = self.call.constant(np.array([[time < length] for length in lengths]))
            hidden = torch.where(alive, hidden, self.hidden)
            cell = torch.where(alive, cell, self.cell)
            out = torch.where(alive, out, torch.zeros_like(out))
        self.hidden, self.cell = hidden, cell
        return out

    def _clip(self, x: torch.Tensor) -> torch.Tensor:
        return x if self.clip is None else torch.clamp(x, -self.clip, self.clip)

    def _sums(self, x: torch.Tensor) -> torch.Tensor:
        weight, recurrent = self.layer.weights[self.at], self.layer.recurrent[self.at]
        return functional.linear(x, weight, self.bias) + functional.linear(self.hidden, recurrent, self.recurrent_bias)

    def _rnn(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.functions[0](self._clip(self._sums(x))), self.cell

    def _lstm(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        f, g, h = self.functions
        i, forget, c, o = self._sums(x).chunk(4, -1)
        peephole = self.layer.peepholes[self.at]
        if peephole is not None:
            p_i, p_o, p_f = peephole.chunk(3, -1)
            i, forget = i + p_i * self.cell, forget + p_f * self.cell
        i = f(self._clip(i))
        forget = 1 - i if self.call.attribute("input_forget", 0) else f(self._clip(forget))
        cell = forget * self.cell + i * g(self._clip(c))
        if peephole is not None:
            o = o + p_o * cell
        return f(self._clip(o)) * h(cell), cell

    def _gru(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        f, g = self.functions
        size, weight, recurrent = self.layer.size, self.layer.weights[self.at], self.layer.recurrent[self.at]
        r_x, z_x, n_x = functional.linear(x, weight, self.bias).chunk(3, -1)
        bias = self.recurrent_bias
        gates = functional.linear(self.hidden, recurrent[: 2 * size], None if bias is None else bias[: 2 * size])
        r_h, z_h = gates.chunk(2, -1)
        r, z = f(self._clip(r_x + r_h)), f(self._clip(z_x + z_h))
        last = None if bias is None else bias[2 * size :]
        if self.call.attribute("linear_before_reset", 0):
            n = n_x + r * functional.linear(self.hidden, recurrent[2 * size :], last)
        else:
            n = n_x + functional.linear(r * self.hidden, recurrent[2 * size :], last)
        return (1 - z) * g(self._clip(n)) + z * self.hidden, self.cell


def _convert(kind: str) -> Callable[[Call], tuple[torch.Tensor, ...]]:
    def convert(call: Call) -> tuple[torch.Tensor, ...]:
        layer = _read(call, kind)
        compute = _by_torch if _torch_supports(call, layer) else _by_steps
        y, hidden, cell = compute(call, layer)
        time, batch, count = layer.x.shape[0], layer.x.shape[1], len(layer.weights)
        y = y.reshape(time, batch, count, layer.size)  # torch concatenates directions
        if call.attribute("layout", 0):
            results = [y.permute(1, 0, 2, 3), hidden.transpose(0, 1), None if cell is None else cell.transpose(0, 1)]
        else:
            results = [y.permute(0, 2, 1, 3), hidden, cell]
        return tuple(one for one in results if one is not None)

    return convert


for _kind in _ORDER:
    converts(_kind)(_convert(_kind))
