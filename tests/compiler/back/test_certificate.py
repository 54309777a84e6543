"""The certificate says what the schedule is, deterministically, and is only made on request."""

from __future__ import annotations

import hashlib
import json

from openneutron.convert import convert
from openneutron.litert.read import read_model
from openneutron.microcode.graph_op import blocks_of, is_graph_op
from openneutron.options import Options
from tests import tiny
from tests.compiler.networks import random_network


def test_only_on_request_and_always_the_same() -> None:
    model, _ = random_network(3)
    assert "certificate.json" not in convert(model, Options()).intermediates
    first, second = (convert(model, Options(certificate=True)) for _ in range(2))
    assert first.intermediates["certificate.json"] == second.intermediates["certificate.json"]
    assert first.model == second.model == convert(model, Options()).model


def test_one_graph_per_neutron_graph_with_the_digests_of_its_blocks() -> None:
    result = convert(tiny.sandwich(), Options(certificate=True, source="sandwich"))
    document = json.loads(result.intermediates["certificate.json"])
    graph = read_model(result.model).main
    compiled = [blocks_of(graph, op, outputs=0) for op in graph.operators if is_graph_op(op)]
    assert document["source"] == "sandwich" and len(document["graphs"]) == len(compiled) > 0
    for part, blocks in zip(document["graphs"], compiled, strict=True):
        assert part["digests"]["microcode"] == hashlib.sha256(blocks.microcode).hexdigest()
        assert part["digests"]["weights"] == hashlib.sha256(blocks.weights).hexdigest()


def test_scratch_and_outputs_are_those_of_the_report() -> None:
    model, _ = random_network(5)
    result = convert(model, Options(certificate=True))
    (part,) = json.loads(result.intermediates["certificate.json"])["graphs"]
    assert part["regions"]["scratch"] == result.report.totals.scratch_bytes
    ends = [size for name, size in part["regions"].items() if name.startswith(("input", "output"))]
    assert sum(ends) == result.report.totals.io_bytes
