"""A compiled program: its bytes, its report, and a way to run it here."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Protocol

from openneutron import environment
from openneutron.errors import OptionError
from openneutron.files import bundle_of, check_target, make_folder, write_file
from openneutron.report.facts import facts, title
from openneutron.report.model import NodeVerdict, Report

if TYPE_CHECKING:
    from openneutron.run.samples import Runner

Kind = Literal["pte", "tflite"]
# Makes the function that runs a file, from its bytes and its name in messages; each front end passes its own.
Loader = Callable[[bytes, str], "Runner"]


class Structure(Protocol):
    """How a model takes and returns tensors: in mappings, lists or tuples."""

    def flatten(self, args: Sequence[Any], named: Mapping[str, Any]) -> Sequence[Any] | None:
        """Return the program's inputs; None where the arguments are those already."""

    def rebuild(self, results: tuple[Any, ...]) -> Any:
        """Return the program's results as the model returns them."""


@dataclass(frozen=True, repr=False, eq=False)
class Program:
    """What `compile` returns.

    `data` are the bytes of the file, `kind` says which file: "pte" from PyTorch, "tflite" from LiteRT. `report` has
    verdicts, cycles and memory. `kernel_selection` is the C source that links only the kernels this program calls;
    `kernel_selections` has one for each delegated subgraph.
    `intermediates` are named dumps of what happened on the way, when asked for. `quantized` is the PT2E module a
    PyTorch model became, for comparisons; None for other sources. `input_names` are what `run` takes, in order.
    `loader` makes what runs the file. `structure` is that of a model whose arguments or results are no plain tensors.
    `example_inputs` are those it was compiled with, as it takes them; `etrecord_maker` makes `etrecord`.

    Example:
        >>> program.save("model.pte")
        >>> (scores,) = program.run(image)
        >>> [node.name for node in program.verdicts if not node.delegated]
    """

    data: bytes
    kind: Kind
    report: Report
    kernel_selection: str = ""
    intermediates: Mapping[str, bytes | str] = field(default_factory=dict)
    quantized: Any = None
    kernel_selections: tuple[str, ...] = ()
    input_names: tuple[str, ...] = ()
    structure: Structure | None = None
    example_inputs: tuple[Any, ...] = ()
    etrecord_maker: Callable[[], Any] | None = None
    loader: Loader = field(kw_only=True)

    @property
    def pte(self) -> bytes:
        """The ExecuTorch program; a program from a LiteRT file has `tflite` instead."""
        return self._bytes("pte")

    @property
    def tflite(self) -> bytes:
        """The converted LiteRT model; a program from PyTorch has `pte` instead."""
        return self._bytes("tflite")

    @property
    def verdicts(self) -> tuple[NodeVerdict, ...]:
        """Each node of the program with `.delegated`, and `.reason` and `.hint` when it was left on the CPU.

        The nodes of a LiteRT file are its operators.

        Example:
            >>> [(v.name, v.reason, v.hint) for v in program.verdicts if not v.delegated]
        """
        if self.kind == "pte":
            return self.report.nodes
        return tuple(
            NodeVerdict(op.name, op.code, op.converted, op.reason, op.reason_code, op.hint, partition=op.graph)
            for op in self.report.operators
        )

    @property
    def etrecord(self) -> Any:
        """ExecuTorch's ETRecord of a program from PyTorch, with which its Inspector reads profiles.

        Example:
            >>> program.etrecord.save("model.etrecord")
        """
        if self.etrecord_maker is None:
            raise OptionError(
                "this program has no ETRecord", where=self.report.source,
                hint="programs that `openneutron.compile` makes from PyTorch in this process have one",
            )  # fmt: skip
        return self.etrecord_maker()

    def save(self, path: str | os.PathLike[str], *, samples: Sequence[Any] = ()) -> None:
        """Write the program, whole or not at all; the name must end in .pte or .tflite, as its kind says, or in .bpte.

        A `.bpte` is ExecuTorch's bundled program: the `.pte` with inputs, the `samples` or the example inputs it was compiled
        with, and the outputs that they must give.
        A `.pte` compiled with `dump_intermediates=True` gets its debug bundle beside it, the folder `NAME.debug`, where
        `openneutron verify` and `openneutron profile` find it.

        Example:
            >>> program.save("model.pte")
        """
        target = check_target(path, f".{self.kind}", *((".bpte",) if self.kind == "pte" else ()))
        if target.suffix == ".bpte":
            write_file(target, self.to_bundled_program(samples))
            return
        if samples:
            raise OptionError("samples are for a .bpte", where=os.fspath(path), hint="leave them out")
        write_file(target, self.data)
        if self.kind == "pte" and self.intermediates:
            folder = make_folder(bundle_of(target))
            for name, content in self.intermediates.items():
                write_file(folder / name, content)

    def run(self, *inputs: Any, **named: Any) -> Any:
        """Run on this machine and return all outputs; inputs are tensors or arrays, by position or by name.

        Outputs are a tuple, also a single one. A PyTorch model that takes or returns mappings, lists or nested tuples takes
        and returns them here too.

        A `.pte` gives torch tensors and runs in the stock ExecuTorch runtime with our delegate. A LiteRT model gives numpy
        arrays; its NeutronGraphs run in the simulator, the rest in LiteRT's reference kernels.

        Example:
            >>> (scores,) = program.run(image)
            >>> (scores,) = program.run({"image": image})
        """
        return self._rebuild(self._runner(*self._arguments(inputs, named)))

    def run_many(self, samples: Iterable[Any], *, threads: int = 0) -> list[Any]:
        """Run on many samples: the results of `run` on each, in their order.

        A sample is what `run` takes: one tensor or array, a tuple of them, or a mapping by name. A program that is one
        delegate or one NeutronGraph runs on `threads` threads of the driver; 0 takes OPENNEUTRON_THREADS, else as many as
        there are processors for this process. Samples of other programs, and of those that keep state from run to run,
        run one after the other. An error names its sample, counted from 0.

        Example:
            >>> [scores.argmax() for (scores,) in program.run_many(images)]
        """
        if not 0 <= threads <= environment.MOST_THREADS:
            raise OptionError(f"{threads} threads were asked for", hint=f"give 1 to {environment.MOST_THREADS}")
        asked = [self._arguments(one if isinstance(one, (tuple, list)) else (one,), {}) for one in samples]
        from openneutron.run.samples import run_samples  # only a program that is run needs it

        found = run_samples(self._runner, asked, threads=threads or environment.threads())
        return [self._rebuild(results) for results in found]

    def reset(self) -> None:
        """Begin a new stream: what the model keeps from run to run is as it was before the first.

        Example:
            >>> program.run(frame), program.run(frame)
            >>> program.reset()
        """
        self.__dict__.pop("_runner", None)

    def to_bundled_program(self, samples: Sequence[Any] = ()) -> bytes:
        """Return the bytes of a `.bpte`: the program with samples, or its example inputs, and the outputs they must give."""
        found = [one if isinstance(one, (tuple, list)) else (one,) for one in samples] or [self.example_inputs]
        if not any(found):
            raise OptionError(
                "no example inputs are known", where=self.report.source, hint="give samples=[(input,), ...]"
            )
        from openneutron.executorch.deliver.bundle import bundle

        return bundle(self.pte, found, self._runner)

    def _rebuild(self, results: tuple[Any, ...]) -> Any:
        return results if self.structure is None else self.structure.rebuild(results)

    def _arguments(self, inputs: Sequence[Any], named: Mapping[str, Any]) -> Sequence[Any]:
        flat = None if self.structure is None else self.structure.flatten(inputs, named)
        if flat is not None:
            return flat
        if len(inputs) == 1 and isinstance(inputs[0], Mapping) and not named:
            named, inputs = dict(inputs[0]), ()
        return self._order_inputs(tuple(inputs), dict(named)) if named else inputs

    def _order_inputs(self, inputs: tuple[Any, ...], named: dict[str, Any]) -> list[Any]:
        """Inputs given by name in their order; a LiteRT file knows its own names."""
        if self.kind == "tflite" and not inputs:
            return [named]
        if inputs or set(named) != set(self.input_names):
            given = f"{len(inputs)} inputs by position and {', '.join(named)} by name were given"
            hint = f"give all by position, or by name: {', '.join(self.input_names) or 'their names are not known'}"
            raise OptionError(given, where=self.report.source, hint=hint)
        return [named[name] for name in self.input_names]

    @cached_property
    def _runner(self) -> Runner:
        return self.loader(self.data, self.report.source or f"<{self.kind}>")

    def _bytes(self, kind: Kind) -> bytes:
        if self.kind != kind:
            raise OptionError(f"this program is a .{self.kind} file", hint=f"its bytes are in program.{self.kind}")
        return self.data

    def __repr__(self) -> str:
        lines = [f"  {label}: {sentence}" for label, sentence in facts(self.report)]
        return "\n".join([f"<Program {title(self.report)}, {len(self.data):,} bytes", *lines, ">"])

    def __rich__(self) -> Any:
        return self.report.__rich__()

    def _repr_html_(self) -> str:
        return self.report._repr_html_()
