"""Loading and running programs: one registration, clear sentences, no crash on a damaged file."""

from __future__ import annotations

import random
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from executorch.exir import to_edge

from openneutron.errors import FormatError, OptionError, RuntimeFailure
from openneutron.executorch.run import runtime
from openneutron.executorch.run.runtime import load_program, register_runtime
from openneutron.litert.read import read_model
from openneutron.microcode.payload import payloads_of_pte
from openneutron.microcode.seal import check_seal, seal_pte
from openneutron.run.samples import run_samples
from tests.executorch.delegates import compiled, payload_of, pool, pool_model, program_of, random_int8
from tests.streaming import running_sum

X = random_int8(1, 3, 6, 6)


@pytest.fixture(scope="module")
def pte() -> bytes:
    return program_of([payload_of(compiled(pool_model((1, 6, 6, 3))), [1], [1])], [X], [[pool(X)]])


def test_registering_twice_is_registering_once():
    register_runtime()
    register_runtime()
    names = runtime._stock_runtime().backend_registry.registered_backend_names
    assert names.count("NeutronBackend") == 1


def test_stock_runtime_runs_the_program(pte: bytes):
    register_runtime()
    from executorch.runtime import Runtime

    method = Runtime.get().load_program(pte).load_method("forward")
    assert torch.equal(method.execute((X,))[0], pool(X))


def test_quantize_and_dequantize_are_loaded():
    register_runtime()
    names = runtime._stock_runtime().operator_registry.operator_names
    assert {"quantized_decomposed::quantize_per_tensor.out", "quantized_decomposed::dequantize_per_tensor.out"} <= names


@pytest.mark.parametrize("sealed", [False, True], ids=["plain", "sealed"])
def test_runs_from_bytes_and_from_a_file(pte: bytes, sealed: bool, tmp_path: Path):
    data = seal_pte(pte) if sealed else pte
    path = tmp_path / "model.pte"
    path.write_bytes(data)
    for source in (data, path, str(path)):
        (y,) = load_program(source).run(X)
        assert torch.equal(y, pool(X))


def test_outputs_are_not_overwritten_by_later_runs(pte: bytes):
    program = load_program(pte)
    (first,) = program.run(X)
    program.run(torch.zeros_like(X))
    assert torch.equal(first, pool(X))


@pytest.mark.parametrize("etdump", [False, True], ids=["driver", "executorch"])
def test_many_samples_give_what_one_by_one_gives(pte: bytes, etdump: bool):
    program = load_program(pte, etdump=etdump)
    samples = [(random_int8(1, 3, 6, 6),) for _ in range(64)]
    assert not program.keeps_state
    for threads in (1, 3):
        found = run_samples(program, samples, threads=threads)
        assert all(torch.equal(y, pool(x)) for (y,), (x,) in zip(found, samples, strict=True))
    samples[41] = (X[:, :2],)
    with pytest.raises(OptionError, match=r"sample 41: input 0 is int8 \[1, 2, 6, 6\]"):
        run_samples(program, samples, threads=3)


def test_a_program_that_changes_a_buffer_keeps_state():
    class Counter(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("seen", torch.zeros(1, 4, dtype=torch.int32))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.seen.add_(x)
            return self.seen + 1

    one = torch.ones(1, 4, dtype=torch.int32)
    program = load_program(bytes(to_edge(torch.export.export(Counter(), (one,))).to_executorch().buffer))
    assert program.keeps_state
    found = [y for (y,) in run_samples(program, [(one,)] * 64, threads=4)]
    assert all(torch.equal(after - before, one) for before, after in pairwise(found))  # it begins with anything


def test_a_delegate_with_state_keeps_it():
    example = torch.zeros((1, 4), dtype=torch.int8)
    blocks = compiled(read_model(running_sum()))
    assert load_program(program_of([payload_of(blocks, [0], [0])], [example], [[example]])).keeps_state


def test_payloads_are_found_again(pte: bytes):
    (payload,) = payloads_of_pte(pte)
    assert (payload.target, payload.converter, payload.input_formats) == ("imxrt700", "open", (1,))


# name: (inputs, part of the sentence)
WRONG_INPUTS = {
    "too few": ((), "takes 1 inputs, 0 were given"),
    "too many": ((X, X), "takes 1 inputs, 2 were given"),
    "element type": ((X.float(),), "input 0 is float32 [1, 3, 6, 6], the program takes int8"),
    "shape": ((X[:, :2],), "the program takes int8 [1, 3, 6, 6]"),
}


@pytest.mark.parametrize("name", WRONG_INPUTS)
def test_wrong_inputs_get_a_sentence(pte: bytes, name: str, capfd: pytest.CaptureFixture[str]):
    inputs, sentence = WRONG_INPUTS[name]
    program = load_program(pte)
    capfd.readouterr()
    with pytest.raises(OptionError) as caught:
        program.run(*inputs)
    assert sentence in str(caught.value)
    assert "".join(capfd.readouterr()) == ""  # the sentence is in the exception, not in the user's output as well
    assert torch.equal(program.run(X)[0], pool(X))


def test_missing_file():
    with pytest.raises(FormatError, match=r"nowhere\.pte: the program cannot be read \(No such file"):
        load_program("nowhere.pte")


def test_other_target_is_refused(pte: bytes):
    with pytest.raises(RuntimeFailure, match="compiled for imxrt700, not for imx95"):
        load_program(pte, target="imx95")


def test_recording_must_be_asked_for(pte: bytes, tmp_path: Path):
    with pytest.raises(RuntimeFailure, match="etdump=True"):
        load_program(pte).write_etdump(tmp_path / "run.etdp")


def test_an_unbuilt_delegate_and_a_name_taken_by_another_library_are_sentences(tmp_path: Path):
    """A copy of the delegate stands for NXP's runtime: it takes the name before ours is asked."""
    code = f"""
import ctypes, os, shutil
from openneutron import OpenNeutronError
from openneutron.executorch.run import runtime
def register():
    try:
        runtime.register_runtime()
    except OpenNeutronError as error:
        print(error)
runtime._stock_runtime()
path = os.environ.get("OPENNEUTRON_DELEGATE") or runtime.delegate_path()
os.environ["OPENNEUTRON_DELEGATE"] = {str(tmp_path / "none.so")!r}
register()
os.environ["OPENNEUTRON_DELEGATE"] = str(path)
ctypes.CDLL(shutil.copy(path, {str(tmp_path / "other.so")!r}))
register()
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    first, second = ran.stdout.splitlines()[-2:]
    assert "none.so: the delegate cannot be loaded" in first
    assert "already registered a backend named NeutronBackend" in second


def test_seal_is_idempotent_and_notices_every_change(pte: bytes):
    sealed = seal_pte(pte)
    assert seal_pte(sealed) == sealed and sealed.startswith(pte) and len(sealed) == len(pte) + 16
    assert check_seal(sealed, where="x") and not check_seal(pte, where="x")
    generator = random.Random(0)
    for _ in range(200):
        damaged = bytearray(sealed)
        damaged[generator.randrange(len(pte))] ^= 1 << generator.randrange(8)
        with pytest.raises(FormatError, match="checksum"):
            load_program(bytes(damaged))


def test_truncated_program_is_refused(pte: bytes):
    for data in (pte, seal_pte(pte)):
        for size in range(0, len(pte), 61):
            with pytest.raises((FormatError, RuntimeFailure)):
                load_program(data[:size])


def test_damage_to_an_unsealed_program_is_an_error_or_harmless(pte: bytes):
    """In a child, so that a crash of the runtime would be seen and counted."""
    code = f"""
import random
from openneutron import OpenNeutronError
from openneutron.executorch.run.runtime import load_program
pte = bytes.fromhex({pte.hex()!r})
generator = random.Random(1)
refused = 0
for _ in range(300):
    damaged = bytearray(pte)
    damaged[generator.randrange(len(pte))] ^= 1 << generator.randrange(8)
    try:
        load_program(bytes(damaged))
    except OpenNeutronError:
        refused += 1
print(refused)
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert int(ran.stdout.split()[-1]) > 100
