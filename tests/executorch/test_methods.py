"""A method for prompts beside that for one token: weights stored once, one state, the same answers bit for bit."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import openneutron as on
from openneutron import project
from openneutron.cli.main import run
from openneutron.errors import FormatError, OpenNeutronError, OptionError, UnsupportedError
from openneutron.executorch.methods import samples_of
from openneutron.executorch.run.decoder import decoder_of
from openneutron.executorch.run.runtime import load_program
from openneutron.microcode.payload import parse_payload
from openneutron.microcode.pte import computing_methods, read_plan
from openneutron.microcode.seal import remove_seal
from tests import decoders

CHUNK = 4
PROMPT = [7, 100, 3, 250, 41, 12, 9]


@cache
def program() -> on.Program:
    samples = decoders.calibration()
    tokens = torch.zeros(1, CHUNK, dtype=torch.int64), torch.arange(CHUNK)
    return on.compile(
        decoders.decoder(), samples[0], calibration=samples, methods={"prefill": tokens}, quality="plain",
        dump_intermediates=True,
        constant_methods={"get_bos_id": 0, "get_eos_ids": [1, 5]},
    )  # fmt: skip


def test_prompts_in_chunks_give_what_single_tokens_give() -> None:
    whole, single = (decoder_of(load_program(program().pte), "two") for _ in range(2))
    assert whole.chunk_size == CHUNK
    single.chunk = None
    for _ in range(2):
        assert np.array_equal(whole.feed(PROMPT), single.feed(PROMPT))
        assert np.array_equal(whole.feed([17]), single.feed([17]))  # reads the rows that the chunk wrote
        for one in (whole, single):
            one.begin()


def test_weights_are_stored_once() -> None:
    pte = program().pte
    assert computing_methods(pte, where="two") == ("forward", "prefill")
    plans = [read_plan(pte, where="two", method=name) for name in ("forward", "prefill")]
    weights, longer = (parse_payload(plan.payloads[0][1], where="two").weights for plan in plans)
    assert longer[: len(weights)] == weights
    assert pte.count(weights[:4096]) == 1


def test_states_belong_to_a_loaded_program() -> None:
    first, second = load_program(program().pte), load_program(program().pte)
    prompt, places = torch.tensor([PROMPT[:CHUNK]]), torch.arange(CHUNK)
    token, place = torch.tensor([[17]]), torch.tensor([CHUNK])
    first.run_method("prefill", prompt, places)
    (with_prompt,) = first.run(token, place)
    (without,) = second.run(token, place)
    assert not torch.equal(with_prompt, without)
    first.reset()
    assert torch.equal(first.run(token, place)[0], without)
    with pytest.raises(OptionError, match="no method 'other'"):
        first.run_method("other", token, place)
    with pytest.raises(OpenNeutronError, match="lies outside its tensor"):
        second.run_method("prefill", prompt, places + decoders.SHAPE.context - 1)


def test_both_methods_are_proved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program().save(tmp_path / "two.pte")
    assert run(["certify", str(tmp_path / "two.pte")]) == 0
    assert "in 2 NeutronGraphs" in capsys.readouterr().out
    weights = parse_payload(read_plan(program().pte, where="two").payloads[0][1], where="two").weights
    data = bytearray(remove_seal(program().pte, where="two"))
    data[data.index(weights) + len(weights) // 2] ^= 1
    (tmp_path / "two.pte").write_bytes(data)
    assert run(["certify", str(tmp_path / "two.pte")]) != 0
    with pytest.raises(OpenNeutronError, match="checksum is wrong"):
        load_program(bytes(data))


def test_every_method_is_inspected_and_verified(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program().save(tmp_path / "two.pte")  # and its bundle
    assert run(["inspect", str(tmp_path / "two.pte")]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "two.pte, prefill, delegate 0: NeutronGraph" in shown
    assert f"method prefill takes int64 1x{CHUNK}, int64 {CHUNK} and gives float32 1x{CHUNK}x" in shown
    assert run(["verify", str(tmp_path / "two.pte"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["equal"] and {layer["graph"] for layer in found["layers"]} == {0, 1}


def test_weights_that_are_missing_have_a_sentence() -> None:
    data = bytearray(remove_seal(program().pte, where="two"))
    for at in (at for at in range(len(data)) if data.startswith(b"neutron-", at)):
        data[at : at + 7] = b"another"
        break
    with pytest.raises(FormatError, match="no named data"):
        read_plan(bytes(data), where="two")


def test_calls_are_joined_where_inputs_are_longer() -> None:
    calls = decoders.calibration()
    joined = samples_of(calls[0], calls, (torch.zeros(1, 3, dtype=torch.int64), torch.arange(3)))
    assert [one[1].tolist() for one in joined[:2]] == [[0, 1, 2], [3, 4, 5]]
    assert joined[0][0].tolist() == [[int(call[0]) for call in calls[:3]]]
    other = (torch.zeros(2, 3, dtype=torch.int64), torch.arange(5))
    assert samples_of(calls[0], calls, other) == [other]


class Either(nn.Module):
    """Another computation for several rows than for one."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.layer(x)) if x.shape[0] == 1 else self.layer(x).abs() * 2


def test_a_method_that_computes_something_else_is_refused() -> None:
    samples = [(torch.randn(1, 4),) for _ in range(4)]
    with pytest.raises(UnsupportedError, match="method many has other operators than forward"):
        on.compile(Either(), samples[0], calibration=samples, methods={"many": (torch.randn(3, 4),)})
    for wrong, message in (({"forward": samples[0]}, "is called 'forward'"), ({"many": ()}, "has no inputs")):
        with pytest.raises(OptionError, match=message):
            on.compile(Either(), samples[0], calibration=samples, methods=wrong)
    with pytest.raises(OptionError, match="open converter"):
        given = {"many": (torch.randn(3, 4),)}
        on.compile(Either(), samples[0], calibration=samples, methods=given, int8_io=True)


def test_a_project_has_the_first_method_and_says_so() -> None:
    made = project.make(program(), platform="cmake", board="cortex-m33")
    assert made.notes == ("the program's forward alone is in it, without prefill",)
    assert "left out: prefill." in made.files["README.md"].decode()
    assert made.samples == 2  # random tokens and positions lie inside their tables
