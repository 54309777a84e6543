"""The calls that the studio's page makes: a name, parameters, and a result that JSON can hold.

Both engines answer them: the server of an installed OpenNeutron, which does the work in sandboxed processes, and Pyodide, which
does it in the page's worker.

Example:
    >>> api = Api(session, perform)
    >>> api.call("fits", {"model": model.id}, print)["rows"]
"""

from __future__ import annotations

import base64
import binascii
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from openneutron._version import __version__
from openneutron.errors import OpenNeutronError, OptionError
from openneutron.machine import targets
from openneutron.options import DEFAULT_TARGET, OPTIMIZE, SCHEMA, check_options, read_text
from openneutron.studio.session import MOST_UPLOAD_BYTES, SUFFIXES, Model, Session, Variant, describe_model, safe_stem
from openneutron.studio.work import OUTPUTS, PAGE, PAIR, PROGRAM, PROJECT, REPORT, SELECTION, Stage

_FLAGS = {one.flag: one for one in SCHEMA.values() if one.flag}
# Options that name files of this machine, or run code: not for a page.
_NOT_HERE = frozenset({"quantization", "intermediates_dir", "converter", "trust"})


@dataclass(frozen=True)
class Done:
    """A finished piece of work: what it returned and the files it left."""

    value: dict[str, Any]
    files: Mapping[str, bytes]


class Perform(Protocol):
    """Does a piece of `work` that may read some paths, given extra files by name."""

    def __call__(
        self, work: str, given: Mapping[str, Any], stage: Stage, *, reads: list[str], files: Mapping[str, bytes]
    ) -> Done:
        """Return the result, or raise the work's error."""


@dataclass(frozen=True)
class Abilities:
    """What an engine can do: `torch` for PyTorch and ONNX models, `reference` for checks by LiteRT and accuracy.

    `samples` are LiteRT models that come along in place of the zoo, as name and what it is.
    """

    name: str
    torch: bool = True
    reference: bool = True
    note: str = ""
    samples: Sequence[Mapping[str, str]] = ()


class Api:
    """The calls of one page."""

    def __init__(self, session: Session, perform: Perform, abilities: Abilities) -> None:
        self.session = session
        self._perform = perform
        self._abilities = abilities
        self._calls: dict[str, Callable[..., Any]] = {
            "hello": self._hello, "models": self._models, "zoo": self._zoo, "trust": self._trust,
            "remove": self._remove, "sizes": self._sizes, "fits": self._fits, "help": self._help,
            "compile": self._compile, "changes": self._changes, "report": self._report, "pair": self._pair,
            "open": self._open, "run": self._run, "files": self._files, "boards": self._boards, "project": self._project,
        }  # fmt: skip

    def call(self, name: str, parameters: Mapping[str, Any], stage: Stage) -> Any:
        """Answer one call of the page; an error that the user can correct is an `OpenNeutronError`."""
        if name not in self._calls:
            raise OptionError(f"the page asked for {name!r}", hint="load the page again")
        try:
            return self._calls[name](stage, **parameters)
        except OpenNeutronError as error:
            # Uploads lie in the session's folder, which nobody at the page knows: the file's name says enough.
            inside = re.compile(re.escape(f"{self.session.folder}/") + r"\w+/")
            for part in ("message", "where", "hint"):
                setattr(error, part, inside.sub("", getattr(error, part)))
            raise
        except TypeError as error:
            if "argument" not in str(error):
                raise
            raise OptionError(f"the call {name!r} has other parameters", hint="load the page again") from None

    def upload(self, name: str, data: bytes, model: str = "") -> dict[str, Any]:
        """Keep a dropped file: a model, or calibration data of one."""
        if not model and Path(name).suffix.lower() not in self._suffixes:
            shown, hint = Path(name).name[:120], self._abilities.note or f"give {', '.join(self._suffixes)}"
            raise OptionError("files of this name are not taken", where=shown, hint=hint)
        found = self.session.attach(model, name, data) if model else self.session.add_bytes(name, data)
        return describe_model(found)

    @property
    def _suffixes(self) -> tuple[str, ...]:
        return SUFFIXES if self._abilities.torch else (".tflite",)

    def download(self, variant: str, name: str) -> tuple[str, bytes]:
        """Return a file of a variant and the name to save it under."""
        found = self.session.variant(variant)
        known = {row["name"]: row["file"] for row in self._files(lambda _: None, variant=variant)}
        if name not in known:
            raise OptionError("there is no such file", where=name[:120], hint="load the page again")
        return name, (found.folder / known[name]).read_bytes()

    def _hello(self, stage: Stage) -> dict[str, Any]:
        chips = [targets.load(name) for name in judged_targets()]
        return {
            "version": __version__,
            "engine": self._abilities.name,
            "torch": self._abilities.torch,
            "reference": self._abilities.reference,
            "note": self._abilities.note,
            "suffixes": list(self._suffixes),
            "most_bytes": MOST_UPLOAD_BYTES,
            "optimize": list(OPTIMIZE),
            "zoo": _zoo_models() if self._abilities.torch else [dict(one) for one in self._abilities.samples],
            "chips": [
                {"name": one.name, "title": one.description, "sram": one.sram_bytes, "flash": one.flash_bytes,
                 "ram": one.ram, "clock": one.clock_hz, "processor": one.processor}
                for one in chips
            ],
        }  # fmt: skip

    def _models(self, stage: Stage) -> list[dict[str, Any]]:
        return [
            {**describe_model(model), "variants": [_variant(one) for one in self.session.variants(model.id)]}
            for model in self.session.models()
        ]

    def _zoo(self, stage: Stage, *, name: str) -> dict[str, Any]:
        return describe_model(self.session.add_zoo(name))

    def _trust(self, stage: Stage, *, model: str) -> dict[str, Any]:
        return describe_model(self.session.change(model, trust=True))

    def _sizes(self, stage: Stage, *, model: str, sizes: str) -> dict[str, Any]:
        return describe_model(self.session.change(model, sizes=tuple(sizes.split())))

    def _remove(self, stage: Stage, *, model: str) -> dict[str, Any]:
        self.session.remove(model)
        return {}

    def _fits(self, stage: Stage, *, model: str) -> dict[str, Any]:
        return self._do("fits", self.session.model(model), stage, chips=judged_targets()).value

    def _help(self, stage: Stage, *, model: str, chip: str, limits: Mapping[str, float]) -> dict[str, Any]:
        asked = {key: max(float(limits.get(key, 0)), 0) for key in ("sram", "flash", "milliseconds")}
        return self._do("help", self.session.model(model), stage, chip=targets.load(chip).name, limits=asked).value

    def _compile(
        self, stage: Stage, *, model: str, options: Mapping[str, Any] | None = None, change: str = ""
    ) -> dict[str, Any]:
        chosen = check_options({"target": DEFAULT_TARGET, **(options or {}), **options_of(change)})
        refused = sorted(_NOT_HERE & set(chosen))
        if refused:
            raise OptionError(f"{refused[0]} is not for the page", hint="`openneutron compile` takes it")
        chosen["target"] = targets.load(targets.canonical_name(chosen["target"])).name
        chosen = {name: value for name, value in chosen.items() if name == "target" or value != SCHEMA[name].default}
        done = self._do("compile", self.session.model(model), stage, options=chosen)
        return _variant(self.session.add_variant(model, label(chosen), chosen, done.files, done.value))

    def _open(self, stage: Stage, *, model: str) -> dict[str, Any]:
        done = self._do("open", self.session.model(model), stage)
        return _variant(self.session.add_variant(model, "as it is", {}, done.files, done.value))

    def _changes(self, stage: Stage, *, variant: str) -> dict[str, Any]:
        found = self.session.variant(variant)
        done = self._do(
            "changes", self.session.model(found.model), stage, options=dict(found.options),
            accuracy=self._abilities.reference,
        )  # fmt: skip
        return _variant(self.session.update_variant(variant, done.files, done.value))

    def _report(self, stage: Stage, *, variant: str) -> dict[str, str]:
        page = self.session.variant(variant).folder / PAGE
        if not page.is_file():
            raise OptionError("a compiled file has no report", hint="drop the model it was compiled from")
        return {"html": page.read_text("utf-8")}

    def _pair(self, stage: Stage, *, first: str, second: str) -> dict[str, Any]:
        paths = [str(self.session.variant(one).folder / REPORT) for one in (first, second)]
        given = {"first": paths[0], "second": paths[1]}
        done = self._perform("pair", given, stage, reads=paths, files={})
        return {**done.value, "html": done.files[PAIR].decode("utf-8")}

    def _run(
        self, stage: Stage, *, variant: str, inputs: str = "", seed: int = 0, check: bool = True
    ) -> dict[str, Any]:
        found = self.session.variant(variant)
        model = self.session.model(found.model)
        program = str(found.folder / PROGRAM)
        # A compiled file that was dropped has no source to compare with.
        source = model.as_request() if check and self._abilities.reference and REPORT in _names(found) else None
        files = {"inputs.npz": _decode(inputs)} if inputs else {}
        given = {
            "program": program, "name": model.name, "arrays": "inputs.npz" if inputs else "", "seed": int(seed),
            "model": source, "options": dict(found.options),
        }  # fmt: skip
        done = self._perform("run", given, stage, reads=[program, *model.reads], files=files)
        self.session.update_variant(variant, done.files, {})
        return done.value

    def _files(self, stage: Stage, *, variant: str) -> list[dict[str, Any]]:
        found = self.session.variant(variant)
        stem = safe_stem(self.session.model(found.model).name)
        suffix = found.options.get("target", "")
        base = f"{stem}_{suffix}" if suffix else stem
        kind = str(found.summary.get("kind", "tflite"))
        known = {
            PROGRAM: (f"{base}.{kind}", "the compiled program"),
            PAGE: (f"{base}_report.html", "the report, which opens offline"),
            REPORT: (f"{base}_report.json", "the report's data"),
            SELECTION: (f"{base}_kernel_selection.c", "links only the kernels this program calls"),
            OUTPUTS: (f"{base}_outputs.npz", "the outputs of the last run"),
            PROJECT: (
                f"{base}_project.zip",
                f"a project for {found.summary.get('project', {}).get('board', 'a board')}",
            ),
        }
        return [
            {"name": name, "what": what, "file": file, "bytes": (found.folder / file).stat().st_size}
            for file, (name, what) in known.items()
            if file in _names(found)
        ]

    def _boards(self, stage: Stage) -> dict[str, Any]:
        """Return what builds projects, and the boards they can be for; nothing where the C sources are not at hand."""
        from openneutron.project import PLATFORMS, boards
        from openneutron.project.runtime_sources import runtime_folder

        try:
            runtime_folder()
        except OptionError:
            return {"platforms": [], "boards": []}
        known = [boards.load(name) for name in boards.names()]
        return {
            "platforms": list(PLATFORMS),
            "boards": [{"name": one.name, "title": one.description, "platforms": one.platforms} for one in known],
        }

    def _project(self, stage: Stage, *, variant: str, platform: str, board: str) -> dict[str, Any]:
        from openneutron.project.runtime_sources import runtime_places

        found = self.session.variant(variant)
        program, name = str(found.folder / PROGRAM), self.session.model(found.model).name
        given = {"program": program, "name": name, "platform": platform, "board": board}
        done = self._perform("project", given, stage, reads=[program, *runtime_places()], files={})
        self.session.update_variant(variant, done.files, {"project": done.value})
        return done.value

    def _do(self, work: str, model: Model, stage: Stage, **more: Any) -> Done:
        if model.untrusted:
            hint = "allow it on the page if you know who wrote the file, or export the model to ONNX"
            raise OptionError(
                "loading an exported program can run code that is hidden in it", where=model.name, hint=hint
            )
        return self._perform(work, {"model": model.as_request(), **more}, stage, reads=model.reads, files={})


def judged_targets() -> list[str]:
    """Return the targets in the order of the page: chips, then processors without an NPU."""
    return sorted(targets.names(), key=lambda name: (targets.load(name).processor, name))


def options_of(change: str) -> dict[str, Any]:
    """Return the options that a command line such as a what-if's sets.

    Example:
        >>> options_of("--fit 56K --int8-io")
        {'fit_bytes': 57344, 'int8_io': True}
    """
    found: dict[str, Any]
    words, found = shlex.split(change), {}
    while words:
        flag = words.pop(0)
        if flag not in _FLAGS:
            raise OptionError(f"{flag!r} is no option of a compile", hint="`openneutron compile --help` lists them")
        option = _FLAGS[flag]
        if option.kind == "switch":
            found[option.name] = True
            continue
        if not words:
            raise OptionError(f"{flag} needs a value")
        value = read_text(option, words.pop(0))
        found[option.name] = (*found.get(option.name, ()), *value) if option.kind == "names" else value
    return found


def label(options: Mapping[str, Any]) -> str:
    """Return a variant's name: its chip and the options that differ from their defaults.

    Example:
        >>> label({"target": "mcxn94x", "optimize": "max"})
        'mcxn94x, --optimize max'
    """
    words = [str(options.get("target", ""))]
    for name, value in options.items():
        if name == "target" or value == SCHEMA[name].default:
            continue
        flag = SCHEMA[name].flag or name
        words.append(flag if value is True else f"{flag} {','.join(value) if isinstance(value, tuple) else value}")
    return ", ".join(filter(None, words))


def _variant(one: Variant) -> dict[str, Any]:
    return {"id": one.id, "model": one.model, "label": one.label, "options": dict(one.options), **one.summary}


def _names(variant: Variant) -> set[str]:
    return {path.name for path in Path(variant.folder).iterdir()}


def _decode(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise OptionError("the inputs arrived damaged", hint="choose them again") from None


def _zoo_models() -> list[dict[str, str]]:
    from openneutron.cli.zoo import describe_models

    return [{"name": name, "what": text} for name, text in describe_models().items()]
