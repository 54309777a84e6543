"""Writes `certify/published.py`: kernels, targets, operators and option layouts as plain data for the stand-alone checker.

The checker shares no code with the compiler; what both must agree on is published here, from the registries and the schema.

`make generate` runs it.
"""

from __future__ import annotations

import dataclasses
import importlib.resources
import re
from pathlib import Path
from typing import Any

from openneutron.compiler import kernels
from openneutron.data_module import data_module
from openneutron.litert.operator_options import options_of, schema
from openneutron.machine import targets
from openneutron.microcode import abi
from openneutron.microcode.table import SECTION_FORMS, SECTION_SIZES

TARGET = Path(__file__).parents[2] / "certify" / "published.py"
_SCALARS = {
    "Int8": "b", "Uint8": "B", "Bool": "?", "Int16": "h", "Uint16": "H", "Int32": "i", "Uint32": "I", "Int64": "q",
    "Uint64": "Q", "Float32": "f", "Float64": "d",
}  # fmt: skip
_METHOD = re.compile(r"    def (\w+)\(self[^)]*\):\n(.*?)(?=\n    # |\ndef |\Z)", re.DOTALL)
_GET = re.compile(r"self\._tab\.Get\(flatbuffers\.number_types\.(\w+?)Flags, (o|a) \+")
_LAST = re.compile(r"return ([-\w.]+)\s*$")


def _fields(text: str) -> dict[int, tuple[str, str, Any]]:
    """Return slot → (name, kind, default) of a table.

    A kind is a `struct` letter for a number, v and such a letter for a vector, s for text, t for anything else.
    """
    found: dict[int, tuple[str, str, Any]] = {}
    for name, body in _METHOD.findall(text):
        slot = re.search(r"_tab\.Offset\((\d+)\)", body)
        if slot is None or name.endswith(("AsNumpy", "Length", "IsNone")):
            continue
        place = int(slot[1]) // 2 - 2
        got = _GET.search(body)
        if got is None:
            kind: str = "s" if "_tab.String(" in body and "Vector" not in body else "t"
            found[place] = (name, kind, None)
            continue
        letter = _SCALARS[got[1]]
        last = _LAST.search(body.strip())
        default = {"True": True, "False": False, "None": None}.get(last[1], last[1]) if last else 0
        if isinstance(default, str):
            default = float(default) if letter in "fd" else int(default)
        found[place] = (name, f"v{letter}", None) if got[2] == "a" else (name, letter, default)
    return found


def _options(text: str, union: str) -> dict[int, tuple[str, dict[int, tuple[str, str, Any]]]]:
    found = {}
    for name, number in vars(getattr(schema(), union)).items():
        if name.startswith("_") or name == "NONE" or not isinstance(number, int):
            continue
        part = re.search(rf"^class {name}\(object\):\n(.*?)^def {name}Start", text, re.DOTALL | re.MULTILINE)
        found[number] = (name, _fields(part[1]) if part else {})
    return dict(sorted(found.items()))


def _options_of(code: str) -> str:
    """Return the name of the options table that LiteRT reads for an operator, "" where it reads none."""
    found = options_of(code)
    return "" if found is None else found.__name__.removesuffix("T")


def render_published() -> str:
    """Return the text of `certify/published.py`."""
    text = (importlib.resources.files("ai_edge_litert") / "schema_py_generated.py").read_text(encoding="utf-8")
    # From 3.13 on, Python writes numbers of its own into classes.
    codes = {code: name for name, code in vars(schema().BuiltinOperator).items() if not name.startswith("_")}
    kernels.rules()
    table = {}
    for one in abi.all_kernels():
        words = tuple((field.name, field.metadata["size"]) for field in dataclasses.fields(one.params))
        table[one.id] = (one.name, one.abi, tuple(one.operands), words)
    chips = {}
    for name in targets.names():
        chip = targets.load(name)
        chips[name] = {
            field: getattr(chip, field)
            for field in ("hw_version", "cores", "units", "length", "sram_bytes", "tcm_bytes", "alignment", "subsystem")
        }
    forms = {
        int(storage): (tuple(map(int, form.packings)), form.least, form.most, form.widths,
                       tuple(name in form.sizes for name in SECTION_SIZES))
        for storage, form in SECTION_FORMS.items()
    }  # fmt: skip
    parts: dict[str, tuple[str, dict[Any, Any]]] = {
        "KERNELS": ("dict[int, tuple[str, int, tuple[str, ...], tuple[tuple[str, int], ...]]]", table),
        "TARGETS": ("dict[str, dict[str, Any]]", chips),
        "SECTION_FORMS": ("dict[int, tuple[tuple[int, ...], int, int, tuple[int, ...], tuple[bool, ...]]]", forms),
        "OPERATORS": (
            "dict[int, tuple[str, str]]",
            {number: (name, _options_of(name)) for number, name in sorted(codes.items())},
        ),
        "OPTIONS": ("dict[int, tuple[str, dict[int, tuple[str, str, Any]]]]", _options(text, "BuiltinOptions")),
        "OPTIONS_2": ("dict[int, tuple[str, dict[int, tuple[str, str, Any]]]]", _options(text, "BuiltinOptions2")),
    }
    return data_module(
        "The tables that compiler and checker share. Generated by openneutron.compiler.back.publish; do not edit.",
        parts,
    )


if __name__ == "__main__":
    TARGET.write_text(render_published(), encoding="utf-8")
