"""Build build/playground/: the studio as static files, with the compiler in the page by Pyodide.

    make playground                        numpy from Pyodide's server, checked by the digest of its lock file
    make playground NUMPY_WASM=file.whl    numpy from a file: a wheel or zip for Pyodide's platform

It needs emcc (Emscripten; Pyodide's own version or one whose side modules it loads), npm, and the project's environment. The
page fetches nothing from anywhere else, so any server of static files can hold it.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
import zipfile
from pathlib import Path

import archives

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src"
RUNTIME = ROOT / "runtime"
STATIC = SOURCE / "openneutron" / "studio" / "static"
SERVER = "https://cdn.jsdelivr.net/pyodide/v{version}/full/{file}"
PYODIDE = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "pyodide-lock.json", "python_stdlib.zip")
PURE = ("flatbuffers", "jinja2", "markupsafe")  # distributions without compiled parts that matter
# Weights and data of networks that need PyTorch, and libraries of this machine.
LEFT_OUT = ("zoo", "lib")
PROJECT_SOURCES = ("firmware", "include", "cortex_m33")  # of the runtime, as a wheel has them
SAMPLES = ("cifarnet", "resnet8", "mobilenet_v2_cifar")  # the zoo's trained networks
STAMP = (1980, 1, 1, 0, 0, 0)  # the same sources make the same bytes
# -msimd128: every browser that runs this Pyodide has it. No contraction, as in runtime/CMakeLists.txt: results must not differ.
FLAGS = ("-O3", "-msimd128", "-DNDEBUG", "-std=c11", "-ffp-contract=off", "-fvisibility=hidden", "-DNEUTRON_NO_THREADS",
         "-fPIC", "-sSIDE_MODULE=1", "-sWASM_BIGINT=1")  # fmt: skip


class PlaygroundError(Exception):
    """A sentence for the user: what is missing, and what to do."""


def main() -> int:
    """Build the folder; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "playground")
    parser.add_argument("--numpy", default=os.environ.get("NUMPY_WASM", ""), help="numpy's wheel for Pyodide")
    parser.add_argument("--samples", nargs="*", default=SAMPLES, help="models of the zoo that come along")
    given = parser.parse_args()
    try:
        build(given.output, given.numpy, given.samples)
    except (PlaygroundError, archives.ArchiveError) as error:
        print(f"playground: {error}", file=sys.stderr)
        return 1
    total = sum(path.stat().st_size for path in given.output.rglob("*") if path.is_file())
    print(f"{given.output}: {total:,} bytes; serve it with `python3 -m http.server -d {given.output}`")
    return 0


def build(output: Path, numpy: str, samples: list[str] | tuple[str, ...]) -> None:
    """Make the folder anew; a failure leaves an older one as it was."""
    made = output.with_name(f"{output.name}.new")
    shutil.rmtree(made, ignore_errors=True)
    for folder in ("pyodide", "packages", "models"):
        (made / folder).mkdir(parents=True)
    try:
        pyodide = archives.fetch("pyodide")
        for name in PYODIDE:
            shutil.copyfile(pyodide / name, made / "pyodide" / name)
        shutil.copyfile(numpy_for(pyodide, numpy, made), made / "packages" / "numpy.zip")
        library = compile_library(made)
        pack_python(made / "packages" / "openneutron.zip", library)
        library.unlink()
        write_page(made)
        write_samples(made / "models", samples)
        (made / "NOTICE.txt").write_text(notice(pyodide), "utf-8")
        (made / ".nojekyll").touch()
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise
    shutil.rmtree(output, ignore_errors=True)
    made.rename(output)


def numpy_for(pyodide: Path, given: str, work: Path) -> Path:
    """Return numpy's wheel for the page: the given file, or Pyodide's own, which its lock file names with a digest."""
    if given:
        path = Path(given).expanduser()
        if not path.is_file() or not zipfile.is_zipfile(path):
            raise PlaygroundError(f"{path} is no wheel or zip of numpy for Pyodide")
        return path
    pin = json.loads((pyodide / "pyodide-lock.json").read_text("utf-8"))["packages"]["numpy"]
    address = SERVER.format(version=archives.pins()["pyodide"]["version"], file=pin["file_name"])
    try:
        with urllib.request.urlopen(address, timeout=120) as answer:
            data = answer.read()
    except (urllib.error.URLError, TimeoutError) as error:
        hint = "give a file: make playground NUMPY_WASM=numpy-….whl"
        raise PlaygroundError(f"{address} cannot be fetched ({error}); {hint}") from None
    if hashlib.sha256(data).hexdigest() != pin["sha256"]:
        raise PlaygroundError(f"{address} is not the file that Pyodide's lock file names")
    path = work / "packages" / "numpy.download"
    path.write_bytes(data)
    return path


def compile_library(work: Path) -> Path:
    """Compile driver, kernels and cycle model to a side module of WebAssembly."""
    if shutil.which("emcc") is None:
        raise PlaygroundError("emcc is not there: install Emscripten (apt-get install emscripten, or its emsdk)")
    kinds = ("driver", "dsp", "kernels", "machine")
    folders = ("firmware", *(f"firmware/{kind}" for kind in kinds), "host/driver", "host/simd")
    sources = [path for folder in folders for path in sorted((RUNTIME / folder).glob("*.c"))]
    includes = [f"-I{RUNTIME / folder}" for folder in ("include", *folders)]
    version = re.search(r'__version__ = "([^"]+)"', (SOURCE / "openneutron" / "_version.py").read_text("utf-8"))
    if version is None:
        raise PlaygroundError("_version.py has no version")
    library = work / "libopenneutron.so"
    command = [
        "emcc",
        *FLAGS,
        f'-DOPENNEUTRON_VERSION="{version[1]}"',
        *includes,
        *map(str, sources),
        "-o",
        str(library),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise PlaygroundError(f"emcc failed:\n{done.stderr.strip()}")
    return library


def pack_python(target: Path, library: Path) -> None:
    """Write the package without its PyTorch half, its pure dependencies, the library, and what projects need into one zip."""
    entries = {"openneutron/lib/libopenneutron.so": library.read_bytes()}
    entries["openneutron/runtime/LICENSE"] = (ROOT / "LICENSE").read_bytes()
    for part in PROJECT_SOURCES:
        for path in sorted((RUNTIME / part).rglob("*")):
            if path.is_file():
                entries[f"openneutron/runtime/{path.relative_to(RUNTIME).as_posix()}"] = path.read_bytes()
    package = SOURCE / "openneutron"
    for path in sorted(package.rglob("*")):
        parts = path.relative_to(package).parts
        if (
            path.is_file()
            and "__pycache__" not in parts
            and parts[0] not in LEFT_OUT
            and path.suffix not in (".so", ".pyc")
        ):
            entries[f"openneutron/{'/'.join(parts)}"] = path.read_bytes()
    for name in PURE:
        for file in importlib.metadata.files(name) or ():
            licence = "LICEN" in file.name.upper() or file.name == "METADATA"
            if file.suffix == ".py" or (licence and ".dist-info" in str(file)):
                entries[str(file)] = Path(str(file.locate())).read_bytes()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in sorted(entries.items()):
            archive.writestr(zipfile.ZipInfo(name, STAMP), data, zipfile.ZIP_DEFLATED)


def write_page(folder: Path) -> None:
    """Copy the studio's page, with the engine and the policy in it that a server would send."""
    from openneutron.report.html.page import asset
    from openneutron.studio.policy import policy

    for path in STATIC.iterdir():
        shutil.copyfile(path, folder / path.name)
    (folder / "report.css").write_text(asset("page.css"), "utf-8")
    html = (STATIC / "index.html").read_text("utf-8")
    head = f'<meta http-equiv="Content-Security-Policy" content="{policy(webassembly=True)}">\n'
    head += '<meta name="openneutron-engine" content="pyodide">\n<meta name="referrer" content="no-referrer">\n'
    marked = html.replace('<link rel="icon"', f'{head}<link rel="icon"', 1)
    if marked == html:
        raise PlaygroundError("index.html has no place for the policy")
    (folder / "index.html").write_text(marked, "utf-8")


def write_samples(folder: Path, names: list[str] | tuple[str, ...]) -> None:
    """Write models of the zoo as the LiteRT files behind their NeutronGraph, and their list."""
    from openneutron.cli.inputs.loading import compile_source
    from openneutron.cli.shared.reporting import litert_models
    from openneutron.cli.zoo import describe_models

    said = describe_models()
    rows = []
    for name in names:
        program, loaded = compile_source(name, lambda text: None, dump_intermediates=True)
        models = litert_models(program, loaded)
        (folder / f"{name}.tflite").write_bytes(max(models, key=len))
        rows.append({"name": name, "file": f"{name}.tflite", "what": said[name]})
    (folder / "models.json").write_text(json.dumps(rows), "utf-8")


def notice(pyodide: Path) -> str:
    """Return what the folder holds, by whom, and under which licence."""
    package = json.loads((pyodide / "package.json").read_text("utf-8"))
    rows = [("openneutron", "", (ROOT / "LICENSE").read_text("utf-8").strip().splitlines()[0], ""),
            ("pyodide", package["version"], package.get("license", ""), "https://github.com/pyodide/pyodide"),
            ("python", json.loads((pyodide / "pyodide-lock.json").read_text("utf-8"))["info"]["python"], "PSF-2.0", "https://www.python.org"),
            ("numpy", "", "BSD-3-Clause", "https://numpy.org")]  # fmt: skip
    for name in PURE:
        found = importlib.metadata.metadata(name)
        licence = (
            found.get("License-Expression") or found.get("License") or "see its METADATA in packages/openneutron.zip"
        )
        rows.append((name, found["Version"], licence.splitlines()[0], found.get("Home-page") or ""))
    return "".join(f"{' '.join(filter(None, row))}\n" for row in rows)


if __name__ == "__main__":
    sys.exit(main())
