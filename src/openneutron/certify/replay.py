"""Replays microcode on tagged memory: each byte that a call reads must be the byte that the source's operator reads.

The checker trusts nothing that a call claims. It compares the call's kernel, parameters, constants and input bytes with the
operators of the source; a call that computes no rows of one of them is refused.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from openneutron.certify.kernels import RULES
from openneutron.certify.read.microcode import Call, Copy, Loop, Operand, Program, Wait
from openneutron.certify.refused import Refused
from openneutron.certify.tags import MOVING, NOTHING, constant, fill_tags, value_of
from openneutron.certify.world import Computation, World

MOST_BYTES = 1 << 28  # of one operand, gaps not counted
_WORK = 4096  # bytes that may be read and written for each byte of memory: bounds the time by the file's size, not by its loops
_LEAST_WORK = 1 << 22
_STEP = 64  # bytes that each instruction counts as, at least
# Window parameters that the firmware accepts; it refuses other values.
_FRAME = ("before_batch", "before_height", "before_width", "before_channels", "pad_top", "pad_left")
_WINDOW = ("kernel_h", "kernel_w", "stride_h", "stride_w", "dilation_h", "dilation_w")
_LIMITS = dict.fromkeys(_WINDOW, (1, 32_767)) | dict.fromkeys(_FRAME, (0, 1 << 30))
Interval = tuple[str, int, int, int]  # region, index, start, end


@dataclass
class Pending:
    """A copy that has started and that no wait has finished yet."""

    copy: Copy
    arriving: array[int]


@dataclass
class Machine:
    """The memory of one NeutronGraph while it runs."""

    program: Program
    world: World
    where: str
    regions: dict[tuple[str, int], array[int]] = field(default_factory=dict)
    pending: list[Pending] = field(default_factory=list)
    memo: dict[Any, Any] = field(default_factory=dict)
    reads: list[Interval] = field(default_factory=list)
    writes: list[tuple[Interval, array[int]]] = field(default_factory=list)
    calls: int = 0
    copies: int = 0
    work: int = 0
    most_work: int = _LEAST_WORK
    hints: dict[tuple[str, int], int] | None = None
    # Output → (start, end, byte of the call that wrote them).
    writers: dict[int, list[tuple[int, int, int]]] = field(default_factory=dict)

    def start(self, weights: bytes, inputs: list[array[int]], states: list[array[int]]) -> None:
        """Fill memory as at the start of a run; `states` are the tags of each state, undefined behind their end."""
        self.most_work = _LEAST_WORK + _WORK * sum(self.program.sizes.values())
        for key, size in self.program.sizes.items():
            self.regions[key] = constant(weights) if key[0] == "weights" else fill_tags(NOTHING, size)
        for index, tags in enumerate(inputs):
            if self.program.sizes.get(("input", index)) != len(tags):
                raise Refused(f"input {index} has {len(tags)} bytes")
            self.regions["input", index] = array("Q", tags)
        for state, tags in zip(self.program.states, states, strict=True):
            self.regions["state", 0][state.offset : state.offset + len(tags)] = tags

    def run(self) -> None:
        """Execute all instructions in order."""
        for item in self.program.steps:
            if isinstance(item, Loop):
                for iteration in range(item.iterations):
                    for step in item.body:
                        self.step(step, iteration)
            else:
                self.step(item, 0)
        if self.pending:
            raise Refused("a copy is never waited for", self.pending[0].copy.at)

    def step(self, step: Call | Copy | Wait, iteration: int) -> None:
        """Execute one instruction."""
        self.spend(step.at, _STEP)
        if isinstance(step, Call):
            self.call(step, iteration)
        elif isinstance(step, Copy):
            self.copy(step)
        else:
            self.wait(step.channel)

    def copy(self, copy: Copy) -> None:
        """Start a copy; the content of its target is undefined until a wait."""
        self.copies += 1
        for (name, index, start), size in ((copy.source, copy.size), (copy.target, copy.size)):
            if start + size > self.program.sizes.get((name, index), 0):
                raise Refused(f"a copy leaves {name} {index}", copy.at)
        self.spend(copy.at, copy.size)
        name, index, start = copy.source
        arriving = self.regions[name, index][start : start + copy.size]
        name, index, start = copy.target
        target = (name, index, start, start + copy.size)
        self.check_writable(target, copy.at)
        self.regions[name, index][start : start + copy.size] = fill_tags(MOVING, copy.size)
        self.pending.append(Pending(copy, arriving))

    def wait(self, channel: int) -> None:
        """Finish all copies of a channel."""
        for one in self.pending:
            if one.copy.channel == channel:
                name, index, start = one.copy.target
                self.regions[name, index][start : start + one.copy.size] = one.arriving
                if name == "output":
                    self.writers.setdefault(index, []).append((start, start + one.copy.size, one.copy.at))
        self.pending = [one for one in self.pending if one.copy.channel != channel]

    def check_writable(self, place: Interval, at: int) -> None:
        """Refuse a write to a read-only region, or to bytes that a running copy uses."""
        name, index, start, end = place
        if name in ("input", "weights"):
            raise Refused(f"{name} is written", at)
        for one in self.pending:
            for other, number, first in (one.copy.source, one.copy.target):
                if (other, number) == (name, index) and first < end and start < first + one.copy.size:
                    raise Refused(f"byte {max(first, start)} of {name} is written while a copy uses it", at)

    def call(self, call: Call, iteration: int) -> None:
        """Match a call with a computation of the source and write its results to memory."""
        wanted = call.first_row + iteration * call.row_step
        first, last = max(wanted, 0), min(wanted + call.rows, call.output.height)
        if first >= last:
            return
        self.calls += 1
        rule = RULES.get(call.kernel)
        if rule is None:
            raise Refused(f"the checker has no rule for kernel {call.kernel}", call.at)
        if call.at not in self.memo:
            for role, operand in call.operands.items():
                self._inside(call, role, operand)
            for name, value in call.params.items():
                low, top = _LIMITS.get(name, (value, value))
                if not low <= value <= top:
                    raise Refused(f"{call.kernel}: {name} is {value}, not {low} to {top}", call.at)
            self.memo[call.at] = None
        self.reads, self.writes = [], []
        rule(self, call, first, last)
        self._commit(call)

    def _inside(self, call: Call, role: str, o: Operand) -> None:
        if not o.present:
            return
        size = self.program.sizes.get((o.region, o.index), 0)
        end = o.offset + o.channels * o.item
        if not RULES[call.kernel].flat:
            end += (o.batch - 1) * o.plane + (o.ring - 1) * o.pitch + (o.width - 1) * o.pixel
        if end > size:
            raise Refused(f"{call.kernel}: {role} ends at byte {end} of {o.region} with {size}", call.at)
        if o.batch * o.height * o.width * o.channels * o.item > MOST_BYTES:
            raise Refused(f"{call.kernel}: {role} has {o.shape} elements", call.at)
        if o.width > 1 and o.pixel < o.channels * o.item and not RULES[call.kernel].flat:
            raise Refused(f"{call.kernel}: pixels of {role} overlap", call.at)
        if o.ring > o.height and not RULES[call.kernel].flat:
            raise Refused(f"{call.kernel}: {role} holds {o.ring} rows of {o.height}", call.at)
        if any(one % o.item for one in (o.offset, o.plane, o.pitch, o.pixel)):
            raise Refused(f"{call.kernel}: {role} is not aligned", call.at)

    def _commit(self, call: Call) -> None:
        events = sorted([(*place, 0) for place in self.reads] + [(*place, 1) for place, _ in self.writes])
        ends: dict[tuple[str, int, int], int] = {}
        for name, index, start, end, written in events:
            if ends.get((name, index, 1 - written), -1) > start:
                text = f"byte {start} of {name} is read and written by the same call"
                raise Refused(f"{call.kernel}: {text}", call.at)
            if written and RULES[call.kernel].keeps and ends.get((name, index, 1), -1) > start:
                raise Refused(f"{call.kernel}: byte {start} of {name} is written twice", call.at)
            ends[name, index, written] = max(ends.get((name, index, written), -1), end)
        for place, tags in self.writes:
            if place[0] == "prefetch":
                raise Refused(f"{call.kernel}: constants that were fetched are written", call.at)
            self.check_writable(place, call.at)
            name, index, start, end = place
            self.regions[name, index][start:end] = tags
            if name == "output":
                self.writers.setdefault(index, []).append((start, end, call.at))

    # Methods for rules.

    def spend(self, at: int, count: int) -> None:
        """Add to the count of bytes read and written; refuse a file that exceeds its budget."""
        self.work += count
        if self.work > self.most_work:
            raise Refused(f"more work than {self.most_work} bytes read and written", at)

    def row(self, call: Call, role: str, image: int, y: int) -> array[int]:
        """Return the tags of one row of an operand, without gaps."""
        o = call.operands[role]
        memory = self.regions[o.region, o.index]
        start = o.offset + image * o.plane + y % o.ring * o.pitch
        width = o.channels * o.item
        end = start + (o.width - 1) * o.pixel + width
        self.spend(call.at, o.width * width)
        if role != "output" and not self._in_place(call, o):
            self.reads.append((o.region, o.index, start, end))
        if o.pixel == width:
            return memory[start:end]
        made = array("Q")
        for at in range(start, start + o.width * o.pixel, o.pixel):
            made.extend(memory[at : at + width])
        return made

    def _in_place(self, call: Call, o: Operand) -> bool:
        """Return whether this input may occupy exactly the bytes of the output."""
        return RULES[call.kernel].elementwise and o == call.output

    def put(self, call: Call, image: int, y: int, tags: array[int]) -> None:
        """Record the result of one row; it is written to memory after the rule returns."""
        o = call.output
        start = o.offset + image * o.plane + y % o.ring * o.pitch
        width = o.channels * o.item
        self.spend(call.at, len(tags))
        if len(tags) != o.width * width:
            raise Refused(f"{call.kernel}: a row of {len(tags)} bytes", call.at)
        if o.pixel == width:
            self.writes.append(((o.region, o.index, start, start + len(tags)), tags))
            return
        for x in range(o.width):
            at = start + x * o.pixel
            self.writes.append(((o.region, o.index, at, at + width), tags[x * width : (x + 1) * width]))

    def flat(self, call: Call, role: str, start: int, count: int) -> array[int]:
        """Return the tags of `count` bytes from byte `start` of an operand, ignoring its shape."""
        o = call.operands[role]
        low = o.offset + start
        if low < 0 or low + count > self.program.sizes.get((o.region, o.index), 0):
            raise Refused(f"{call.kernel}: {role} leaves {o.region}", call.at)
        self.spend(call.at, count)
        self.reads.append((o.region, o.index, low, low + count))
        return self.regions[o.region, o.index][low : low + count]

    def read_constant(self, call: Call, role: str, count: int) -> bytes:
        """Return the bytes of a constant operand; refuse bytes that are computed."""
        o = call.operands[role]
        if o.width * o.channels * o.item < count:
            raise Refused(f"{call.kernel}: {role} has {o.width * o.channels * o.item} bytes of {count}", call.at)
        tags = self.flat(call, role, 0, count)
        found = self.memo.get((call.at, role))
        if found is not None and found[0] == tags:
            return bytes(found[1])
        data = value_of(tags)
        if data is None:
            raise Refused(f"{call.kernel}: {role} holds bytes that are no constants", call.at)
        self.memo[call.at, role] = (tags, data)
        return data

    def once(self, call: Call, roles: tuple[str, ...], make: Callable[[], Any], *forget: str) -> Any:
        """Return the result of `make`, cached until the bytes of the constant operands `roles` change.

        The cached values that `forget` names are dropped with it.
        """
        tags = []
        for role in roles:
            o = call.operands[role]
            end = o.offset + o.width * o.channels * o.item
            tags.append(self.regions[o.region, o.index][o.offset : end])
            self.reads.append((o.region, o.index, o.offset, end))
        found = self.memo.get((call.at, "once"))
        if found is not None and found[0] == tags:
            return found[1]
        made = make()
        self.memo[call.at, "once"] = (tags, made)
        for name in forget:
            self.memo.pop((call.at, name), None)
        return made

    def read_state(self, call: Call, role: str, count: int) -> array[int]:
        """Return the tags of an operand that the call updates in place; write the new ones with `keep`."""
        mark = len(self.reads)
        tags = self.flat(call, role, 0, count)
        self.forget(mark)
        return tags

    def keep(self, call: Call, role: str, tags: array[int]) -> None:
        """Record the new contents of an operand that the call updates in place."""
        o = call.operands[role]
        if o.offset + len(tags) > self.program.sizes.get((o.region, o.index), 0):
            raise Refused(f"{call.kernel}: {role} leaves {o.region}", call.at)
        self.writes.append(((o.region, o.index, o.offset, o.offset + len(tags)), tags))

    def apply_fused_table(self, call: Call, tags: array[int]) -> array[int]:
        """Apply the table of a fused function to the results, if the call has one."""
        lut = call.operands.get("lut")
        if lut is None or not lut.present:
            return tags
        if call.output.item != 1:
            raise self.refuse(call, call.first_row, "a table of bytes on wider results")
        return self.world.symbols.apply_table(tags, self.read_constant(call, "lut", 256))

    def candidates(self, call: Call, kind: str) -> list[Computation]:
        """Return the computations of a kind, the last match of this call (or its hint) first."""
        found = self.world.known.get(kind, [])
        last = self.memo.get((call.at, "last", kind))
        if last is None and self.hints is not None:
            number = self.hints.get((self.where, call.at), -1)
            last = found[number] if 0 <= number < len(found) else None
        return found if last is None else [last, *(one for one in found if one is not last)]

    def forget(self, mark: int) -> None:
        """Drop the reads recorded since `mark`: they belong to a candidate that did not match."""
        del self.reads[mark:]

    def remember_match(self, call: Call, kind: str, one: Computation) -> None:
        """Record the computation that a call matches."""
        self.memo[call.at, "last", kind] = one

    def recognised_calls(self) -> dict[tuple[str, int], int]:
        """Return, for each call, the number of its match among the computations of its kind."""
        found = {}
        for key, one in self.memo.items():
            if isinstance(key, tuple) and len(key) == 3 and key[1] == "last":
                found[self.where, key[0]] = self.world.known[key[2]].index(one)
        return found

    def refuse(self, call: Call, first: int, why: str) -> Refused:
        """Return the refusal of a call that computes nothing of the source."""
        return Refused(f"{call.kernel} (node {call.tag}), row {first}: {why}", call.at)
