"""The subcommands that list what there is: targets, ops, zoo, doctor."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from openneutron import zoo
from openneutron.compiler import kernels
from openneutron.machine import targets
from tests.cli.conftest import Command


def test_operators_are_found_as_people_write_them(command: Command, refused: Callable[..., str]) -> None:
    assert "CONV_2D runs in kernel" in command("ops", "conv2d").out
    assert "did you mean" in refused("ops", "conv_2e")
    assert "its number of trips must follow from constants" in command("ops", "while").out
    assert "UNIDIRECTIONAL_SEQUENCE_LSTM" in refused("ops", "lstm")


@pytest.mark.parametrize("name", ["nn.Linear", "linear", "aten.linear.default"])
def test_operators_of_pytorch_are_found_too(name: str, command: Command) -> None:
    out = command("ops", name).out
    assert "aten.linear.default is translated to LiteRT's operators" in out and "the bias must be constant" in out


def test_ddr_is_not_called_sram(command: Command) -> None:
    out = command("targets").out
    assert "2 GiB DDR" in out and "2,097,152" not in out


def test_every_target_is_listed_with_its_array(command: Command) -> None:
    names = list(targets.names())
    lines = command("targets").out.splitlines()[1:]
    assert [line.split()[0] for line in lines] == [*names, *(f"{name}:" for name in names)]
    assert "1x8x8" in next(line for line in lines if "imxrt700" in line)
    assert [row["name"] for row in json.loads(command("targets", "--json").out)] == list(targets.names())


def test_every_operator_with_a_kernel_is_listed(command: Command) -> None:
    rows = json.loads(command("ops", "--json").out)
    assert [row["operator"] for row in rows] == list(kernels.rules())
    assert f"{len(rows)} operators" in command("ops").out


def test_an_operator_shows_its_limits(command: Command) -> None:
    text = command("ops", "conv_2d").out
    assert "CONV_2D runs in kernel conv2d" in text
    assert all(f"- {limit.rule}" in text for limit in kernels.rules()["CONV_2D"].limits)


def test_an_operator_without_kernel_is_an_error(refused: Callable[..., str]) -> None:
    assert "operator RFFT2D has no kernel" in refused("ops", "RFFT2D")


def test_the_zoo_is_listed_with_descriptions(command: Command) -> None:
    rows = {row["name"]: row["description"] for row in json.loads(command("zoo", "--json").out)}
    assert list(rows) == zoo.names()
    assert all(rows.values())
    assert rows["cifarnet"] in command("zoo").out


def test_doctor_finds_this_installation_complete(command: Command) -> None:
    outcome = command("doctor", "--json")
    rows = {row["part"]: row for row in json.loads(outcome.out)}
    assert outcome.code == 0, outcome.out
    assert rows["executorch"]["found"].startswith("1.5.")
    assert rows["NXP's SDK"]["ok"] in (None, True)
    assert "everything that is needed is there" in command("doctor").out
