"""Profiled runs in ExecuTorch's Inspector: what the delegate's events say, and their sums by kernel.

Example:
    >>> inspector = Inspector(etdump_path="run.etdp", etrecord="etrecord.bin", delegate_metadata_parser=parse_metadata)
    >>> for row in kernel_rows(inspector):
    ...     print(row.name, row.cycles, row.macs, row.operators)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

_BORDER = "quantized_decomposed"  # operators that share the debug handle of what they surround


@dataclass(frozen=True)
class KernelRow:
    """One kernel of one delegate, all its calls of a run together.

    `name` is `<kernel>:<L1 node>`, `delegate` tells delegates apart. `operators` and `sources` are the PyTorch operators
    behind it and their lines, without the quantize and dequantize nodes around them; empty without an ETRecord.
    """

    name: str
    delegate: int
    calls: int
    cycles: int
    milliseconds: float
    macs: int
    bytes: int
    operators: tuple[str, ...]
    sources: tuple[str, ...]


def parse_metadata(texts: Sequence[bytes | str]) -> dict[str, float]:
    """Numbers of one event: cycles, start, compute, memory, overhead, first_row, rows, macs, bytes.

    All runs of a program take the same cycles, so the first text stands for all. Hand this to Inspector as its
    `delegate_metadata_parser`.

    Example:
        >>> parse_metadata([b"cycles=217 start=5560 macs=0"])
        {'cycles': 217.0, 'start': 5560.0, 'macs': 0.0}
    """
    if not texts:
        return {}
    text = texts[0].decode() if isinstance(texts[0], bytes) else texts[0]
    return {key: float(value) for key, value in (item.split("=", 1) for item in text.split())}


def kernel_rows(inspector: Any) -> list[KernelRow]:
    """The delegates' events summed by kernel, in the order in which the kernels first ran.

    Example:
        >>> max(kernel_rows(inspector), key=lambda row: row.cycles).name
        'conv2d:0'
    """
    groups: dict[tuple[int, str], list[Any]] = {}
    for block in inspector.event_blocks:
        for event in block.events:
            if event.is_delegated_op:
                groups.setdefault((int(event._instruction_id), event.name.partition(".")[0]), []).append(event)
    return [_row(delegate, name, events) for (delegate, name), events in groups.items()]


def _row(delegate: int, name: str, events: list[Any]) -> KernelRow:
    details = [parse_metadata(event.raw_delegate_debug_metadatas) for event in events]
    nodes = dict(zip(events[0].module_hierarchy or {}, events[0].op_types or (), strict=True))
    own = {node: operator for node, operator in nodes.items() if not operator.startswith(_BORDER)}
    return KernelRow(
        name=name,
        delegate=delegate,
        calls=len(events),
        cycles=_total(details, "cycles"),
        milliseconds=float(sum(event.perf_data.avg for event in events if event.perf_data)),
        macs=_total(details, "macs"),
        bytes=_total(details, "bytes"),
        operators=tuple(own.values()),
        sources=tuple(_last_line((events[0].stack_traces or {}).get(node)) for node in own),
    )


def _total(details: Iterable[dict[str, float]], key: str) -> int:
    return int(sum(detail.get(key, 0) for detail in details))


def _last_line(trace: str | None) -> str:
    """The statement itself, which a trace has last."""
    lines = (trace or "").strip().splitlines()
    return lines[-1].strip() if lines else ""
