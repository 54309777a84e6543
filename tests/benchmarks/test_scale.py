"""The benchmark of large decoders, on a tiny one: weights from its file, one graph, figures that fit together."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import openneutron as on
from benchmarks.decoder_network import Decoder
from benchmarks.scale import SHAPES, Memory, Shape, compile_decoder, write_weights

TINY = Shape(64, 1, 2, 1, 96, 128, 16)


def test_a_decoder_is_one_graph_with_figures(tmp_path: Path) -> None:
    found = compile_decoder(TINY, tmp_path, activations="int16")
    path = tmp_path / "model.safetensors"
    header = 8 + int.from_bytes(path.read_bytes()[:8], "little")
    assert found["graphs"] == 1 and found["float_bytes"] == path.stat().st_size - header
    assert 0 < found["own"] <= found["resident"] and 0 < found["pte"] < found["float_bytes"]


def test_a_cache_makes_a_token_depend_on_those_before(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = Decoder(TINY)
    write_weights(model, tmp_path / "model.safetensors")
    results = []
    for first in (3, 4):
        on.load_weights(model, tmp_path)
        model.set_tables()
        with torch.no_grad():
            model(torch.tensor([[first]]), torch.tensor([0]))
            results.append(model(torch.tensor([[5]]), torch.tensor([1])))
    assert results[0].shape == (1, 1, TINY.vocabulary) and not torch.allclose(*results)


def test_a_peak_stays() -> None:
    memory = Memory()
    with memory.watch():
        block = bytearray(b"x" * (64 << 20))
        memory.look()
        del block
    assert memory.own <= memory.resident and memory.own > 64 << 20


@pytest.mark.parametrize(("name", "millions"), [("5m", 5), ("30m", 30), ("150m", 150), ("450m", 450), ("1.1b", 1100)])
def test_sizes_have_the_parameters_of_their_names(name: str, millions: int) -> None:
    with torch.device("meta"):
        count = sum(one.numel() for one in Decoder(SHAPES[name]).parameters())
    assert count / 1e6 == pytest.approx(millions, rel=0.4)
