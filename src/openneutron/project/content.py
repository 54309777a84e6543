"""What every project contains whatever it is built with: the model as C, its samples, the open runtime and the self-test.

Example:
    >>> content = make_content(model, load("mps2-an505"), [], title="model.tflite", command="")
    >>> sorted(content.files())[:2]
    ['LICENSE', 'application/console.h']
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from openneutron._version import __version__
from openneutron.executorch.deliver.embed import Embedded, embed, payload_sizes
from openneutron.executorch.deliver.linked import arena_bytes
from openneutron.machine.simulator import DTYPES
from openneutron.microcode.decode import decode
from openneutron.microcode.encode import align
from openneutron.microcode.instructions import Program, TensorRow
from openneutron.microcode.selection import selection_code
from openneutron.microcode.walk import executed_calls
from openneutron.project.boards import Board
from openneutron.project.npu import NpuModel, npu_arrays
from openneutron.project.npu_program import registrations
from openneutron.project.open_model import OpenModel
from openneutron.project.runtime_sources import license_text, runtime_files
from openneutron.project.samples import (
    Array,
    Sample,
    input_room,
    make_samples,
    output_room,
    sample_bytes,
    samples_header,
    samples_source,
)
from openneutron.project.sizes import Sizes
from openneutron.project.templates import fill, read
from openneutron.project.write import MARK

_LEAST_NAME = "model"


@dataclass(frozen=True)
class Content:
    """The parts of a project that no platform changes; `reference` says what computed the expected outputs."""

    title: str
    name: str
    board: Board
    model: OpenModel
    program: Program
    samples: tuple[Sample, ...]
    sizes: Sizes
    command: str
    npu: NpuModel | None = None
    reference: str = "this machine's simulator"

    def files(self, *, sections: bool) -> dict[str, bytes]:
        """Return the files by path; with `sections` constants of the model go into linker sections of their own."""
        made = self.embed(sections=sections)
        calls = {call.kernel for call, _, _ in executed_calls(self.program)}
        title = f"openneutron {__version__}: {self.title}, {self.program.target}"
        texts = {
            "model/model.c": made.source,
            "model/model.h": made.header,
            "model/kernel_selection.c": selection_code(calls, self.program.target, __version__),
            "model/samples.c": samples_source(self.samples, section=sections),
            "model/samples.h": samples_header(self.samples, title),
            "LICENSE": license_text(),
        }
        files = {name: text.encode() for name, text in texts.items()}
        for name in ("console.h", "self_test.c", "self_test.h"):
            files[f"application/{name}"] = read(f"application/{name}").encode()
        version = f'#define OPENNEUTRON_VERSION "{__version__}"\n'
        return files | runtime_files() | {"runtime/include/openneutron_version.h": version.encode()}

    def npu_files(self, platform: str) -> dict[str, bytes]:
        """Return the files of the build with NXP's library, by path; none without a model that NXP's converter made."""
        if self.npu is None:
            return {}
        blanks = {
            "title": self.title, "version": __version__, "board": self.board, "platform": platform,
            "arena_bytes": self.npu.arena_bytes, "operators": self.npu.operators, "pools": self.npu.pools,
        }  # fmt: skip
        runtime = "TensorFlow Lite Micro"
        filled = ["npu_test.cpp", "npu_place.h"]
        if self.npu.pools is not None:
            runtime = "ExecuTorch"
            filled = ["program_test.cpp", "npu_place.h", *(["register_kernels.cpp"] if self.npu.operators else [])]
            blanks["kernels"] = registrations(self.npu.operators)
            blanks["input_room"] = sum(align(array.nbytes) for array in self.npu.inputs[0])
        texts = npu_arrays(self.npu, f"{runtime} with NXP's Neutron library: {self.title}")
        texts |= {name: fill(f"npu/{name}.jinja", **blanks) for name in filled}
        texts |= {name: read(f"npu/{name}") for name in ("npu_test.h", "npu_compare.c", "npu_compare.h")}
        return {f"npu/{name}": text.encode() for name, text in texts.items()}

    def embed(self, *, sections: bool) -> Embedded:
        """Return the model as C source and header."""
        return embed(
            self.model.data,
            name="model",
            header="model.h",
            where=self.title,
            border=self.model.border,
            sections=sections,
        )

    def rows(self, *, outputs: bool) -> list[dict[str, Any]]:
        """Return the model's inputs or outputs as the README lists them."""
        names = self.model.border.outputs if outputs else self.model.border.inputs
        found = [row for row in self.program.tensors if row.is_output == outputs]
        return [_describe_tensor(name, row) for name, row in zip(names, found, strict=True)]

    def record(self, platform: str) -> dict[str, bytes]:
        """Return project.json by its name: what the project was made from, and the memory it takes."""
        sizes = {
            "flash_bytes": self.sizes.flash_bytes, "ram_bytes": self.sizes.ram_bytes,
            "arena_bytes": self.sizes.arena_bytes, "payload_bytes": self.sizes.payload_bytes,
        }  # fmt: skip
        made: dict[str, Any] = {
            "made_by": f"openneutron {__version__}",
            "model": self.title,
            "payload_sha256": hashlib.sha256(self.model.data).hexdigest(),
            "target": self.program.target,
            "platform": platform,
            "board": self.board.name,
            "samples": len(self.samples),
            **sizes,
        }
        return {MARK: (json.dumps(made, indent=2) + "\n").encode()}


def make_content(
    model: OpenModel,
    board: Board,
    inputs: Sequence[Sequence[Array]],
    *,
    title: str,
    command: str,
    npu: NpuModel | None = None,
    count: int = 2,
    seed: int = 0,
) -> Content:
    """Return the content for a board: the given inputs or `count` random ones as samples, and the sizes."""
    payload, title = model.payload, plain_title(title)
    samples = make_samples(payload, inputs, count=count, seed=seed, where=model.where)
    sizes = Sizes(
        payload_bytes=len(model.data),
        sample_bytes=sample_bytes(samples),
        arena_bytes=arena_bytes(payload_sizes(payload, model.data)),
        input_bytes=input_room(samples),
        output_bytes=output_room(samples),
    )
    program = decode(payload.microcode, payload.weights, payload.kernels)
    return Content(title, c_name(title), board, model, program, samples, sizes, command, npu)


def plain_title(title: str) -> str:
    """Return the title for comments, Kconfig, YAML and Markdown: what could end or change one of them is an underscore.

    Example:
        >>> plain_title("my model.tflite"), plain_title('a"b.tflite')
        ('my model.tflite', 'a_b.tflite')
    """
    return re.sub(r"[^\w .,:+()@=/-]|:(?=\s|$)", "_", title)[:100] or _LEAST_NAME


def c_name(title: str) -> str:
    """Return the title as a name that C and CMake take.

    Example:
        >>> c_name("2 nets/my-model.tflite")
        'my_model'
    """
    stem = title.rpartition("/")[2].rpartition(":")[2].partition(".")[0]
    plain = re.sub(r"[^A-Za-z0-9]+", "_", stem).strip("_")
    return plain if plain and not plain[0].isdigit() else f"{_LEAST_NAME}_{plain}".rstrip("_")


def _describe_tensor(name: str, row: TensorRow) -> dict[str, Any]:
    return {
        "name": name, "dtype": str(np.dtype(DTYPES[row.dtype])), "shape": list(row.shape),
        "scale": f"{row.scale:.9g}" if row.scale else "", "zero_point": row.zero_point,
    }  # fmt: skip
