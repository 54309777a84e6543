"""Models and compiled variants of one studio, in a folder that is removed with it.

Example:
    >>> with Session() as session:
    ...     model = session.add_bytes("model.tflite", data)
"""

from __future__ import annotations

import re
import secrets
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from threading import Lock
from typing import Any

from openneutron.errors import OptionError

# The largest flash of a known chip holds 64 MiB of INT8 weights, which are four times as large in float.
MOST_UPLOAD_BYTES = 256 << 20
MOST_MODELS = 32  # what a list on a page can show; each may take the bytes above on disk
MOST_VARIANTS = 64  # of one model
SUFFIXES = (".tflite", ".onnx", ".pte", ".pt2")
DATA_SUFFIXES = (".npz", ".npy")


@dataclass(frozen=True)
class Model:
    """A model as it was given: `source` is what the command line would take, a path or a zoo model's name.

    `kind` is "tflite", "onnx", "pte", "pt2" or "zoo"; `untrusted` says that loading it runs its author's code and nobody has
    allowed that yet.
    """

    id: str
    name: str
    kind: str
    bytes: int
    source: str
    trust: bool = False
    calibration: str = ""
    sizes: tuple[str, ...] = ()

    @property
    def untrusted(self) -> bool:
        """Whether the page has to ask before anything is done with it."""
        return self.kind == "pt2" and not self.trust

    def as_request(self) -> dict[str, Any]:
        """Return what `work` needs to know of it."""
        return {
            "source": self.source, "name": self.name, "trust": self.trust and self.kind == "pt2",
            "calibration": self.calibration, "sizes": self.sizes,
        }  # fmt: skip

    @property
    def reads(self) -> list[str]:
        """The files that work on it may read."""
        own = [] if self.kind == "zoo" else [str(Path(self.source).parent) if self.kind == "onnx" else self.source]
        return [*own, *filter(None, [self.calibration])]


@dataclass(frozen=True)
class Variant:
    """One compile of a model: its options, its summary, and the folder of its files."""

    id: str
    model: str
    label: str
    options: Mapping[str, Any]
    folder: Path
    summary: Mapping[str, Any] = field(default_factory=dict)


class Session:
    """Everything that one studio knows. Methods may be called from several threads."""

    def __init__(self, folder: Path | None = None) -> None:
        """Use a folder of the caller's, which is left as it is; without one make one that is removed at the end."""
        self._made = None if folder else tempfile.TemporaryDirectory(prefix="openneutron-studio-")
        self.folder = folder or Path(self._made.name if self._made else "").resolve()
        self._lock = Lock()
        self._models: dict[str, Model] = {}
        self._variants: dict[str, Variant] = {}

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        if self._made:
            self._made.cleanup()

    def dump(self) -> dict[str, Any]:
        """Return models and variants as JSON holds them; their files are in `folder`."""
        with self._lock:
            variants = [{**asdict(one), "folder": one.folder.name} for one in self._variants.values()]
            return {"models": [asdict(one) for one in self._models.values()], "variants": variants}

    def load(self, dumped: Mapping[str, Any]) -> None:
        """Take over what `dump` returned, for a folder of the same name with the same files."""
        models = [Model(**{**row, "sizes": tuple(row["sizes"])}) for row in dumped["models"]]
        variants = [
            Variant(**{**row, "folder": self.folder / row["model"] / row["folder"]}) for row in dumped["variants"]
        ]
        with self._lock:
            self._models = {one.id: one for one in models}
            self._variants = {one.id: one for one in variants}

    def add_bytes(self, name: str, data: bytes) -> Model:
        """Keep an uploaded file as a model."""
        suffix = check_name(name, SUFFIXES)
        if len(data) > MOST_UPLOAD_BYTES:
            raise too_large(len(data), name)
        made = self._new_folder()
        path = made / f"{safe_stem(name)}{suffix}"
        path.write_bytes(data)
        return self._add(Model(made.name, _printable_name(name), suffix[1:], len(data), str(path)))

    def add_path(self, path: Path) -> Model:
        """Use a file where it lies; the user named it on the command line."""
        suffix = check_name(path.name, SUFFIXES)
        if not path.is_file():
            raise OptionError("there is no such file", where=str(path))
        return self._add(
            Model(self._new_folder().name, path.name, suffix[1:], path.stat().st_size, str(path.resolve()))
        )

    def add_zoo(self, name: str) -> Model:
        """Add a model of the zoo; a second time it is the same one."""
        from openneutron import zoo

        if name not in zoo.names():
            raise zoo.UnknownModelError(name, zoo.names())
        found = next((model for model in self.models() if (model.kind, model.source) == ("zoo", name)), None)
        return found or self._add(Model(self._new_folder().name, name, "zoo", 0, name))

    def attach(self, model: str, name: str, data: bytes) -> Model:
        """Keep calibration data for a model; its variants compiled without it are removed."""
        suffix = check_name(name, DATA_SUFFIXES)
        path = self.folder / self.model(model).id / f"calibration{suffix}"
        path.write_bytes(data)
        return self.change(model, calibration=str(path))

    def change(self, model: str, **values: Any) -> Model:
        """Replace fields of a model; what was compiled before is no longer its."""
        with self._lock:
            self._models[model] = changed = replace(self._find_model(model), **values)
            gone = [variant for variant in self._variants.values() if variant.model == model]
            for variant in gone:
                del self._variants[variant.id]
        for variant in gone:
            shutil.rmtree(variant.folder, ignore_errors=True)
        return changed

    def remove(self, model: str) -> None:
        """Forget a model, its variants and their files."""
        self.change(model)
        with self._lock:
            gone = self._models.pop(model)
        shutil.rmtree(self.folder / gone.id, ignore_errors=True)

    def add_variant(
        self, model: str, label: str, options: Mapping[str, Any], files: Mapping[str, bytes], summary: Any
    ) -> Variant:
        """Keep a compile's files; the same options again replace the earlier variant."""
        with self._lock:
            owner = self._find_model(model)
            own = [one for one in self._variants.values() if one.model == model]
            same = [one for one in own if dict(one.options) == dict(options)]
            if len(own) - len(same) >= MOST_VARIANTS:
                raise OptionError(
                    f"there are {len(own)} variants of {owner.name}", hint="remove the model and add it again"
                )
            name = same[0].id if same else secrets.token_hex(6)
            folder = self.folder / owner.id / name
            folder.mkdir(exist_ok=True)
            for file, data in files.items():
                (folder / file).write_bytes(data)
            self._variants[name] = made = Variant(name, model, label, dict(options), folder, summary)
        return made

    def update_variant(self, variant: str, files: Mapping[str, bytes], summary: Mapping[str, Any]) -> Variant:
        """Replace files of a variant and add to its summary."""
        with self._lock:
            found = self._known_variant(variant)
            for file, data in files.items():
                (found.folder / file).write_bytes(data)
            self._variants[variant] = made = replace(found, summary={**found.summary, **summary})
        return made

    def models(self) -> list[Model]:
        """Return all models in the order they came."""
        with self._lock:
            return list(self._models.values())

    def model(self, name: str) -> Model:
        """Return one model; an error says that it is gone."""
        with self._lock:
            return self._find_model(name)

    def variants(self, model: str) -> list[Variant]:
        """Return the variants of a model in the order they were compiled."""
        with self._lock:
            return [one for one in self._variants.values() if one.model == model]

    def variant(self, name: str) -> Variant:
        """Return one variant; an error says that it is gone."""
        with self._lock:
            return self._known_variant(name)

    def _find_model(self, name: str) -> Model:
        if name not in self._models:
            raise OptionError("this model is no longer there", hint="drop its file again")
        return self._models[name]

    def _known_variant(self, name: str) -> Variant:
        if name not in self._variants:
            raise OptionError("this compile is no longer there", hint="compile the model again")
        return self._variants[name]

    def _add(self, model: Model) -> Model:
        with self._lock:
            if len(self._models) < MOST_MODELS:
                self._models[model.id] = model
                return model
        shutil.rmtree(self.folder / model.id, ignore_errors=True)
        raise OptionError(f"there are {MOST_MODELS} models on this page", hint="remove one")

    def _new_folder(self) -> Path:
        made = self.folder / secrets.token_hex(6)
        made.mkdir()
        return made


def check_name(name: str, suffixes: Sequence[str]) -> str:
    """Return the ending of a file's name; an error lists those that are taken."""
    suffix = Path(name).suffix.lower()
    if suffix not in suffixes:
        raise OptionError(
            "files of this name are not taken", where=_printable_name(name), hint=f"give {', '.join(suffixes)}"
        )
    return suffix


def too_large(count: int, name: str) -> OptionError:
    """Return the error for an upload over the limit."""
    hint = "the command line takes files of any size: `openneutron fits`, `openneutron report`"
    return OptionError(
        f"{count:,} bytes are over the page's {MOST_UPLOAD_BYTES:,}", where=_printable_name(name), hint=hint
    )


def safe_stem(name: str) -> str:
    """Return a file's name without ending, in characters that every system takes.

    Example:
        >>> safe_stem("../my model.tflite")
        'my_model'
    """
    return re.sub(r"[^\w.-]+", "_", Path(name).stem)[:80].strip("._") or "model"


def describe_model(model: Model) -> dict[str, Any]:
    """Return a model as the page sees it: without its place on the disk."""
    row = asdict(model)
    del row["source"]
    return {**row, "calibration": bool(model.calibration), "untrusted": model.untrusted}


def _printable_name(name: str) -> str:
    """A name without folders and control characters."""
    return "".join(one for one in Path(name).name if one.isprintable())[:120]
