"""The functions by which an application runs a model that is embedded in it: `model_init()` and `model_run()` in C.

They hand the model's description to `neutronLinkedInit()` and `neutronLinkedRun()` of `neutron_linked.h`.

Example:
    >>> declarations("model", sizes)[0]
    '/* Bytes of the arena of one handle. */'
"""

from __future__ import annotations

from openneutron.machine.runtime_memory import POINTER_BYTES, context_bytes
from openneutron.microcode.table import ALIGNMENT

# NEUTRON_LINKED_BYTES of neutron_linked.h: what an arena holds beside context and buffers.
_HEAD_POINTERS = 9
_PARTS = ("SCRATCH", "PREFETCH", "PROFILE")


def _align(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def arena_bytes(sizes: dict[str, int], pointer: int = POINTER_BYTES) -> int:
    """Return the least arena of a model, from the sizes that its header declares; coded constants are decoded in blocks."""
    head = (sizes["INPUTS"] + sizes["OUTPUTS"] + _HEAD_POINTERS) * pointer
    parts = [head, context_bytes(pointer), *(sizes[f"{part}_BYTES"] for part in (*_PARTS, "TCM", "STATE", "BLOCK"))]
    return sum(map(_align, parts))


def declarations(name: str, sizes: dict[str, int]) -> list[str]:
    """Return the lines of the header."""
    arena = f"#define {name.upper()}_ARENA_BYTES"
    return [
        "/* Bytes of the arena of one handle. */",
        "#if UINTPTR_MAX > 0xFFFFFFFFu",
        f"{arena} {arena_bytes(sizes, 2 * POINTER_BYTES)}u",
        "#else",
        f"{arena} {arena_bytes(sizes)}u",
        "#endif",
        "",
        "/* Prepare the model in an arena at a multiple of 16, which is the handle from then on. Returns 0, or an error word",
        " * for neutronErrorString(). */",
        f"int32_t {name}_init(void *arena, uint32_t bytes);",
        "/* Run it: pointers to inputs and outputs in the order above, each at a multiple of 16. Returns 0 or an error. */",
        f"int32_t {name}_run(void *arena, const void *const *inputs, void *const *outputs);",
        "/* Set what the model keeps from run to run back to its first contents. */",
        f"int32_t {name}_reset(void *arena);",
    ]


def definitions(name: str) -> list[str]:
    """Return the lines of the source."""
    prefix = name.upper()
    blocks = (
        f"{prefix}_{block}_{what}" for block in ("MICROCODE", "WEIGHTS", "KERNELS") for what in ("OFFSET", "BYTES")
    )
    buffers = (f"{prefix}_{part}_BYTES" for part in _PARTS)
    values = [f"{name}_payload", *blocks, *buffers, f"{prefix}_INPUTS", f"{prefix}_OUTPUTS", f"{prefix}_ARENA_BYTES"]
    return [
        f"static const NeutronLinkedModel {name}_model = {{",
        *(f"    {value}," for value in values),
        "};",
        "",
        f"int32_t {name}_init(void *arena, uint32_t bytes) {{ return neutronLinkedInit(&{name}_model, arena, bytes); }}",
        "",
        f"int32_t {name}_run(void *arena, const void *const *inputs, void *const *outputs) {{",
        "    return neutronLinkedRun(arena, inputs, outputs);",
        "}",
        "",
        f"int32_t {name}_reset(void *arena) {{ return neutronLinkedReset(arena); }}",
    ]
