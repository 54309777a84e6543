"""Profiled programs in ExecuTorch's Inspector: every kernel call leads back to the PyTorch operators and lines it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import executorch.kernels.quantized  # noqa: F401  registers what to_executorch needs
import pytest
import torch
from executorch.devtools import Inspector
from executorch.exir import to_edge_transform_and_lower
from torch import Tensor, nn
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

from openneutron.executorch import (
    NeutronPartitioner,
    NeutronQuantizer,
    NeutronTargetSpec,
    generate_neutron_compile_spec,
)
from openneutron.executorch.run.profiling import kernel_rows, parse_metadata
from openneutron.executorch.run.runtime import LoadedProgram
from openneutron.machine import targets

TARGET = "imxrt700"
BATCH = 2


class Net(nn.Module):
    """Fused and single operators; the tanh is kept on the CPU, so that there are two delegates."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU())
        self.pool = nn.MaxPool2d(2)
        self.deep = nn.Conv2d(8, 8, 3, padding=1, groups=8)
        self.head = nn.Conv2d(8, 4, 1)
        self.fc = nn.Linear(64, 10)

    def forward(self, x: Tensor) -> Tensor:
        y = self.pool(self.stem(x))
        z = torch.sigmoid(self.deep(y)) + y
        z = torch.tanh(z)
        return torch.softmax(self.fc(self.head(z).flatten(1)), -1)


# kernel, what it is made of, where, a line of the source, multiplications
EXPECTED = [
    ("conv2d:0", {"aten.convolution", "aten.relu"}, {"stem.0", "stem.2"}, "F.relu", BATCH * 8 * 8 * 8 * 27),
    ("max_pool2d:1", {"aten.max_pool2d_with_indices"}, {"pool"}, "F.max_pool2d", 0),
    ("depthwise_conv2d:2", {"aten.convolution", "aten.sigmoid"}, {"deep", ""}, "z = torch.sigmoid(self.deep(y)) + y",
     BATCH * 4 * 4 * 8 * 9),
    ("add:3", {"aten.add"}, {""}, "z = torch.sigmoid(self.deep(y)) + y", 0),
    ("conv2d:0", {"aten.convolution"}, {"head"}, "self._conv_forward", BATCH * 4 * 4 * 4 * 8),
    ("fully_connected", {"aten.addmm", "aten.permute_copy"}, {"fc"}, "F.linear", BATCH * 10 * 64),
    ("softmax", {"aten._softmax"}, {""}, "torch.softmax", 0),
]  # fmt: skip


def profiled(model: nn.Module, x: Tensor, folder: Path, **options: Any) -> Inspector:
    """One profiled run through the stock flow, with its own ETRecord."""
    target = NeutronTargetSpec(TARGET)
    prepared = prepare_pt2e(torch.export.export(model.eval(), (x,)).module(), NeutronQuantizer(target))
    prepared(x)
    program = torch.export.export(convert_pt2e(prepared), (x,))
    spec = generate_neutron_compile_spec(TARGET, use_profiling=True, **options)
    edge = to_edge_transform_and_lower(program, partitioner=[NeutronPartitioner(spec, target)], generate_etrecord=True)
    made = edge.to_executorch()
    made.get_etrecord().save(str(folder / "etrecord.bin"))
    loaded = LoadedProgram(made.buffer, where="net.pte", etdump=True)
    loaded.run(x)
    loaded.run(x)
    loaded.write_etdump(folder / "run.etdp")
    return Inspector(
        etdump_path=str(folder / "run.etdp"),
        etrecord=str(folder / "etrecord.bin"),
        delegate_metadata_parser=parse_metadata,
    )


@pytest.fixture(scope="module")
def inspector(tmp_path_factory: pytest.TempPathFactory) -> Inspector:
    torch.manual_seed(0)
    x = torch.randn(BATCH, 3, 8, 8)
    return profiled(Net(), x, tmp_path_factory.mktemp("profile"), operators_not_to_delegate=["aten.tanh.default"])


@pytest.fixture(scope="module")
def events(inspector: Inspector) -> list[Any]:
    return [event for block in inspector.event_blocks for event in block.events if event.is_delegated_op]


def _own(event: Any) -> dict[str, str]:
    """Nodes behind an event and their operators, without the quantize and dequantize nodes that share their handles."""
    nodes = dict(zip(event.module_hierarchy, event.op_types, strict=True))
    return {node: operator for node, operator in nodes.items() if not operator.startswith("quantized_decomposed")}


def test_kernels_are_named_in_the_order_they_ran(events: list[Any]) -> None:
    names = [event.name for event in events]
    layers = [name for name in names if name.split(":")[0] not in ("copy", "requantize")]
    assert [name.split(":")[0] for name in layers] == [row[0].split(":")[0] for row in EXPECTED], names
    assert names[0] == "conv2d:0" and names.count("conv2d:0") == 2  # each delegate counts its own nodes


@pytest.mark.parametrize("index", range(len(EXPECTED)), ids=[row[0].replace(":", "_") for row in EXPECTED])
def test_a_call_leads_back_to_its_operators_and_lines(events: list[Any], index: int) -> None:
    calls = [event for event in events if event.name.split(":")[0] not in ("copy", "requantize")]
    event, (_, operators, modules, line, macs) = calls[index], EXPECTED[index]
    own = _own(event)
    assert {operator.rsplit(".", 1)[0] for operator in own.values()} == operators
    paths = {list(event.module_hierarchy[node].values())[-1][0] for node in own}
    assert paths == modules
    traces = [event.stack_traces[node] for node in own]
    assert any(line in trace for trace in traces), traces
    assert event.delegate_debug_metadatas["macs"] == macs


def test_times_are_the_target_s_and_details_are_cycles(events: list[Any]) -> None:
    clock = targets.load(TARGET).clock_hz
    for event in events:
        details = event.delegate_debug_metadatas
        assert details["cycles"] > 0 and details["bytes"] > 0
        assert len(event.perf_data.raw) == 2  # runs
        for milliseconds in event.perf_data.raw:
            assert milliseconds == pytest.approx(details["cycles"] / clock * 1e3, abs=2e-6)  # whole nanoseconds


def test_calls_of_one_delegate_share_a_timeline(events: list[Any]) -> None:
    starts = [event.delegate_debug_metadatas["start"] for event in events]
    first = [at for at, start in enumerate(starts) if start == 0]
    assert len(first) == 2  # one for each delegate
    for begin, end in zip(first, [*first[1:], len(events)], strict=True):
        at = 0.0
        for event in events[begin:end]:
            assert event.delegate_debug_metadatas["start"] == at
            at += event.delegate_debug_metadatas["cycles"]


def test_borders_belong_to_no_call(events: list[Any]) -> None:
    """The program's own quantize, which stays on the CPU, is behind no kernel."""
    for event in events:
        assert _own(event), f"{event.name} is made of {event.op_types}"


def test_rows_sum_up_the_calls(inspector: Inspector, events: list[Any]) -> None:
    rows = kernel_rows(inspector)
    assert [row.name for row in rows] == [event.name for event in events]  # one call each in this model
    assert len({row.delegate for row in rows}) == 2
    assert rows[0].operators == ("aten.convolution.default", "aten.relu.default")
    assert rows[0].sources[1] == "return F.relu(input, inplace=self.inplace)"
    assert rows[0].macs == BATCH * 8 * 8 * 8 * 27
    assert sum(row.cycles for row in rows) == sum(event.delegate_debug_metadatas["cycles"] for event in events)


def test_every_call_of_a_streamed_kernel_is_an_event(tmp_path: Path) -> None:
    """Inspector keeps one event of a name in a run, so each call needs its own."""
    torch.manual_seed(1)
    model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 8, 3, padding=1))
    found = profiled(model, torch.randn(1, 3, 48, 48), tmp_path)
    first, pool, last = kernel_rows(found)
    assert first.calls > 1 and pool.calls > 1
    assert first.macs == 48 * 48 * 8 * 27 and last.macs == 24 * 24 * 8 * 72
    assert first.operators == ("aten.convolution.default", "aten.relu.default")
    events = [event for block in found.event_blocks for event in block.events if event.is_delegated_op]
    assert len({event.name for event in events}) == len(events) == first.calls + pool.calls + last.calls
    assert all(_own(event) for event in events)
    rows = [int(e.delegate_debug_metadatas["rows"]) for e in events if e.name.split(".")[0] == first.name]
    assert sum(rows) == 48


def test_copies_are_events_of_no_operator(tmp_path: Path) -> None:
    torch.manual_seed(2)
    model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1))
    found = profiled(model, torch.randn(1, 3, 12, 12), tmp_path, fetch_constants_to_sram=True)
    rows = {row.name.partition(":")[0]: row for row in kernel_rows(found)}
    assert set(rows) == {"conv2d", "dma"}
    assert rows["dma"].calls > 1 and rows["dma"].macs == 0 and rows["dma"].cycles > 0
    assert rows["dma"].bytes >= 8 * 27 + 8 * 72  # the weights
    assert rows["dma"].operators == () and rows["conv2d"].operators
