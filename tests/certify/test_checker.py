"""The stand-alone checker proves good certificates and refuses each way of breaking one."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from openneutron.certify import checker
from openneutron.certify.checker import NOTHING, Memory, Refused, check
from openneutron.convert import convert
from openneutron.options import Options
from tests.compiler.networks import Network, random_network

Document = dict[str, Any]


@cache
def _text(kind: str) -> str:
    if kind == "staged":
        model, options = _chain(), Options(target="imx95", certificate=True)
    else:
        model, options = _chain(), Options(certificate=True, fetch_constants_to_sram=kind == "fetched")
    return convert(model, options).intermediates["certificate.json"]


def _chain() -> bytes:
    net = Network(np.random.default_rng(7), (1, 32, 32, 8))
    value = net.input
    for channels in (32, 32, 16):
        value = net.conv(value, channels, 3)
    return net.finish(net.global_pool(net.add(value, net.conv(value, 16, 3)), True))


def _document(kind: str = "plain") -> Document:
    return json.loads(_text(kind))  # type: ignore[no-any-return]


def _graph(document: Document) -> Document:
    (graph,) = document["graphs"]
    return graph  # type: ignore[no-any-return]


def _loop(document: Document) -> Document:
    return next(task for task in _graph(document)["tasks"] if "loop" in task)  # type: ignore[no-any-return]


@pytest.mark.parametrize("kind", ["plain", "fetched", "staged"])
def test_a_certificate_is_proved(kind: str) -> None:
    proof = check(_document(kind))
    assert proof.graphs == 1 and proof.calls >= 6 and proof.rows > 100
    assert (proof.copies > 0) == (kind != "plain")


@pytest.mark.parametrize("seed", range(24))
def test_certificates_of_random_networks_are_proved(seed: int) -> None:
    model, _ = random_network(seed)
    target = ("imxrt700", "mcxn94x", "imx95")[seed % 3]
    options = Options(target=target, certificate=True, fetch_constants_to_sram=bool(seed % 2))
    assert check(json.loads(convert(model, options).intermediates["certificate.json"])).calls > 0


def _shorter_ring(document: Document) -> None:
    operands = [o for step in _loop(document)["body"] for o in step["operands"] if o and o["ring"] > 1]
    ringed = next(o for o in operands if o["ring"] * o["pitch"] < 32 * 32 * 8)
    for operand in operands:
        if operand["buffer"] == ringed["buffer"]:
            operand["ring"] -= 1


def _swapped_calls(document: Document) -> None:
    body = _loop(document)["body"]
    body[0], body[1] = body[1], body[0]


def _moved_buffer(document: Document) -> None:
    graph = _graph(document)
    used = {o["buffer"] for step in _loop(document)["body"] for o in step["operands"] if o}
    moved = next(b for n, b in enumerate(graph["buffers"]) if n in used and b["region"] == "scratch")
    moved["offset"] += 16
    graph["regions"]["scratch"] += 16


def _misaligned(document: Document) -> None:
    graph = _graph(document)
    next(b for b in graph["buffers"] if b["region"] == "scratch")["offset"] += 8
    graph["regions"]["scratch"] += 8


def _missing_iteration(document: Document) -> None:
    _loop(document)["loop"] -= 1


def _repeated_call(document: Document) -> None:
    _loop(document)["body"].append(copy.deepcopy(_loop(document)["body"][0]))


def _missing_call(document: Document) -> None:
    _loop(document)["body"].pop(0)


def _small_region(document: Document) -> None:
    _graph(document)["regions"]["scratch"] -= 16


def _over_budget(document: Document) -> None:
    _graph(document)["limits"]["sram"] = 64


def _wrong_constant(document: Document) -> None:
    _graph(document)["nodes"][0]["constants"][0]["offset"] += 16


def _written_input(document: Document) -> None:
    graph = _graph(document)
    home = next(n for n, b in enumerate(graph["buffers"]) if b["region"] == "input 0")
    node = graph["nodes"][_loop(document)["body"][0]["call"]]
    _loop(document)["body"][0]["operands"][node["writes"]["operand"]]["buffer"] = home


def _larger_demand(document: Document) -> None:
    read = _graph(document)["nodes"][1]["reads"][0]
    read["rows"]["extent"] += 2


PLAIN: dict[str, tuple[Callable[[Document], None], str]] = {
    "ring short of one row": (_shorter_ring, "does not hold row"),
    "swapped calls": (_swapped_calls, "does not hold row"),
    "buffer 16 bytes on": (_moved_buffer, "does not hold|read and written"),
    "buffer off the alignment": (_misaligned, "alignment"),
    "missing iteration": (_missing_iteration, "does not hold"),
    "repeated call": (_repeated_call, "a second time"),
    "missing call": (_missing_call, "does not hold"),
    "region too small": (_small_region, "leave"),
    "more than the target has": (_over_budget, "exceed"),
    "constant from elsewhere": (_wrong_constant, "the constant"),
    "input written": (_written_input, "is written|read and written|leave"),
    "node that needs more rows": (_larger_demand, "does not hold row"),
}


@pytest.mark.parametrize("name", PLAIN)
def test_each_mutation_is_refused(name: str) -> None:
    mutate, message = PLAIN[name]
    document = _document()
    mutate(document)
    with pytest.raises(Refused, match=message):
        check(document)


@pytest.mark.parametrize("kind", ["fetched", "staged"])
def test_dropped_waits_are_refused(kind: str) -> None:
    graph = _graph(_document(kind))
    waits = [at for at, task in enumerate(graph["tasks"]) if "wait" in task]
    assert waits
    for at in waits:
        document = _document(kind)
        tasks = _graph(document)["tasks"]
        del tasks[at]
        with pytest.raises(Refused):
            check(document)


def test_dropped_and_shifted_copies_are_refused() -> None:
    copies = [at for at, task in enumerate(_graph(_document("fetched"))["tasks"]) if "copy" in task]
    assert copies
    for at in copies:
        for field in ("source_offset", "target_offset", None):
            document = _document("fetched")
            tasks = _graph(document)["tasks"]
            if field is None:
                del tasks[at]
            else:
                tasks[at][field] += 16
            with pytest.raises(Refused):
                check(document)


def test_every_single_field_off_by_sixteen_is_refused_or_harmless() -> None:
    """All addresses of all operands: a survivor would be a hole in the proof."""
    tasks = _graph(_document())["tasks"]
    refused = 0
    for at, task in enumerate(tasks):
        for number, step in enumerate(task.get("body", [task])):
            for position, operand in enumerate(step.get("operands", [])):
                if operand is None:
                    continue
                document = _document()
                changed = _graph(document)["tasks"][at]
                (changed["body"][number] if "body" in changed else changed)["operands"][position]["offset"] += 16
                with pytest.raises(Refused):
                    check(document)
                refused += 1
    assert refused > 15


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda d: d.update(format="other"), "not version 1"),
        (lambda d: d.update(graphs=[{}]), "malformed"),
        (lambda d: d["graphs"][0].update(buffers=3), "malformed"),
        (lambda d: d["graphs"][0]["tasks"].append({"jump": 1}), "neither call"),
        (lambda d: d["graphs"][0]["tasks"][0].update(loop="many"), "malformed"),
    ],
)
def test_malformed_certificates_are_refused(edit: Callable[[Document], None], message: str) -> None:
    document = _document()
    edit(document)
    with pytest.raises(Refused, match=message):
        check(document)


def test_memory_keeps_what_later_writes_leave() -> None:
    memory = Memory("m", 100)
    memory.write(10, 50, 1, 0, "a")
    memory.write(20, 10, 2, 5, "b")
    assert memory.holds(10, 10, 1, 0) and memory.holds(20, 10, 2, 5) and memory.holds(30, 30, 1, 20)
    assert not memory.holds(10, 11, 1, 0) and not memory.holds(0, 20, 1, -10) and not memory.holds(55, 10, 1, 45)
    memory.write(60, 10, 1, 50, "c")
    assert memory.holds(30, 40, 1, 20) and len(memory.starts) == 3
    assert memory.pieces(15, 10) == [(15, 5, 1, 5), (20, 5, 2, 5)]
    memory.write(0, 100, NOTHING, 0, "d")
    assert (memory.starts, memory.ends) == ([0], [100])
    with pytest.raises(Refused, match="leave m of 100"):
        memory.write(95, 10, 1, 0, "e")


def test_the_checker_needs_nothing_but_the_standard_library(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    good.write_text(_text("plain"))
    document = _document()
    _swapped_calls(document)
    bad.write_text(json.dumps(document))
    # -I: no site folder of the user, no PYTHONPATH; the script alone.
    script = [sys.executable, "-I", "-S", str(checker.__file__)]
    done = subprocess.run([*script, str(good)], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "proved" in done.stdout, done.stderr
    done = subprocess.run([*script, str(bad)], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "refused" in done.stderr
    assert checker.main([str(tmp_path / "none.json")]) == 2
