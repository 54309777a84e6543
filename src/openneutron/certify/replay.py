"""Replays microcode on tagged memory: every byte a call reads must be what the operator it stands for should read there.

Calls are not trusted to be anything: each is recognised by its kernel, its parameters, its constants and the bytes that it
finds as some rows of an operator of the source, or it is refused.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from openneutron.certify.kernels import RULES
from openneutron.certify.read.microcode import Call, Copy, Loop, Operand, Program, Wait
from openneutron.certify.refused import Refused
from openneutron.certify.tags import MOVING, NOTHING, constant, filled, value_of
from openneutron.certify.world import Computation, World

MOST_BYTES = 1 << 28  # of one operand, gaps not counted
_WORK = (
    4096  # bytes that may be read and written for each byte of memory: time grows with the file, whatever its loops say
)
_LEAST_WORK = 1 << 22
_STEP = 64  # bytes that an instruction counts for at least
# What the firmware accepts of a window; it refuses the file otherwise.
_FRAME = ("before_batch", "before_height", "before_width", "before_channels", "pad_top", "pad_left")
_WINDOW = ("kernel_h", "kernel_w", "stride_h", "stride_w", "dilation_h", "dilation_w")
_LIMITS = dict.fromkeys(_WINDOW, (1, 32_767)) | dict.fromkeys(_FRAME, (0, 1 << 30))
Interval = tuple[str, int, int, int]  # region, index, start, end


@dataclass
class Pending:
    """A copy under way."""

    copy: Copy
    arriving: array[int]


@dataclass
class Machine:
    """Memory of one NeutronGraph while it runs."""

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
    # Output → start and end of what was written, and byte of the call.
    writers: dict[int, list[tuple[int, int, int]]] = field(default_factory=dict)

    def start(self, weights: bytes, inputs: list[array[int]], states: list[array[int]]) -> None:
        """Fill memory as a run finds it; `states` are what each state holds, shorter ones followed by nothing."""
        self.most_work = _LEAST_WORK + _WORK * sum(self.program.sizes.values())
        for key, size in self.program.sizes.items():
            self.regions[key] = constant(weights) if key[0] == "weights" else filled(NOTHING, size)
        for index, tags in enumerate(inputs):
            if self.program.sizes.get(("input", index)) != len(tags):
                raise Refused(f"input {index} has {len(tags)} bytes")
            self.regions["input", index] = array("Q", tags)
        for state, tags in zip(self.program.states, states, strict=True):
            self.regions["state", 0][state.offset : state.offset + len(tags)] = tags

    def run(self) -> None:
        """All instructions in order."""
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
        """One instruction."""
        self.spend(step.at, _STEP)
        if isinstance(step, Call):
            self.call(step, iteration)
        elif isinstance(step, Copy):
            self.copy(step)
        else:
            self.wait(step.channel)

    def copy(self, copy: Copy) -> None:
        """Start a copy: its target is unknown until it is waited for."""
        self.copies += 1
        for (name, index, start), size in ((copy.source, copy.size), (copy.target, copy.size)):
            if start + size > self.program.sizes.get((name, index), 0):
                raise Refused(f"a copy leaves {name} {index}", copy.at)
        self.spend(copy.at, copy.size)
        name, index, start = copy.source
        arriving = self.regions[name, index][start : start + copy.size]
        name, index, start = copy.target
        target = (name, index, start, start + copy.size)
        self.writable(target, copy.at)
        self.regions[name, index][start : start + copy.size] = filled(MOVING, copy.size)
        self.pending.append(Pending(copy, arriving))

    def wait(self, channel: int) -> None:
        """Copies of a channel arrive."""
        for one in self.pending:
            if one.copy.channel == channel:
                name, index, start = one.copy.target
                self.regions[name, index][start : start + one.copy.size] = one.arriving
                if name == "output":
                    self.writers.setdefault(index, []).append((start, start + one.copy.size, one.copy.at))
        self.pending = [one for one in self.pending if one.copy.channel != channel]

    def writable(self, place: Interval, at: int) -> None:
        """Refuse a write to what may not be written, or to bytes that a copy under way uses."""
        name, index, start, end = place
        if name in ("input", "weights"):
            raise Refused(f"{name} is written", at)
        for one in self.pending:
            for other, number, first in (one.copy.source, one.copy.target):
                if (other, number) == (name, index) and first < end and start < first + one.copy.size:
                    raise Refused(f"byte {max(first, start)} of {name} is written while a copy uses it", at)

    def call(self, call: Call, iteration: int) -> None:
        """Recognise a call and let its result be in memory."""
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
            self.writable(place, call.at)
            name, index, start, end = place
            self.regions[name, index][start:end] = tags
            if name == "output":
                self.writers.setdefault(index, []).append((start, end, call.at))

    # What rules use.

    def spend(self, at: int, count: int) -> None:
        """Count bytes that are looked at; refuse a file that makes more of them than a real one would."""
        self.work += count
        if self.work > self.most_work:
            raise Refused(f"more work than {self.most_work} bytes read and written", at)

    def row(self, call: Call, role: str, image: int, y: int) -> array[int]:
        """Tags of one row of an operand, without gaps."""
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
        """May this input lie exactly where the output goes?"""
        return RULES[call.kernel].elementwise and o == call.output

    def put(self, call: Call, image: int, y: int, tags: array[int]) -> None:
        """The result of one row."""
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
        """Tags of bytes behind the start of an operand."""
        o = call.operands[role]
        low = o.offset + start
        if low < 0 or low + count > self.program.sizes.get((o.region, o.index), 0):
            raise Refused(f"{call.kernel}: {role} leaves {o.region}", call.at)
        self.spend(call.at, count)
        self.reads.append((o.region, o.index, low, low + count))
        return self.regions[o.region, o.index][low : low + count]

    def known(self, call: Call, role: str, count: int) -> bytes:
        """Bytes of a constant operand."""
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
        """What `make` takes out of constant operands, remembered until their bytes change; so is what `forget` names."""
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

    def held(self, call: Call, role: str, count: int) -> array[int]:
        """Tags of an operand that the call goes on from and changes in place: `keep` follows."""
        mark = len(self.reads)
        tags = self.flat(call, role, 0, count)
        self.forget(mark)
        return tags

    def keep(self, call: Call, role: str, tags: array[int]) -> None:
        """What the call leaves in an operand that it changes."""
        o = call.operands[role]
        if o.offset + len(tags) > self.program.sizes.get((o.region, o.index), 0):
            raise Refused(f"{call.kernel}: {role} leaves {o.region}", call.at)
        self.writes.append(((o.region, o.index, o.offset, o.offset + len(tags)), tags))

    def finished(self, call: Call, tags: array[int]) -> array[int]:
        """Results through the table of a fused function, where there is one."""
        lut = call.operands.get("lut")
        if lut is None or not lut.present:
            return tags
        if call.output.item != 1:
            raise self.unknown(call, call.first_row, "a table of bytes on wider results")
        return self.world.symbols.through(tags, self.known(call, "lut", 256))

    def candidates(self, call: Call, kind: str) -> list[Computation]:
        """Operators of a kind, the one that this call was last recognised as first."""
        found = self.world.known.get(kind, [])
        last = self.memo.get((call.at, "last", kind))
        if last is None and self.hints is not None:
            number = self.hints.get((self.where, call.at), -1)
            last = found[number] if 0 <= number < len(found) else None
        return found if last is None else [last, *(one for one in found if one is not last)]

    def forget(self, mark: int) -> None:
        """Reads since `mark` were those of a search that led nowhere."""
        del self.reads[mark:]

    def recognised(self, call: Call, kind: str, one: Computation) -> None:
        """Remember what a call is."""
        self.memo[call.at, "last", kind] = one

    def recognised_calls(self) -> dict[tuple[str, int], int]:
        """Which computation of its kind each call was recognised as."""
        found = {}
        for key, one in self.memo.items():
            if isinstance(key, tuple) and len(key) == 3 and key[1] == "last":
                found[self.where, key[0]] = self.world.known[key[2]].index(one)
        return found

    def unknown(self, call: Call, first: int, why: str) -> Refused:
        """The refusal of a call that is no part of the source."""
        return Refused(f"{call.kernel} (node {call.tag}), row {first}: {why}", call.at)
