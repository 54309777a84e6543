from __future__ import annotations

import pytest

from openneutron.compiler import kernels
from openneutron.compiler.signature import OpSignature
from openneutron.compiler.ways_out import WAYS_OUT
from openneutron.litert.schema_tables import ENUMERATIONS
from openneutron.machine import targets


@pytest.mark.parametrize("code", WAYS_OUT)
def test_an_operator_without_a_kernel_says_why_and_what_to_do(code: str) -> None:
    assert code.startswith("CUSTOM:") or code in ENUMERATIONS["BuiltinOperator"]
    assert kernels.rule_of(code) is None
    reason = kernels.check(OpSignature(code, (), (), None), targets.load("imxrt700")).reason
    why, hint = WAYS_OUT[code]
    assert reason is not None and reason.message.endswith(f"has no kernel: {why}") and reason.hint == hint
