"""Running programs: our delegate in the stock ExecuTorch runtime of the installed wheel.

Example:
    >>> program = load_program("model.pte")
    >>> (scores,) = program.run(torch.zeros(1, 3, 32, 32))
"""

from __future__ import annotations

import os
import re
import threading
import warnings
from collections.abc import Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from openneutron.errors import FormatError, OpenNeutronError, OptionError, RuntimeFailure
from openneutron.executorch.run.direct import Direct, direct_of
from openneutron.executorch.run.inputs import arrange_inputs
from openneutron.executorch.run.native_log import DelegateLibrary, Outcome
from openneutron.executorch.upstream.versions import check_delegate
from openneutron.machine.native import delegate_path
from openneutron.microcode.decode import header_of
from openneutron.microcode.payload import BACKEND_ID, payloads_of_pte
from openneutron.microcode.pte import computing_methods, read_plan
from openneutron.microcode.seal import check_seal

if TYPE_CHECKING:
    from torch import Tensor

_METHOD: Final = "forward"  # what torch.export calls a module's only entry
_DELEGATE: Final = "OPENNEUTRON_DELEGATE"  # another library to load as the delegate
_QUANTIZE: Final = "quantized_decomposed::quantize_per_tensor.out"  # one operator of the quantized kernels

_lock = threading.Lock()
_library: DelegateLibrary | None = None


def register_runtime() -> None:
    """Make `.pte` files with Neutron delegates run in this process, through `executorch.runtime` or ours.

    Loads the delegate and the quantize/dequantize kernels once; later calls do nothing.

    Example:
        >>> register_runtime()
        >>> executorch.runtime.Runtime.get().backend_registry.is_available("NeutronBackend")
        True
    """
    _delegate()


def load_program(
    pte: bytes | str | os.PathLike[str], *, target: str | None = None, etdump: bool = False, where: str = "<pte>"
) -> LoadedProgram:
    """Load an ExecuTorch program from bytes or a file, ready to run.

    `where` names bytes in messages.

    With `target`, a program that holds a delegate for another target is refused. With `etdump`, runs are recorded for
    `LoadedProgram.write_etdump`.

    Example:
        >>> outputs = load_program(Path("model.pte").read_bytes()).run(image)
    """
    where = where if isinstance(pte, bytes) else os.fspath(pte)
    data = pte if isinstance(pte, bytes) else _read(Path(pte))
    sealed = check_seal(data, where=where)
    if target is not None or not sealed:
        for payload in payloads_of_pte(data, where=where):
            if target is not None and payload.target not in ("", target):
                raise RuntimeFailure(
                    f"the program was compiled for {payload.target}, not for {target}",
                    where=where,
                    hint=f"compile it with target={target!r}",
                )
    return LoadedProgram(data, where=where, etdump=etdump)


def runner_of(data: bytes, where: str) -> LoadedProgram:
    """What a `Program` runs a .pte with; `where` is its model's name, the bytes have none of their own."""
    return load_program(data)


class LoadedProgram:
    """A program in the stock runtime; made by `load_program`. `inputs` and `outputs` say what it takes and gives.

    `methods` are those beside `forward`.
    """

    def __init__(self, data: bytes, *, where: str, etdump: bool) -> None:
        self._where = where
        self._etdump = etdump
        self._library = _delegate()
        self._data = data
        self.reset()
        plan = read_plan(data, where=where, with_payloads=False)  # which would be copied
        self.inputs, self.outputs = plan.inputs, plan.outputs
        self.methods = {
            name: read_plan(data, where=where, with_payloads=False, method=name)
            for name in computing_methods(data, where=where)
            if name != _METHOD
        }

    def reset(self) -> None:
        """Begin again: what the program keeps from run to run is as it was when loaded, and nothing is recorded.

        Example:
            >>> first = program.run(frame)
            >>> program.reset()
            >>> again = program.run(frame)
        """
        runtime = _stock_runtime()
        # Without a debug buffer: given one, ETDump keeps every tensor of every run and ends the process when it is full.
        loading = self._library.watch(lambda: runtime.load_program(self._data, enable_etdump=self._etdump))
        if loading.error is not None:
            raise FormatError(
                f"not a program that this ExecuTorch can load: {loading.sentence}", where=self._where
            ) from loading.error
        self._program = loading.value
        names = self._program.method_names
        if _METHOD not in names:
            raise FormatError(
                f"the program has no method {_METHOD}, only {', '.join(sorted(names))}", where=self._where
            )
        self._loaded = {_METHOD: self._load(_METHOD)}

    def _load(self, name: str) -> Any:
        method = self._library.watch(partial(self._program.load_method, name))
        # The wheel hands out a method with unresolved instructions, logs them, and crashes when it runs.
        if method.error is not None or method.lines:
            raise _failure(method, self._where) from method.error
        return method.value

    def run(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        """Run `forward` once; outputs are copies that later runs do not touch.

        Example:
            >>> (scores,) = program.run(image)
        """
        return self._execute(_METHOD, arrange_inputs(self.inputs, inputs, where=self._where))

    def run_method(self, name: str, *inputs: Tensor) -> tuple[Tensor, ...]:
        """Run another of the program's methods, which are in `methods`, once; it changes the same state as `forward`.

        Example:
            >>> (logits,) = program.run_method("prefill", tokens, positions)
        """
        if name not in self.methods:
            known = ", ".join((_METHOD, *self.methods))
            raise OptionError(f"there is no method {name!r}", where=self._where, hint=f"methods: {known}")
        where = f"{self._where}, method {name}"
        arranged = arrange_inputs(self.methods[name].inputs, inputs, where=where)
        if name not in self._loaded:
            self._loaded[name] = self._load(name)
        return self._execute(name, arranged)

    def _execute(self, name: str, arranged: Sequence[Tensor]) -> tuple[Tensor, ...]:
        outcome = self._library.watch(lambda: self._loaded[name].execute(arranged))
        if outcome.error is not None:
            raise _failure(outcome, self._where) from outcome.error
        return tuple(outcome.value)

    __call__ = run

    def many(self, samples: Sequence[Sequence[Any]], *, threads: int) -> list[tuple[Tensor, ...]]:
        """Outputs of samples up to the first that has to be run alone; of all where the program is one delegate.

        Example:
            >>> program.many([(image,), (another,)], threads=2)
        """
        return self._direct.run(samples, threads=threads) if self._direct is not None else []

    @cached_property
    def _direct(self) -> Direct | None:
        return None if self._etdump or os.environ.get(_DELEGATE) else direct_of(self._data, where=self._where)

    @cached_property
    def keeps_state(self) -> bool:
        """Whether a run depends on those before it: a delegate has state, or an operator changes a buffer in place."""
        plan = read_plan(self._data, where=self._where)
        changed = any(name.partition("::")[2].partition(".")[0].endswith("_") for name in plan.operators)
        return changed or any(
            payload.converter == "open" and header_of(payload.microcode)["state_bytes"]
            for payload in payloads_of_pte(self._data, where=self._where)
        )

    @cached_property
    def constants(self) -> dict[str, Any]:
        """What the program's methods without inputs give, by name: facts for those who run it, such as get_max_seq_len.

        Example:
            >>> load_program("decoder.pte").constants["get_vocab_size"]
            512
        """
        found: dict[str, Any] = {}
        for name in sorted(self._program.method_names - {_METHOD, *self.methods}):
            method = self._load(name)
            if method.metadata.num_inputs():
                continue
            outcome = self._library.watch(partial(method.execute, []))
            if outcome.error is not None:
                raise _failure(outcome, self._where) from outcome.error
            values = list(outcome.value)
            found[name] = values[0] if len(values) == 1 else values
        return found

    def write_etdump(self, path: str | os.PathLike[str]) -> None:
        """Write the events of the runs so far for `executorch.devtools.Inspector`; needs `etdump=True` on loading.

        Example:
            >>> program.write_etdump("model.etdp")
        """
        if not self._etdump:
            raise RuntimeFailure("nothing was recorded", where=self._where, hint="load the program with etdump=True")
        self._program.write_etdump_result_to_file(os.fspath(path), os.devnull)


def _failure(outcome: Outcome, where: str) -> RuntimeFailure:
    word = re.search(r"driver error 0x([0-9a-f]+)", outcome.sentence)
    return RuntimeFailure(outcome.sentence, where=where, code=int(word.group(1), 16) if word else 0)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise FormatError(f"the program cannot be read ({error.strerror})", where=str(path)) from error


def _delegate() -> DelegateLibrary:
    """The delegate library, loaded and registered on the first call."""
    global _library
    with _lock:
        if _library is None:
            _library = _register()
        return _library


def _register() -> DelegateLibrary:
    check_delegate()
    runtime = _stock_runtime()
    if BACKEND_ID in runtime.backend_registry.registered_backend_names:
        raise _name_taken()
    override = os.environ.get(_DELEGATE)
    library = DelegateLibrary(Path(override) if override else delegate_path())
    if not library.registered:
        raise _name_taken()
    _load_quantized_kernels(runtime)
    return library


def _name_taken() -> OpenNeutronError:
    return OpenNeutronError(
        f"another library of this process already registered a backend named {BACKEND_ID}",
        hint="call openneutron.register_runtime() in a process that does not load NXP's own runtime",
    )


def _load_quantized_kernels(runtime: Any) -> None:
    # The export-time library registers the run-time kernels as well, and must not be joined by a second copy of them.
    import executorch.kernels.quantized  # noqa: F401

    if _QUANTIZE not in runtime.operator_registry.operator_names:
        raise OpenNeutronError(
            "the quantized kernels of the executorch wheel could not be loaded", hint="reinstall executorch"
        )


def _stock_runtime() -> Any:
    with warnings.catch_warnings():
        # The wheel announces on every import that its Python interface is experimental.
        warnings.simplefilter("ignore")
        from executorch.runtime import Runtime

        return Runtime.get()
