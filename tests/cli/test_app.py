from __future__ import annotations

import inspect

import pytest

from openneutron.cli.app import all_commands, build

COMMANDS = all_commands()


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_explains_itself_with_an_example_and_has_json(command, name: str) -> None:
    outcome = command(*name.split(), "--help")
    assert outcome.code == 0
    assert f"openneutron {name}" in outcome.out.split("Example", 1)[1]
    callback = COMMANDS[name]
    assert callback is not None
    assert "as_json" in inspect.signature(callback).parameters


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_help_calls_values_by_what_they_are(command, name: str) -> None:
    options = command(*name.split(), "--help").out.split("Options:", 1)[1]
    assert "list[" not in options and " range>" not in options  # what typer says without a metavar


def test_the_ten_commands_around_a_model_are_there() -> None:
    wanted = {"compile", "run", "report", "profile", "verify", "evaluate", "bisect", "check", "inspect", "compare"}
    assert wanted <= set(COMMANDS)


def test_the_list_of_commands_loads_none_of_them(command) -> None:
    outcome = command("--help")
    assert outcome.code == 0 and all(f"\n  {name.split()[0]} " in outcome.out for name in COMMANDS)
    assert [one.name for one in build("targets", alone=True).registered_commands] == ["targets"]
    assert not build("board", alone=True).registered_commands and build("board", alone=True).registered_groups
    assert len(build("no such command", alone=True).registered_commands) == len(build("").registered_commands)
    made = build("targets").registered_commands
    assert [one.name for one in made if one.callback is COMMANDS[one.name]] == ["targets"]
