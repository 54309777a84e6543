"""Checks a schedule certificate. Stand-alone on purpose: standard library only, no line shared with the compiler.

    python -m openneutron.certify.checker certificate.json

Memory is a map of intervals: these bytes hold those bytes of that tensor. Calls are replayed one by one; every read must find
exactly the bytes the node is promised, every write replaces what was there, copies are in flight until waited for. A ring too
short, calls in the wrong order, a buffer in the wrong place or a missing wait all end in a read that finds something else.
"""

from __future__ import annotations

import json
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

FORMAT = "openneutron schedule certificate"
VERSION = 1
MOST_ROWS = 20_000_000  # rows visited before giving up: a hundred times the largest model known, minutes of work
WEIGHTS = -1  # the "tensor" whose bytes are the weights block
NOTHING = -2  # bytes that hold no tensor: unwritten, workspace, or a copy under way

Span = tuple[int, int, int]  # address in a region, position in a tensor, length
Place = tuple[str, int, int, int]  # region, address, length, and the row that lies there (-1: no row)


class Refused(ValueError):
    """The certificate does not prove its schedule; the message says which step fails and why."""


@dataclass(frozen=True)
class Proof:
    """What was replayed: kernel calls that made rows, copies, and rows read or written."""

    graphs: int
    calls: int
    copies: int
    rows: int


class Memory:
    """One region: disjoint intervals in order; byte `a` of interval i holds byte a + shift of a tensor."""

    def __init__(self, name: str, size: int) -> None:
        self.name, self.size = name, size
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.tensors: list[int] = []
        self.shifts: list[int] = []

    def inside(self, start: int, length: int, who: str) -> None:
        if start < 0 or length < 0 or start + length > self.size:
            raise Refused(f"{who}: bytes {start} to {start + length} leave {self.name} of {self.size}")

    def write(self, start: int, length: int, tensor: int, position: int, who: str) -> None:
        """Bytes [start, start + length) now hold the tensor's bytes from `position` on."""
        self.inside(start, length, who)
        if not length:
            return
        end, shift = start + length, position - start
        low, high = bisect_right(self.ends, start), bisect_left(self.starts, end)
        pieces = []
        if low < high and self.starts[low] < start:
            pieces.append((self.starts[low], start, self.tensors[low], self.shifts[low]))
        pieces.append((start, end, tensor, shift))
        if low < high and self.ends[high - 1] > end:
            pieces.append((end, self.ends[high - 1], self.tensors[high - 1], self.shifts[high - 1]))
        if low and pieces[0][0] == start and self._joins(low - 1, start, tensor, shift):
            low -= 1
            pieces[0] = (self.starts[low], end, tensor, shift)
        for column, at in ((self.starts, 0), (self.ends, 1), (self.tensors, 2), (self.shifts, 3)):
            column[low:high] = [piece[at] for piece in pieces]

    def _joins(self, at: int, start: int, tensor: int, shift: int) -> bool:
        return self.ends[at] == start and self.tensors[at] == tensor and self.shifts[at] == shift

    def holds(self, start: int, length: int, tensor: int, position: int) -> bool:
        """Whether bytes [start, start + length) hold the tensor's bytes from `position` on."""
        end, shift = start + length, position - start
        at = bisect_right(self.ends, start)
        while start < end:
            if at == len(self.starts) or self.starts[at] > start:
                return False
            if self.tensors[at] != tensor or self.shifts[at] != shift:
                return False
            start, at = self.ends[at], at + 1
        return True

    def pieces(self, start: int, length: int) -> list[tuple[int, int, int, int]]:
        """(start, length, tensor, position) of what lies in [start, start + length)."""
        found, end = [], start + length
        at = bisect_right(self.ends, start)
        while at < len(self.starts) and self.starts[at] < end:
            low, high = max(self.starts[at], start), min(self.ends[at], end)
            found.append((low, high - low, self.tensors[at], low + self.shifts[at]))
            at += 1
        return found


@dataclass
class Pending:
    """A copy under way: both ends must be left alone until its channel is waited for."""

    channel: int
    source: tuple[str, int, int]
    target: tuple[str, int, int]
    arriving: list[tuple[int, int, int, int]]  # (address, length, tensor, position)


@dataclass
class Replay:
    """The state of one graph's memory while its plan runs."""

    graph: dict[str, Any]
    memory: dict[str, Memory] = field(default_factory=dict)
    pending: list[Pending] = field(default_factory=list)
    made: dict[int, list[tuple[int, int]]] = field(default_factory=dict)  # node → rows made, as intervals
    calls: int = 0
    copies: int = 0
    rows: int = 0

    def start(self) -> None:
        """Regions as a run finds them: inputs and weights filled, everything else unknown."""
        for name, size in self.graph["regions"].items():
            self.memory[name] = Memory(name, size)
        weights = self.memory["weights"]
        weights.write(0, weights.size, WEIGHTS, 0, "weights")
        for k, value in enumerate(self.graph["inputs"]):
            region = self.memory[f"input {k}"]
            region.write(0, region.size, self.graph["values"][value]["place"]["root"], 0, region.name)
        for state in self.graph.get("states", []):
            self._state(state, "before", write=True)
        limits = self.graph["limits"]
        if self.memory["scratch"].size + self.memory["prefetch"].size > limits["sram"]:
            raise Refused(f"scratch and prefetch exceed the target's {limits['sram']} bytes")
        if self.memory["tcm"].size > limits["tcm"]:
            raise Refused(f"the TCM buffers exceed the target's {limits['tcm']} bytes")
        for buffer in self.graph["buffers"]:
            self.memory[buffer["region"]].inside(buffer["offset"], buffer["bytes"], f"buffer {buffer['name']}")
            if buffer["offset"] % self.graph["alignment"]:
                raise Refused(f"buffer {buffer['name']} starts at {buffer['offset']}, off the alignment")

    def finish(self) -> None:
        """Outputs are complete, inputs and weights are as they were, and no copy was forgotten."""
        if self.pending:
            raise Refused("a copy was never waited for")
        ends = [("output", k, value) for k, value in enumerate(self.graph["outputs"])]
        ends += [("input", k, value) for k, value in enumerate(self.graph["inputs"])]
        for kind, k, value in ends:
            region = self.memory[f"{kind} {k}"]
            root = self.graph["values"][value]["place"]["root"]
            if not region.holds(0, region.size, root, 0):
                raise Refused(f"{region.name} does not hold {self.graph['values'][root]['name']} at the end")

        for state in self.graph.get("states", []):
            self._state(state, "after", write=False)

    def _state(self, state: dict[str, Any], when: str, *, write: bool) -> None:
        """Fill a state with the tensor it holds before a run, or look for the one it must hold after it."""
        value = self.graph["values"][state[when]]
        size = value["images"] * value["rows"] * value["pixels"] * value["pixel_bytes"]
        region, root = self.memory["state"], value["place"]["root"]
        if write:
            region.write(state["offset"], size, root, 0, f"state {state['name']}")
        elif not region.holds(state["offset"], size, root, 0):
            raise Refused(f"state {state['name']} does not hold {value['name']} at the end")

    def step(self, task: dict[str, Any], iteration: int, who: str) -> None:
        if "call" in task:
            self.call(task, iteration, who)
        elif "copy" in task:
            self.copy(task, who)
        elif "wait" in task:
            self.wait(task["wait"], who)
        else:
            raise Refused(f"{who}: neither call, copy nor wait")

    def call(self, task: dict[str, Any], iteration: int, who: str) -> None:
        node = self.graph["nodes"][task["call"]]
        target = self.graph["values"][node["writes"]["value"]]
        wanted = task["first_row"] + iteration * task["row_step"]
        first, last = max(wanted, 0), min(wanted + task["rows"], target["rows"])
        if first >= last:
            return
        who = f"{who}, node {task['call']} ({node['kernel']}), rows {first} to {last}"
        self.calls += 1
        self._once(task["call"], first, last, who)
        seen: list[Place] = []
        shared: list[Place] = []  # may lie exactly where the same row of the output goes
        taken = {node["writes"]["operand"]}
        for read in node["reads"]:
            taken.add(read["operand"])
            operand = task["operands"][read["operand"]]
            value = self.graph["values"][read["value"]]
            found = self._read(operand, value, *_demand(read["rows"], first, last, value["rows"]), who)
            if read["in_place"]:
                shared += found
            else:
                seen += found
        for constant in node["constants"]:
            taken.add(constant["operand"])
            operand = task["operands"][constant["operand"]]
            region, at = self._address(operand)
            region.inside(at, constant["bytes"], who)
            if not region.holds(at, constant["bytes"], WEIGHTS, constant["offset"]):
                raise Refused(f"{who}: byte {at} of {region.name} does not hold the constant it reads")
            seen.append((region.name, at, constant["bytes"], -1))
        written = self._written(task, node, target, first, last, who)
        spare = [o for p, o in enumerate(task["operands"]) if o is not None and p not in taken]
        for operand in spare:  # workspace: its bytes are lost
            region, at = self._address(operand)
            self._writable(region, at, operand["pixel_bytes"], who)
            written.append((region.name, at, operand["pixel_bytes"], -1))
            region.write(at, operand["pixel_bytes"], NOTHING, 0, who)
        over = set(written)
        _apart([*seen, *(place for place in shared if place not in over)], written, who)

    def _once(self, node: int, first: int, last: int, who: str) -> None:
        rows = self.made.setdefault(node, [])
        at = bisect_left(rows, (first, last))
        if (at and rows[at - 1][1] > first) or (at < len(rows) and rows[at][0] < last):
            raise Refused(f"{who}: rows are made a second time")
        if at and rows[at - 1][1] == first:
            rows[at - 1] = (rows[at - 1][0], last)
        else:
            rows.insert(at, (first, last))

    def _read(self, operand: dict[str, int], value: dict[str, Any], low: int, high: int, who: str) -> list[Place]:
        region, _ = self._address(operand)
        constant = value["constant"]
        root, base = (value["place"]["root"], 0) if constant is None else (WEIGHTS, constant)
        found = []
        for row, (at, position, length) in self._spans(operand, value, low, high, who):
            region.inside(at, length, who)
            if not region.holds(at, length, root, base + position):
                raise Refused(f"{who}: byte {at} of {region.name} does not hold row {row} of {value['name']}")
            found.append((region.name, at, length, row))
        return found

    def _written(
        self, task: dict[str, Any], node: dict[str, Any], value: dict[str, Any], first: int, last: int, who: str
    ) -> list[Place]:
        operand = task["operands"][node["writes"]["operand"]]
        region, _ = self._address(operand)
        if value["running"] and first > 0:
            self._read(operand, value, first - 1, first, f"{who}, its own sum")
        found = []
        for row, (at, position, length) in self._spans(operand, value, first, last, who):
            self._writable(region, at, length, who)
            region.write(at, length, value["place"]["root"], position, who)
            found.append((region.name, at, length, row))
        return found

    def _spans(
        self, operand: dict[str, int], value: dict[str, Any], low: int, high: int, who: str
    ) -> Iterator[tuple[int, Span]]:
        """(row, span) of rows [low, high): one span per row where both sides are dense, else one per pixel."""
        place = value["place"]
        size, count = value["pixel_bytes"], value["pixels"]
        if operand["pixels"] * operand["pixel_bytes"] != count * size or operand["ring"] < 1:
            raise Refused(f"{who}: an operand's rows are not those of {value['name']}")
        dense = operand["pixel"] == operand["pixel_bytes"] and place["pixel"] == size
        if not dense and operand["pixels"] != count:
            raise Refused(f"{who}: merged pixels of {value['name']} are not dense")
        _, start = self._address(operand)
        for image in range(value["images"]):
            for row in range(low, high):
                self.rows += 1
                if self.rows > MOST_ROWS:
                    raise Refused(f"more than {MOST_ROWS} rows: not a schedule this checker can replay")
                at = start + image * operand["plane"] + row % operand["ring"] * operand["pitch"]
                position = place["offset"] + image * place["plane"] + row * place["pitch"]
                if dense:
                    yield row, (at, position, count * size)
                else:
                    for x in range(count):
                        yield row, (at + x * operand["pixel"], position + x * place["pixel"], size)

    def _address(self, operand: dict[str, int]) -> tuple[Memory, int]:
        buffer = self.graph["buffers"][operand["buffer"]]
        return self.memory[buffer["region"]], buffer["offset"] + operand["offset"]

    def _writable(self, region: Memory, at: int, length: int, who: str) -> None:
        if region.name == "weights" or region.name.startswith("input"):
            raise Refused(f"{who}: {region.name} is written")
        for copy in self.pending:
            for name, start, size in (copy.source, copy.target):
                if name == region.name and start < at + length and at < start + size:
                    raise Refused(f"{who}: byte {max(at, start)} of {region.name} is written while a copy uses it")

    def copy(self, task: dict[str, Any], who: str) -> None:
        ends = []
        for side in ("source", "target"):
            buffer = self.graph["buffers"][task[side]]
            region, at = self.memory[buffer["region"]], buffer["offset"] + task[f"{side}_offset"]
            region.inside(at, task["bytes"], who)
            ends.append((region, at))
        (source, low), (target, high) = ends
        self._writable(target, high, task["bytes"], who)
        arriving = [
            (high + at - low, n, tensor, position) for at, n, tensor, position in source.pieces(low, task["bytes"])
        ]
        target.write(high, task["bytes"], NOTHING, 0, who)
        self.pending.append(
            Pending(task["copy"], (source.name, low, task["bytes"]), (target.name, high, task["bytes"]), arriving)
        )
        self.copies += 1

    def wait(self, channel: int, who: str) -> None:
        done = [copy for copy in self.pending if copy.channel == channel]
        self.pending = [copy for copy in self.pending if copy.channel != channel]
        for copy in done:
            for at, length, tensor, position in copy.arriving:
                self.memory[copy.target[0]].write(at, length, tensor, position, who)


def _demand(rows: dict[str, int] | None, first: int, last: int, height: int) -> tuple[int, int]:
    """Rows [low, high) of an input that output rows [first, last) need."""
    if rows is None:
        return 0, height
    low = first * rows["stride"] // rows["divide"] - rows["before"]
    high = (last - 1) * rows["stride"] // rows["divide"] - rows["before"] + rows["extent"]
    return max(low, 0), min(max(high, 0), height)


def _apart(reads: list[Place], writes: list[Place], who: str) -> None:
    """No byte that a call reads may be among those it writes."""
    sides = ((reads, False), (writes, True))
    events = sorted((name, at, at + size, written) for side, written in sides for name, at, size, _ in side)
    ends: dict[tuple[str, bool], int] = {}
    for name, start, end, written in events:
        if ends.get((name, not written), -1) > start:
            raise Refused(f"{who}: byte {start} of {name} is read and written by the same call")
        ends[name, written] = max(ends.get((name, written), -1), end)


def check(document: dict[str, Any]) -> Proof:
    """Replay every graph of a certificate; raises `Refused` with the first step that fails.

    Example:
        >>> check(json.loads(Path("certificate.json").read_text())).calls
    """
    try:
        if document["format"] != FORMAT or document["version"] != VERSION:
            raise Refused(f"this is not version {VERSION} of an {FORMAT}")
        replays = []
        for number, graph in enumerate(document["graphs"]):
            replay = Replay(graph)
            replay.start()
            for at, task in enumerate(graph["tasks"]):
                who = f"graph {number}, task {at}"
                if "loop" in task:
                    for iteration in range(task["loop"]):
                        for step in task["body"]:
                            replay.step(step, iteration, f"{who}, iteration {iteration}")
                        if replay.calls == 0 and iteration > MOST_ROWS:
                            raise Refused(f"{who}: a loop that does nothing")
                else:
                    replay.step(task, 0, who)
            replay.finish()
            replays.append(replay)
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise Refused(f"the certificate is malformed ({type(error).__name__}: {error})") from None
    return Proof(
        len(replays), sum(r.calls for r in replays), sum(r.copies for r in replays), sum(r.rows for r in replays)
    )


def main(arguments: list[str]) -> int:
    """Check the files named; 0 when all are proved, 1 when one is refused, 2 when one cannot be read."""
    for name in arguments:
        try:
            with open(name, encoding="utf-8") as file:
                proof = check(json.load(file))
        except Refused as error:
            print(f"{name}: refused: {error}", file=sys.stderr)
            return 1
        except (OSError, ValueError) as error:
            print(f"{name}: cannot be read ({error})", file=sys.stderr)
            return 2
        print(f"{name}: proved, {proof.calls} calls and {proof.copies} copies over {proof.rows} rows")
    return 0 if arguments else 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
