"""Program → text, one instruction per line, parameters by name."""

from __future__ import annotations

from dataclasses import fields

from openneutron.microcode import abi
from openneutron.microcode.instructions import ABSENT, Call, Dma, Instruction, Operand, Program, Wait
from openneutron.microcode.table import NO_SOURCE


def _operand(role: str, o: Operand) -> str:
    if o == ABSENT:
        return f"{role}=-"
    where = o.region.name.lower() + (str(o.index) if o.region.name in ("INPUT", "OUTPUT") else "")
    ring = f" ring {o.ring}" if o.ring != o.height else ""
    shape = f"{o.batch}x{o.height}x{o.width}x{o.channels}"
    return f"{role}={where}+{o.offset} {shape}:{o.dtype.name.lower()}{ring}"


def _line(item: Instruction) -> list[str]:
    if isinstance(item, Call):
        kernel = abi.by_id(item.kernel)
        step = f" step {item.row_step}" if item.row_step else ""
        head = f"CALL  {kernel.name} node {item.tag} rows {item.first_row}+{item.rows}{step}"
        if item.rounding:
            head += f" rounding {item.rounding.name.lower()}"
        roles = [role.rstrip("?") for role in kernel.operands]
        lines = [head] + [f"        {_operand(r, o)}" for r, o in zip(roles, item.operands, strict=True)]
        params = ", ".join(f"{f.name}={getattr(item.params, f.name)}" for f in fields(item.params))
        return lines + ([f"        {params}"] if params else [])
    if isinstance(item, Dma):
        source = f"{item.source_region.name.lower()}+{item.source_offset}"
        target = f"{item.target_region.name.lower()}+{item.target_offset}"
        return [f"DMA   {source} -> {target} {item.bytes} bytes channel {item.channel}"]
    if isinstance(item, Wait):
        return [f"WAIT  channel {item.channel}"]
    return [f"LOOP  {item.iterations} times"] + [f"  {line}" for step in item.body for line in _line(step)]


def disassemble(program: Program) -> str:
    """The whole program as text, as `openneutron disasm` prints it.

    Example:
        >>> print(disassemble(decode(microcode, weights, kernels)))
    """
    version = ".".join(map(str, program.converter_version))
    lines = [
        f"; target {program.target}, array {program.cores}x{program.units}x{program.length}, converter {version}, "
        f"checksum 0x{program.checksum:08X}",
        f"; scratch {program.scratch_bytes}, prefetch {program.prefetch_bytes}, weights {len(program.weights)} plain, "
        f"at most {program.call_count} calls{', profiling' if program.profiling else ''}",
    ]
    for row in program.tensors:
        kind = "output" if row.is_output else "input"
        shape = "x".join(map(str, row.shape))
        lines.append(
            f"; {kind} {row.index}: {shape} {row.dtype.name.lower()} scale {row.scale:g} zero {row.zero_point}, "
            f"{row.bytes} bytes"
        )
    for state in program.states:
        first = f"weights+{state.source}" if state.source != NO_SOURCE else f"0x{state.fill:08X}"
        lines.append(f"; state+{state.offset}: {state.bytes} bytes, at first {first}")
    for item in program.instructions:
        lines += _line(item)
    return "\n".join([*lines, "END", ""])
