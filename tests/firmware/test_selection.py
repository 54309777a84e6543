"""Which kernels an image holds: all by default, those of a linked selection instead, and a refusal by name without one."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from openneutron._version import __version__
from openneutron.cli.main import run as openneutron
from openneutron.compiler import kernels
from openneutron.microcode.abi import all_kernels
from openneutron.microcode.selection import parse, selection_code
from tests import tiny
from tests.firmware import image
from tests.firmware.conftest import Build
from tests.firmware.models import Model

kernels.rules()
IDS = {kernel.name: kernel.id for kernel in all_kernels()}
RUNTIME = image.ROOT / "runtime"


@pytest.fixture
def convnet(litert_model: Callable[..., Model]) -> Model:
    return litert_model("convnet", tiny.convnet())


def selected(model: Model) -> set[str]:
    return set(parse("selection", model.selection.read_text()).kernels.values())


def without(model: Model, kernel: str, folder: Path) -> Path:
    """The model's selection less one kernel."""
    ids = [IDS[name] for name in selected(model) - {kernel}]
    path = folder / f"without_{kernel}.c"
    path.write_text(selection_code(ids, "imxrt700", __version__))
    return path


def test_without_a_selection_the_image_holds_every_kernel(build: Build, convnet: Model) -> None:
    path = build(convnet, "all")
    assert image.kernels_in(path, list(IDS)) == set(IDS)
    assert image.run_image(path).outputs == convnet.on_host()[0]


def test_a_linked_selection_takes_precedence_over_the_full_table(build: Build, convnet: Model) -> None:
    path = build(convnet, "selected", selection=convnet.selection)
    assert (
        image.kernels_in(path, list(IDS)) == selected(convnet) == {"conv2d", "max_pool2d", "fully_connected", "softmax"}
    )
    ran = image.run_image(path)
    assert (ran.outputs, ran.number("cycles")) == convnet.on_host()


def test_two_models_run_with_their_merged_selection(
    build: Build, zoo_model: Callable[..., Model], tmp_path: Path
) -> None:
    both = [zoo_model("cifarnet"), zoo_model("ds_cnn")]
    merged = tmp_path / "kernel_selection.c"
    assert openneutron(["merge-kernels", "-o", str(merged), *(str(model.selection) for model in both)]) == 0
    for model in both:
        path = build(model, "merged", selection=merged)
        assert image.kernels_in(path, list(IDS)) == selected(both[0]) | selected(both[1])
        assert image.run_image(path).outputs == model.on_host()[0]


@pytest.mark.parametrize("kernel", ["softmax", "conv2d"])
def test_a_kernel_that_is_not_in_the_image_is_refused_by_name(
    build: Build, convnet: Model, tmp_path: Path, kernel: str
) -> None:
    path = build(convnet, f"without-{kernel}", selection=without(convnet, kernel, tmp_path))
    assert image.kernels_in(path, list(IDS)) == selected(convnet) - {kernel}
    ran = image.run_image(path)
    assert ran.status == 1
    assert "error prepare: KERNEL_MISSING: the microcode calls a kernel that this image does not hold" in ran.text
    assert f"kernel {IDS[kernel]} ({kernel})" in ran.text
    assert ran.outputs == []


def test_the_same_application_is_refused_and_runs_on_a_host(convnet: Model, tmp_path: Path) -> None:
    archive = _host_library(tmp_path)
    whole = _host_application(tmp_path, convnet, convnet.selection, archive)
    assert (whole.status, whole.outputs) == (0, convnet.on_host()[0])
    refused = _host_application(tmp_path, convnet, without(convnet, "softmax", tmp_path), archive)
    assert refused.status == 1
    assert f"kernel {IDS['softmax']} (softmax)" in refused.text


def _host_library(folder: Path) -> Path:
    places = ("firmware", "firmware/driver", "firmware/dsp", "firmware/helium", "firmware/kernels", "firmware/machine")
    includes = [f"-I{RUNTIME / place}" for place in ("include", *places)]
    # Not a hosted system: firmware/ alone, without vector loops and threads.
    flags = ["-std=c11", "-O1", "-U__unix__", f'-DOPENNEUTRON_VERSION="{__version__}"']
    archive = folder / "libneutron.a"
    for place in places:
        # A kernel and its cost formula may have the same name: a folder for each, and P for names with folders.
        objects = folder / place.replace("/", "_")
        objects.mkdir()
        subprocess.run(["gcc", *flags, *includes, "-c", *(RUNTIME / place).glob("*.c")], cwd=objects, check=True)
        subprocess.run(["ar", "qcsP", archive, *sorted(objects.glob("*.o"))], check=True)
    return archive


def _host_application(folder: Path, model: Model, selection: Path, archive: Path) -> image.Run:
    application = [
        RUNTIME / "cortex_m33" / "main.c",
        model.folder / "model.c",
        Path(__file__).parent / "host_console.c",
    ]
    includes = [f"-I{RUNTIME / 'include'}", f"-I{RUNTIME / 'cortex_m33'}", f"-I{model.folder}"]
    objects = []
    for source, include in [
        *((one, includes) for one in application),
        (selection, [f"-I{RUNTIME / 'firmware'}", *includes]),
    ]:
        objects.append(folder / f"{source.stem}.app")
        subprocess.run(["gcc", "-std=c11", *include, "-c", source, "-o", objects[-1]], check=True)
    program = folder / "application"
    subprocess.run(["gcc", *objects, archive, "-o", program], check=True)
    done = subprocess.run([program], capture_output=True, text=True)
    return image.Run(done.returncode, done.stdout)
