"""An operator with an input more than LiteRT takes is not proved by a rule that does not read it."""

from __future__ import annotations

import numpy as np
import pytest

from openneutron.certify.operators import RULES, elements, moves, products, recurrent, unary
from openneutron.certify.operators.arity import INPUTS
from openneutron.certify.prove import prove
from openneutron.certify.refused import Refused
from tests.mutants.container import compile_source, load, pack, sources

SOURCE = "moves on the CPU"
MODULES = (elements, moves, products, recurrent, unary)


def test_every_rule_has_its_number_of_inputs() -> None:
    assert INPUTS.keys() == RULES.keys()
    assert {rule.__module__ for rule in RULES.values()} == {module.__name__ for module in MODULES}


@pytest.mark.parametrize("added", [-1, 0])
@pytest.mark.parametrize("position", [1, 2, 4, 5], ids=["reverse", "reshape", "broadcast", "last reshape"])
def test_an_input_more_is_refused(position: int, added: int) -> None:
    model = load(compile_source(SOURCE, "imxrt700"))
    op = model.subgraphs[0].operators[position]
    op.inputs = np.array([*op.inputs, added], np.int32)
    with pytest.raises(Refused, match=rf"operator {position} \(.*\) is none of the source's"):
        prove(pack(model), sources()[SOURCE])
