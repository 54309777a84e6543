"""A model that is opened once gives the compiler and the plan by stock rules what each would find by itself."""

from __future__ import annotations

import pytest

from benchmarks.networks import NETWORKS
from openneutron.board.answer import stock_answer
from openneutron.compiler import kernels
from openneutron.compiler.front.legalize import legalize
from openneutron.compiler.front.parsed_model import OperatorCache
from openneutron.compiler.legalizer import Legalizer
from openneutron.compiler.pipeline import compile_model, compile_parsed, parse_for
from openneutron.compiler.signature import of_operator
from openneutron.convert import convert, convert_alone, with_board_estimate
from openneutron.litert.read import read_model
from openneutron.litert.write import write_model
from openneutron.machine import targets
from openneutron.options import Options

DATA = NETWORKS["ds_cnn"]()
OPTIONS = Options(target="mcxn94x", source="ds_cnn")


def test_compiling_leaves_the_model_as_it_is() -> None:
    opened = parse_for(DATA, OPTIONS)
    before = write_model(opened.model)
    first, second = (compile_parsed(opened, DATA, OPTIONS) for _ in range(2))
    assert write_model(opened.model) == before
    assert first.model == second.model == compile_model(DATA, OPTIONS).model


def test_both_answers_are_those_of_models_opened_anew() -> None:
    apart = with_board_estimate(convert_alone(DATA, OPTIONS), DATA, OPTIONS)
    together = convert(DATA, OPTIONS)
    assert together.model == apart.model and together.report.stock == apart.report.stock
    target = targets.load(OPTIONS.target)
    assert stock_answer(parse_for(DATA, OPTIONS), target) == stock_answer(DATA, target)


def test_an_operator_is_checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def counted(signature: kernels.OpSignature, *rest: object, **more: object) -> object:
        asked.append(signature.outputs[0].name)
        return check(signature, *rest, **more)  # type: ignore[arg-type]

    check = kernels.check
    monkeypatch.setattr(kernels, "check", counted)
    convert(DATA, OPTIONS)
    assert len(asked) == len(set(asked)) == len(read_model(DATA).main.operators)


def test_checks_say_what_the_kernels_say() -> None:
    graph, target = read_model(DATA).main, targets.load("imxrt700")
    checks = OperatorCache(graph, target)
    for op in graph.operators:
        assert checks.signature(op) is checks.signature(op)
        assert checks.verdict(op) == kernels.check(of_operator(graph, op), target, streams=True)


def test_a_group_is_legalized_once_and_each_taker_changes_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    rule_of = kernels.rule_of

    def counted(code: str) -> kernels.Rule | None:
        rule = rule_of(code)
        if rule is None:
            return None

        def legalized(state: Legalizer) -> None:
            made.append(code)
            rule.legalize(state)

        return rule._replace(legalize=legalized)

    graph = read_model(DATA, source="ds_cnn").main
    checks = OperatorCache(graph, targets.load("mcxn94x"))
    monkeypatch.setattr(kernels, "rule_of", counted)
    first, second = (legalize(graph, targets.load("mcxn94x"), checks=checks) for _ in range(2))
    assert made == [op.code for op in graph.operators]
    first.nodes[0].operands[0] = None
    first.values[0].name = "changed"
    first.nodes.pop()
    assert second.nodes[0].operands[0] == 0 and second.values[0].name != "changed"
    assert len(second.nodes) == len(first.nodes) + 1
