"""Reads inputs, outputs, operators and delegates of an ExecuTorch program, without torch.

The slot numbers are those of ExecuTorch's `program.fbs`; every offset is checked before it is followed.

Example:
    >>> plan = read_plan(Path("model.pte").read_bytes(), where="model.pte")
    >>> plan.inputs[0].shape, plan.delegates
    ((1, 3, 32, 32), {'NeutronBackend': 1})
"""

from __future__ import annotations

import struct
from collections import Counter
from dataclasses import dataclass
from typing import Final, TypeVar

from openneutron.errors import FormatError
from openneutron.litert.walker import Table, Walker
from openneutron.microcode.shared_weights import find_apart, with_weights

T = TypeVar("T")

FORWARD: Final = "forward"  # torch.export's name of a module's only entry point
IDENTIFIER: Final = b"ET12"  # the only one since ExecuTorch 0.1
_EXTENDED_HEADER: Final = struct.Struct("<4sIQQ")  # at byte 8: magic, length, program bytes, where segments begin
_EXTENDED_MAGIC: Final = b"eh00"
_TENSOR: Final = 5  # in the union of values
_TENSOR_LISTS: Final = (10, 11)  # lists of tensors, and of those that may be absent
_KERNEL_CALL, _DELEGATE_CALL = 1, 2  # in the union of instructions
_IN_SEGMENT: Final = 1
_NAMED_DATA: Final = 7  # of the program: blobs by name
# ExecuTorch's numbers of element types, by the names numpy and LiteRT use.
DTYPES: Final = {
    0: "uint8", 1: "int8", 2: "int16", 3: "int32", 4: "int64", 5: "float16", 6: "float32", 7: "float64", 11: "bool",
    15: "bfloat16", 27: "uint16", 28: "uint32", 29: "uint64",
}  # fmt: skip


@dataclass(frozen=True)
class PlanTensor:
    """An input or output; `dim_order` lists its dimensions from the slowest to the fastest in memory.

    A value that is no tensor (a number, a list) has the dtype "" and no shape; a dynamic one gives its largest shape.
    """

    dtype: str
    shape: tuple[int, ...]
    dim_order: tuple[int, ...]
    dynamic: bool = False

    @property
    def channels_last(self) -> bool:
        """Whether memory holds batch, space, channels."""
        rank = len(self.shape)
        return rank > 2 and self.dim_order == (0, *range(2, rank), 1)


@dataclass(frozen=True)
class Plan:
    """One program: its `forward`, with how often each operator and each delegate is called.

    `payloads` are the delegates' data with the backend's name, in order; `planned_bytes` is the size of its memory arenas. A
    `direct` plan is a single call of a delegate with the program's inputs and outputs in order.
    """

    inputs: tuple[PlanTensor, ...]
    outputs: tuple[PlanTensor, ...]
    operators: dict[str, int]
    delegates: dict[str, int]
    payloads: tuple[tuple[str, bytes], ...]
    planned_bytes: int = 0
    direct: bool = False


@dataclass(frozen=True)
class StoredPayload:
    """A delegate's data, whole, and where the file has it: bytes [at, end), weights that are apart at `weights_at`."""

    backend: str
    whole: bytes
    at: int
    end: int
    weights_at: int = -1


@dataclass(frozen=True)
class PlanValue:
    """A tensor that instructions read and write; `arena` and `offset` say where it lies, -1 for what is not planned."""

    tensor: PlanTensor
    constant: bool
    arena: int = -1
    offset: int = -1


@dataclass(frozen=True)
class PlanCall:
    """One instruction: its operator or backend, the delegate's number (-1 for a kernel), and its tensors as value numbers."""

    name: str
    delegate: int
    values: tuple[int, ...]


@dataclass(frozen=True)
class PlanCalls:
    """The instructions of a program in order; inputs and outputs are value numbers."""

    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    values: dict[int, PlanValue]
    calls: tuple[PlanCall, ...]


def read_calls(pte: bytes, *, where: str) -> PlanCalls:
    """Read the instructions of `forward` with the tensors they work on.

    Example:
        >>> [call.name for call in read_calls(data, where="model.pte").calls]
        ['quantized_decomposed::quantize_per_tensor.out', 'NeutronBackend', …]
    """
    walker, _, plan = _open(pte, where)
    positions = plan.positions(2)
    operators = [_operator(walker.table(at, "operator")) for at in plan.positions(6)]
    delegates = [walker.table(at, "delegate").text(0) for at in plan.positions(7)]
    values: dict[int, PlanValue] = {}

    def tensors(numbers: list[int]) -> list[int]:
        found = []
        for number in numbers:
            value = walker.table(value_at(positions, number, plan), "value")
            if value.u8(0) == _TENSOR:
                values.setdefault(number, _plan_value(walker, positions[number]))
                found.append(number)
            elif value.u8(0) in _TENSOR_LISTS and (items := value.table(1, "list")) is not None:
                found += tensors([one for one in items.values(0, "<i4") if one >= 0 and one != number])
        return found

    calls = []
    for kind, call in _instructions(walker, plan):
        if call is not None and kind in (_KERNEL_CALL, _DELEGATE_CALL):
            index = call.i32(0)
            name = value_at(operators if kind == _KERNEL_CALL else delegates, index, plan)
            used = tuple(tensors(call.values(1, "<i4")))
            calls.append(PlanCall(name, index if kind == _DELEGATE_CALL else -1, used))
    ends = [tuple(tensors(plan.values(slot, "<i4"))) for slot in (3, 4)]
    return PlanCalls(ends[0], ends[1], values, tuple(calls))


def _plan_value(walker: Walker, position: int) -> PlanValue:
    tensor = walker.table(position, "value").table(1, "tensor")
    if tensor is None:
        return PlanValue(_value(walker, position), constant=False)
    planned = tensor.table(6, "allocation")
    constant = tensor.u32(5) > 0 and planned is None
    if planned is None:
        return PlanValue(_value(walker, position), constant)
    return PlanValue(_value(walker, position), constant, planned.u32(0), planned.u32(1) | planned.u32(2) << 32)


def read_plan(pte: bytes, *, where: str, with_payloads: bool = True, method: str = FORWARD) -> Plan:
    """Read a method, or else the first plan, of a program; a `FormatError` names the byte that is wrong.

    The delegates' data are copied unless `with_payloads` is False, with the weights that methods share.
    """
    walker, program, plan = _open(pte, where, method)
    values = plan.positions(2)
    operators = [_operator(walker.table(at, "operator")) for at in plan.positions(6)]
    delegates = [walker.table(at, "delegate") for at in plan.positions(7)]
    names = [delegate.text(0) for delegate in delegates]
    called: list[Counter[str]] = [Counter(), Counter()]
    instructions = _instructions(walker, plan)
    for kind, call in instructions:
        if call is not None and kind in (_KERNEL_CALL, _DELEGATE_CALL):
            known = operators if kind == _KERNEL_CALL else names
            called[kind - 1][value_at(known, call.i32(0), plan)] += 1
    inputs, outputs = plan.values(3, "<i4"), plan.values(4, "<i4")
    kind, call = instructions[0] if len(instructions) == 1 else (0, None)
    direct = kind == _DELEGATE_CALL and call is not None and [*call.values(1, "<i4")] == [*inputs, *outputs]
    return Plan(
        inputs=tuple(_value(walker, value_at(values, index, plan)) for index in inputs),
        outputs=tuple(_value(walker, value_at(values, index, plan)) for index in outputs),
        operators=dict(called[0]),
        delegates=dict(called[1]),
        payloads=tuple((name, _payload(walker, program, one)) for name, one in zip(names, delegates, strict=True))
        if with_payloads
        else (),
        planned_bytes=sum(int(size) for size in plan.values(8, "<i8")),
        direct=direct,
    )


def computing_methods(pte: bytes, *, where: str) -> tuple[str, ...]:
    """Return the methods that call delegates, `forward` first; others give constants.

    Example:
        >>> computing_methods(Path("decoder.pte").read_bytes(), where="decoder.pte")
        ('forward', 'prefill')
    """
    _, plans = open_plans(pte, where)
    found = [plan.text(0) for plan in plans if plan.positions(7)]
    return tuple(sorted(found, key=lambda name: name != FORWARD))


def stored_payloads(pte: bytes, *, where: str) -> list[StoredPayload]:
    """Return the delegates' data of all methods, `forward` first."""
    found = []
    for method in computing_methods(pte, where=where):
        walker, program, plan = _open(pte, where, method)
        for position in plan.positions(7):
            delegate = walker.table(position, "delegate")
            at, stored = _read_stored(walker, program, delegate)
            apart = find_apart(stored)
            place = -1 if apart is None else _read_named(walker, program, apart.key)[0]
            end = at + (len(stored) if apart is None else apart.payload_bytes)
            found.append(StoredPayload(delegate.text(0), _whole(walker, program, stored), at, end, place))
    return found


def open_plans(pte: bytes, where: str) -> tuple[Walker, list[Table]]:
    """Return the walker and all plans of a program, `forward` among them."""
    walker, program, _ = _open(pte, where)
    return walker, [walker.table(at, f"execution plan {number}") for number, at in enumerate(program.positions(1))]


def _open(pte: bytes, where: str, method: str = FORWARD) -> tuple[Walker, Table, Table]:
    """Return the walker, the program and the plan of a method."""
    if pte[4:6] != IDENTIFIER[:2]:
        raise FormatError("not an ExecuTorch program (no identifier ET at byte 4)", where=where)
    walker = Walker(pte, where)
    program = walker.root(IDENTIFIER)
    plans = [walker.table(at, f"execution plan {number}") for number, at in enumerate(program.positions(1))]
    if not plans:
        raise FormatError("the program has no execution plan", where=where)
    return walker, program, next((one for one in plans if one.text(0) == method), plans[0])


def _operator(table: Table) -> str:
    name, overload = table.text(0), table.text(1)
    return f"{name}.{overload}" if overload else name


def _instructions(walker: Walker, plan: Table) -> list[tuple[int, Table | None]]:
    """Return all instructions in order, each with its kind."""
    found: list[tuple[int, Table | None]] = []
    for position in plan.positions(5):
        for at in walker.table(position, "chain").positions(2):
            instruction = walker.table(at, "instruction")
            found.append((instruction.u8(0), instruction.table(1, "call")))
    return found


def _value(walker: Walker, position: int) -> PlanTensor:
    value = walker.table(position, "value")
    tensor = value.table(1, "tensor") if value.u8(0) == _TENSOR else None
    if tensor is None:
        return PlanTensor("", (), ())
    number = tensor.i8(0)
    shape, order = tuple(tensor.values(2, "<i4")), tuple(tensor.values(3, "u1"))
    if sorted(order) != list(range(len(shape))):
        raise tensor.error(f"the dimension order {list(order)} does not fit the shape {list(shape)}")
    return PlanTensor(DTYPES.get(number, f"type {number}"), shape, order, dynamic=tensor.i8(8) != 0)


def _payload(walker: Walker, program: Table, delegate: Table) -> bytes:
    """A delegate's data with weights that are stored apart."""
    return _whole(walker, program, _read_stored(walker, program, delegate)[1])


def _whole(walker: Walker, program: Table, stored: bytes) -> bytes:
    return with_weights(stored, lambda key: _read_named(walker, program, key)[1], where=walker.source)


def _read_stored(walker: Walker, program: Table, delegate: Table) -> tuple[int, bytes]:
    """A delegate's data and its place, inside the flatbuffer or in a segment behind it."""
    reference = delegate.table(1, "delegate data")
    if reference is None:
        return 0, b""
    index = reference.u32(1)
    if reference.i8(0) == _IN_SEGMENT:
        return _segment(walker, program, index)
    inline = walker.table(value_at(program.positions(3), index, program), "delegate data")
    data = inline.vector(0, "u1")
    return (0, b"") if data is None else (inline.target(0) + 4, data.tobytes())


def _read_named(walker: Walker, program: Table, key: str) -> tuple[int, bytes]:
    """The named data of a key and its place."""
    for position in program.positions(_NAMED_DATA):
        one = walker.table(position, "named data")
        if one.text(0) == key:
            return _segment(walker, program, one.u32(1))
    raise program.error(f"the program has no named data {key!r}")


def _segment(walker: Walker, program: Table, index: int) -> tuple[int, bytes]:
    segment = walker.table(value_at(program.positions(4), index, program), "segment")
    if walker.size < 8 + _EXTENDED_HEADER.size:
        raise program.error("the file ends inside its header")
    magic, _, _, base = _EXTENDED_HEADER.unpack_from(walker.data, 8)
    if magic != _EXTENDED_MAGIC:
        raise program.error("the program has segments but no header that says where they begin")
    at = base + segment.u64(0)
    return at, walker.span(at, segment.u64(1), "segment").tobytes()


def value_at(items: list[T], index: int, table: Table) -> T:
    """Return an item of a table's list; a `FormatError` for an index that the list does not have."""
    if not 0 <= index < len(items):
        raise table.error(f"index {index} of {len(items)} does not exist")
    return items[index]
