import pytest
from ai_edge_litert.interpreter import Interpreter, OpResolverType

from openneutron.litert import DType, GraphBuilder, versions, write_model

# Not registered by the reference resolver at all; written at version 1.
UNREGISTERED = {"ELU", "CEIL", "ROUND"}


def is_registered(code: str, version: int) -> bool:
    """Ask the golden interpreter whether it has a kernel of this version."""
    g = GraphBuilder()
    x, y = (g.tensor(name, (1,), DType.FLOAT32) for name in "xy")
    g.op(code, [x], [y], version=version)
    try:
        Interpreter(
            model_content=write_model(g.finish([x], [y])), experimental_op_resolver_type=OpResolverType.BUILTIN_REF
        )
    except (RuntimeError, ValueError) as problem:
        return "Didn't find op for builtin opcode" not in str(problem)
    return True


@pytest.mark.parametrize("code", sorted(versions._INT8_VERSIONS))
def test_the_reference_registers_what_we_write(code):
    assert is_registered(code, versions.version_of(code))


@pytest.mark.parametrize(
    "code", ["RESHAPE", "RELU_N1_TO_1", "RELU_0_TO_1", "PRELU", "HARD_SWISH", "SQUEEZE", "EXPAND_DIMS"]
)
def test_others_are_version_1(code):
    assert versions.version_of(code) == 1
    assert is_registered(code, 1)


@pytest.mark.parametrize("code", sorted(UNREGISTERED))
def test_the_probe_can_say_no(code):
    assert not is_registered(code, versions.version_of(code))
