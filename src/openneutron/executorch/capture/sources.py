"""What can be compiled: a model of the zoo, a factory by its import path, an exported program, an ONNX or LiteRT file.

Finding out which of them a text names imports no torch; loading does. Two of them run their author's code: a
factory, and an exported program, which is why that is loaded only when the user says that it is trusted.

Example:
    >>> source = find("package.module:factory")
    >>> loaded = source.load()
    >>> openneutron.compile(loaded.model, loaded.example_inputs, calibration=loaded.calibration, name=loaded.name)
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from openneutron.errors import FormatError, OpenNeutronError, OptionError
from openneutron.files import kind_of, kind_of_file, read_file
from openneutron.unsupported_files import refuse_unsupported_file

if TYPE_CHECKING:
    from openneutron.quantize_litert.quantize import QuantizedModel

Kind = Literal["zoo", "factory", "pt2", "onnx", "tflite"]

_GIVES = (
    "it must give an nn.Module or ExportedProgram, or (module, example_inputs) or (module, example_inputs, calibration)"
)
# Files that people try, what they are, and what to give instead.
_FOREIGN = {
    ".py": ("a Python file", "name the function in it that makes the model: {stem}:factory"),
}
_NAMED: dict[str, Kind] = {".tflite": "tflite", ".onnx": "onnx", ".pt2": "pt2"}
_CONTENT = {"tflite": "tflite", "onnx": "onnx", "pt2": "zip"}
_SPOKEN = {"tflite": "a LiteRT model", "onnx": "an ONNX model", "zip": "a zip archive", "microcode": "microcode"}
_SAVE_IT = "write it with torch.export.save(torch.export.export(model, example_inputs), file)"
_RANDOM = (
    "calibrated with random numbers from 0 to 1: where nodes run and the cycles are right, accuracy is not; "
    "give real data with --calibration"
)
_ONE_SAMPLE = "calibrated with the example inputs alone: ranges of real data may differ; give calibration data"


class Loaded(NamedTuple):
    """A model ready for `openneutron.compile`.

    `model` is an nn.Module, an ExportedProgram or the path of a LiteRT file; only the first needs the other two.
    `notes` are what a user should know about how it was loaded; `inputs` and `outputs` are an ONNX model's own names.
    """

    name: str
    model: Any
    example_inputs: tuple[Any, ...] | None = None
    calibration: list[tuple[Any, ...]] | None = None
    notes: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()

    @property
    def is_module(self) -> bool:
        """Whether it is an nn.Module, which alone can be quantized in different ways."""
        import torch

        return isinstance(self.model, torch.nn.Module)


@dataclass(frozen=True)
class Source:
    """A text that names a model, and what kind of model it names.

    `stem` is what files made from it are called; `arguments` are what a factory is called with.
    """

    text: str
    kind: Kind
    sizes: Mapping[str, int | tuple[int, ...]] = field(default_factory=dict)
    calibration: str = ""
    trust: bool = False
    arguments: Mapping[str, Any] = field(default_factory=dict)
    cut: bool = False  # an ONNX detector ends where top-k and non-maximum suppression begin

    @property
    def stem(self) -> str:
        """A file name without ending."""
        if self.kind == "factory":
            return self.text.rpartition(":")[2].rpartition(".")[2]
        return self.text if self.kind == "zoo" else Path(self.text).stem

    def load(self) -> Loaded:
        """Load the model; every way to fail is an `OpenNeutronError`."""
        if self.sizes and self.kind != "onnx":
            raise OptionError("sizes are for ONNX models", where=self.text, hint="other models have fixed shapes")
        if self.trust and self.kind != "pt2":
            raise OptionError("trust is for .pt2 files", where=self.text, hint="leave it out")
        if self.kind == "tflite":
            return Loaded(Path(self.text).name, self.text, calibration=self._litert_calibration())
        if self.kind == "onnx":
            return _of_onnx(self.text, self.sizes, self.calibration, self.cut)
        loaded = self._load()
        if not self.calibration:
            return loaded
        if loaded.example_inputs is None:
            raise OptionError("the program is quantized already", where=self.text, hint="leave calibration out")
        from openneutron.executorch.capture.batches import names_of
        from openneutron.executorch.capture.calibration import read_calibration

        samples = read_calibration(self.calibration, loaded.example_inputs, names_of(loaded.model))
        return loaded._replace(calibration=samples, notes=())

    def litert_model(self) -> QuantizedModel:
        """The LiteRT model of a file as it is, or, where calibration data is given, quantized."""
        from openneutron.quantize_litert.quantize import QuantizedModel, quantize_float

        data, samples = read_file(self.text), self.load().calibration
        if samples is None:
            return QuantizedModel(data, (), "")
        return quantize_float(data, samples, source=self.text)

    def _litert_calibration(self) -> Any:
        """Samples for a float LiteRT model; what they are `openneutron.compile` checks."""
        if not self.calibration:
            return None
        path = Path(self.calibration)
        if path.suffix in (".npz", ".npy"):
            from openneutron.quantize_litert.quantize import stored_samples

            return stored_samples(path)
        if path.exists() or ":" not in self.calibration:
            from openneutron.executorch.capture.samples import read_saved

            return read_saved(path)
        made = import_object(self.calibration)
        return made() if callable(made) else made

    def _load(self) -> Loaded:
        if self.kind == "zoo":
            from openneutron import zoo

            model = zoo.load(self.text)
            return Loaded(self.text, model.model, model.example_inputs, model.calibration)
        if self.kind == "pt2":
            return _load_exported(self.text, self.trust)
        return _call_factory(self.text, self.stem, self.arguments)


def find(
    text: str,
    *,
    sizes: Mapping[str, int | tuple[int, ...]] | None = None,
    calibration: str = "",
    trust: bool = False,
) -> Source:
    """The source a text names; an `OptionError` says what else it could have been.

    `sizes` are for open dimensions of an ONNX model, `calibration` names data for a float model, `trust` allows an
    exported program to be loaded.

    Example:
        >>> find("cifarnet").kind
        'zoo'
    """
    return replace(_find_source(text), sizes=sizes or {}, calibration=calibration, trust=trust)


def _find_source(text: str) -> Source:
    path = Path(text)
    if path.suffix in _NAMED:
        return Source(text, _kind_of_file(path))
    from openneutron import zoo

    if text in zoo.names():
        return Source(text, "zoo")
    if path.exists():
        return Source(text, _kind_of_file(path))
    module, colon, factory = text.partition(":")
    if colon:
        if module.endswith(".py"):
            dotted = module.removesuffix(".py").removeprefix("./").replace("/", ".")
            raise OptionError("factories are named by modules, not files", where=text, hint=f"write {dotted}:{factory}")
        if not all(part.isidentifier() for part in [*module.split("."), *factory.split(".")]):
            raise OptionError("this is no import path", where=text, hint="write package.module:factory")
        return Source(text, "factory")
    if "/" in text or "." in text:
        hint = "give a .tflite, .onnx or .pt2 file, package.module:factory, or a name of the zoo"
        raise OptionError("there is no such file", where=text, hint=hint)
    if path.with_suffix(".py").is_file():
        raise OptionError("this is a Python module", where=text, hint=f"name the function in it: {text}:factory")
    raise zoo.UnknownModelError(text, zoo.names())


def _kind_of_file(path: Path) -> Kind:
    refuse_unsupported_file(path)
    kind = kind_of_file(path)
    if kind == "pte":
        raise OptionError(
            "this is a compiled ExecuTorch program already", where=str(path), hint="`openneutron inspect`"
        )
    if path.suffix in _FOREIGN:
        what, hint = _FOREIGN[path.suffix]
        raise OptionError(f"this is {what}", where=str(path), hint=hint.format(stem=path.stem))
    named = _NAMED.get(path.suffix)
    # The name decides and the content must agree: a file named .tflite never leads to an archive's pickles being loaded.
    if named is not None and kind and kind != _CONTENT[named]:
        raise FormatError(f"the name says {_SPOKEN[_CONTENT[named]]}, the content is {_SPOKEN[kind]}", where=str(path))
    if named is None and kind == "zip":
        is_checkpoint = "torch.save wrote it, so it holds weights or a pickled module"
        cause = is_checkpoint if _is_checkpoint(str(path)) else "it is a zip archive; theirs are named .pt2"
        raise FormatError(f"this is no exported program: {cause}", where=str(path), hint=_SAVE_IT)
    return named or ("onnx" if kind == "onnx" else "tflite")


def _load_exported(text: str, trust: bool) -> Loaded:
    data = read_file(text)
    if kind_of(data) != "zip":
        raise FormatError("this is no exported program: it is no zip archive", where=text, hint=_SAVE_IT)
    if not trust:
        raise OptionError(
            "loading an exported program can run code that is hidden in it", where=text,
            hint="give --trust (trust=True) if you know who wrote it, or export the model to ONNX",
        )  # fmt: skip
    import torch

    from openneutron.executorch.capture.pickles import scan

    scan(data, where=text)

    try:
        program = torch.export.load(text)
    except Exception as error:
        first = str(error).strip().rstrip(".").splitlines()
        cause = f"{type(error).__name__}: {first[0] if first else 'no message'}"
        if _is_checkpoint(text):
            cause = "torch.save wrote it, so it holds weights or a pickled module"
        raise FormatError(
            f"this is no exported program: {cause}",
            where=text, hint=_SAVE_IT,
        ) from error  # fmt: skip
    return _of_program(Path(text).stem, program, None, None, where=text)


def _of_onnx(text: str, sizes: Mapping[str, int | tuple[int, ...]], calibration: str, cut: bool) -> Loaded:
    """An ONNX model: a quantized one as a program, a float one as a module with the data named, or random numbers."""
    from openneutron.onnx.importer import load

    found = load(text, sizes=sizes, cut=cut, anew=bool(calibration))
    name = Path(text).stem
    if found.quantized:
        if calibration:
            raise OptionError("the model is quantized already", where=text, hint=found.keeps_scales)
        return Loaded(name, found.program, found.example_inputs, None, found.notes, found.inputs, found.outputs)
    samples, notes = [found.example_inputs], (*found.notes, _RANDOM)
    if calibration:
        from openneutron.executorch.capture.calibration import read_calibration

        samples, notes = read_calibration(calibration, found.example_inputs, found.inputs), found.notes
    return Loaded(name, found.module, found.example_inputs, samples, notes, found.inputs, found.outputs)


def _is_checkpoint(text: str) -> bool:
    """Whether `torch.save` wrote the file: a zip archive with a pickle in its top folder."""
    import zipfile

    try:
        with zipfile.ZipFile(text) as archive:
            return any(name.count("/") == 1 and name.endswith("/data.pkl") for name in archive.namelist())
    except (OSError, zipfile.BadZipFile):
        return False


def _of_program(name: str, program: Any, examples: Any, calibration: Any, *, where: str) -> Loaded:
    """A quantized program as it is; one in float with the inputs it was exported with as calibration data."""
    from openneutron.executorch.fx import is_quantize

    if any(is_quantize(node) for node in program.graph.nodes):
        return Loaded(name, program)
    from openneutron.executorch.capture.structure import flat, structure_of_program

    structure = structure_of_program(program)
    if structure is not None and (examples is not None or program.example_inputs):
        from openneutron.executorch.capture.batches import check_data

        given = check_data(program, examples, calibration, trained=False)
        model, samples = flat(program, structure), given.batches
        if samples is None and given.inputs is not None:
            return Loaded(name, model, given.inputs, [given.inputs], (_ONE_SAMPLE,))
        return Loaded(name, model, given.inputs, samples, given.notes)
    if examples is None:
        args, kwargs = program.example_inputs or ((), {})
        if not args or kwargs:
            raise OptionError(
                "the program is in float and keeps no example inputs to calibrate with", where=where,
                hint="export it with positional inputs, or quantize it before",
            )  # fmt: skip
        examples = tuple(args)
    if calibration is None:
        return Loaded(name, program, examples, [examples], (_ONE_SAMPLE,))
    return Loaded(name, program, examples, calibration)


def _call_factory(text: str, name: str, arguments: Mapping[str, Any]) -> Loaded:
    factory = import_object(text)
    import torch

    from openneutron import zoo

    kinds = (torch.nn.Module, torch.export.ExportedProgram, tuple, zoo.ZooModel)
    made = factory
    spoken = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
    if isinstance(factory, type) or (callable(factory) and not isinstance(factory, kinds)):
        try:
            made = factory(**arguments)
        except OpenNeutronError:
            raise
        except Exception as error:
            called = f"it is called with {spoken or 'no arguments'}; --debug shows where it fails"
            raise OptionError(
                f"the factory failed: {type(error).__name__}: {' '.join(str(error).split()) or 'no message'}",
                where=text, hint=_remedy(error) or called,
            ) from error  # fmt: skip
    elif arguments:
        raise OptionError(f"it takes no arguments, {spoken} was given", where=text, hint="name a function or class")
    if isinstance(made, zoo.ZooModel):
        return Loaded(name, made.model, made.example_inputs, made.calibration)
    model, examples, calibration = _parts(made, text)
    if isinstance(model, torch.export.ExportedProgram):
        return _of_program(name, model, examples, calibration, where=text)
    if not isinstance(model, torch.nn.Module):
        raise OptionError(f"the factory gave a {type(model).__name__}", where=text, hint=_GIVES)
    if examples is None:
        raise OptionError("the factory gave a module without example inputs", where=text, hint=_GIVES)
    from openneutron.executorch.capture.batches import check_data
    from openneutron.executorch.capture.structure import flat

    given = check_data(model, examples, [examples] if calibration is None else calibration, trained=False)
    if given.structure is not None:
        model = flat(model, given.structure)
    return Loaded(name, model, given.inputs, given.batches, given.notes if calibration is not None else (_ONE_SAMPLE,))


def _parts(made: Any, text: str) -> tuple[Any, Any, Any]:
    """Module, example inputs, calibration; a module may bring its example inputs as an attribute of that name."""
    import torch

    if not isinstance(made, tuple):
        own = getattr(made, "example_inputs", None) if isinstance(made, torch.nn.Module) else None
        own = own() if callable(own) else own
        return made, own, None
    if len(made) not in (2, 3):
        raise OptionError(f"the factory gave {len(made)} things", where=text, hint=_GIVES)
    return made[0], made[1], made[2] if len(made) == 3 else None


def _remedy(error: Exception) -> str:
    """What helps against failures of other packages that many people meet; "" for others."""
    if "torchvision::nms" in str(error):
        return (
            "this torchvision is built for CUDA, torch is not: pip install --no-deps torchvision==0.28.0+cpu "
            "--index-url https://download.pytorch.org/whl/cpu (docs/install.md)"
        )
    return ""


def import_object(text: str) -> Any:
    """The object at `package.module:name`, with the current folder first on the path, as `python -m` has it."""
    module_name, _, path = text.partition(":")
    here = str(Path.cwd())
    added = here not in sys.path and "" not in sys.path
    if added:
        sys.path.insert(0, here)
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        missing = error.name or module_name
        own = module_name == missing or module_name.startswith(f"{missing}.")
        hint = f"run it where {missing.partition('.')[0]} is importable" if own else f"{module_name} imports it"
        raise OptionError(f"there is no module {missing!r}", where=text, hint=hint) from error
    except Exception as error:
        message = " ".join(str(error).split()) or "no message"
        raise OptionError(
            f"importing {module_name} failed: {type(error).__name__}: {message}", where=text, hint=_remedy(error)
        ) from error
    finally:
        if added and here in sys.path:
            sys.path.remove(here)
    for part in path.split("."):
        if not hasattr(found, part):
            raise OptionError(f"{module_name} has no {path!r}", where=text, hint=_list_names(found))
        found = getattr(found, part)
    return found


def _list_names(module: Any) -> str:
    names = [name for name in dir(module) if not name.startswith("_")]
    return f"it has {', '.join(names[:8])}{', …' if len(names) > 8 else ''}" if names else "it is empty"
