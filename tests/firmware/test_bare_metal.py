"""examples/bare_metal: the C interface of an embedded model in C++, under QEMU, and in Rust without its standard library."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from openneutron.machine import native
from tests import tiny
from tests.firmware import image
from tests.firmware.conftest import Build
from tests.firmware.models import Model

EXAMPLE = image.ROOT / "examples" / "bare_metal"
# A program around the crate: it runs the model twice and prints the second result; an arena that is too small is refused.
MAIN = """
use model::{Aligned, Model};
use std::ffi::c_void;

extern "C" {
    static model_inputs: [*const c_void; 1];
}

fn main() {
    let mut small = Aligned([0xA5u8; ARENA - 16]);
    assert!(Model::new(&mut small).is_err());
    let mut arena = Aligned([0xA5u8; ARENA]);
    let mut result = Aligned([0u8; OUTPUT]);
    let mut model = Model::new(&mut arena).expect("the arena is large enough");
    for _ in 0..2 {
        let outputs = [result.0.as_mut_ptr().cast()];
        unsafe { model.run(&model_inputs, &outputs) }.expect("the model runs");
        model.reset().expect("it was prepared");
    }
    println!("{}", result.0.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
}
"""


def test_an_application_in_cpp_computes_what_the_host_does(build: Build, litert_model: Callable[..., Model]) -> None:
    # A folder of its own: an application's object belongs to the model.
    model = litert_model("bare_metal", tiny.convnet(), target="cortex_m33")
    path = build(model, "cpp", selection=model.selection, more=[f"MAIN={EXAMPLE / 'application.cpp'}"])
    ran = image.run_image(path)
    assert (ran.status, ran.outputs) == (0, model.on_host()[0])


def test_a_program_in_rust_computes_what_the_host_does(litert_model: Callable[..., Model], tmp_path: Path) -> None:
    if shutil.which("rustc") is None:
        pytest.skip("rustc not found")
    model = litert_model("bare_metal_rust", tiny.convnet(), target="cortex_m33")
    header = (model.folder / "model.h").read_text()
    ((arena, _), (output,)) = (re.findall(rf"MODEL_{what}_BYTES {{?(\d+)", header) for what in ("ARENA", "OUTPUT"))
    (tmp_path / "main.rs").write_text(f"const ARENA: usize = {arena};\nconst OUTPUT: usize = {output};\n{MAIN}")
    library = Path(native.__file__).parents[1] / "lib"
    include = f"-I{image.ROOT / 'runtime' / 'include'}"
    rust = ["rustc", "--edition", "2021", "-D", "warnings"]
    options = [
        "link-arg=model.o",
        f"link-arg=-Wl,-rpath,{library}",
        f"link-arg=-L{library}",
        "link-arg=-l:libopenneutron.so",
    ]
    for command in (
        ["cc", "-c", include, model.folder / "model.c", "-o", "model.o"],
        [*rust, "--crate-type", "rlib", EXAMPLE / "model.rs"],
        [*rust, "main.rs", "--extern", "model=libmodel.rlib", *(f"-C{option}" for option in options)],
    ):
        done = subprocess.run([str(part) for part in command], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    done = subprocess.run(["./main"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert [bytes.fromhex(done.stdout.strip())] == model.on_host()[0]
