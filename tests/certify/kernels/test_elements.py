"""Calls are recognised as an operator of the source by parameters, constants and the bytes that they read, or refused."""

from __future__ import annotations

from typing import Any

import pytest

from openneutron.certify.operators.elements import exponentials
from openneutron.certify.refused import Refused
from openneutron.certify.world import World
from tests.certify.small import apply_rule, call, given, machine, operand, run_call, tensor

ROW = (1, 1, 1, 4)


def table(world: World, entries: bytes, count: int = 256) -> Any:
    operands = {
        "input": operand("input", ROW),
        "table": operand("weights", (1, 1, 1, 256)),
        "output": operand("output", ROW),
    }
    return run_call(machine(world, [4], [4], entries), call("lut", operands, {"entries": count}))


def test_a_table_is_applied_to_each_byte() -> None:
    world = World()
    relu = apply_rule("RELU", [tensor((4,))], tensor((4,)), world=world)
    entries = bytes(max(one, 0) if one < 128 else 0 for one in range(256))
    assert relu == [table(world, entries)]
    assert relu != [table(world, entries[:1] + b"\x07" + entries[2:])]
    with pytest.raises(Refused, match="a table of 255 entries"):
        table(world, entries, 255)


def test_a_table_of_unknown_bytes_is_refused() -> None:
    world = World()
    operands = {
        "input": operand("input", ROW),
        "table": operand("input", (1, 1, 1, 256), index=1),
        "output": operand("output", ROW),
    }
    with pytest.raises(Refused, match="bytes that are no constants"):
        run_call(machine(world, [4, 256], [4]), call("lut", operands, {"entries": 256}))


def addition(world: World, *, left: int = 0, rounding: int = 1, **changes: int) -> Any:
    (known,) = world.known["elements"]
    params = dict(known.what["meaning"][1]) | changes
    operands = {
        "input1": operand("input", ROW, index=left), "input2": operand("input", ROW, index=1 - left),
        "output": operand("output", ROW),
    }  # fmt: skip
    return run_call(machine(world, [4, 4], [4]), call("add", operands, params, rounding=rounding))


def test_an_addition_is_that_of_the_source() -> None:
    world = World()
    wanted = apply_rule("ADD", [tensor((4,)), tensor((4,), scale=0.25)], tensor((4,)), world=world)
    assert wanted == [addition(world)]
    for lie in ({"zero1": 1}, {"clamp_high": 126}, {"left": 1}, {"rounding": 2}, {"subtract": 1}):
        with pytest.raises(Refused, match="no operator of the source has these parameters and inputs"):
            addition(world, **lie)


WINDOW = {"FilterHeight": 2, "FilterWidth": 2, "StrideH": 2, "StrideW": 2, "Padding": 0, "FusedActivationFunction": 0}


def pool(world: World, *, offset: int = 0, **changes: int) -> Any:
    params = {
        "kernel_h": 2,
        "kernel_w": 2,
        "stride_h": 2,
        "stride_w": 2,
        "pad_top": 0,
        "pad_left": 0,
        "clamp_low": -128,
        "clamp_high": 127,
    }
    operands = {"input": operand("input", (1, 4, 4, 1), offset=offset), "output": operand("output", (1, 2, 2, 1))}
    return run_call(machine(world, [16 + offset], [4]), call("max_pool2d", operands, params | changes))


def test_a_pool_is_that_of_the_source() -> None:
    world = World()
    wanted = apply_rule("MAX_POOL_2D", [tensor((1, 4, 4, 1))], tensor((1, 2, 2, 1)), world=world, **WINDOW)
    assert wanted == [pool(world)]
    for lie in ({"kernel_w": 1}, {"stride_h": 1}, {"clamp_low": 0}, {"offset": 1}):
        with pytest.raises(Refused, match="no operator of the source has this window"):
            pool(world, **lie)
    with pytest.raises(Refused, match="kernel_h is 0, not 1 to"):
        pool(world, kernel_h=0)


def test_a_softmax_has_the_table_of_its_scale() -> None:
    world = World()
    wanted = apply_rule("SOFTMAX", [tensor(ROW)], tensor(ROW, scale=1 / 256, zero=-128), world=world, Beta=1.0)
    operands = {
        "input": operand("input", ROW),
        "table": operand("weights", (1, 1, 1, 256), "INT32"),
        "output": operand("output", ROW),
    }
    one = call("softmax", operands, {"output_zero": -128, "clamp_low": -128, "clamp_high": 127})
    assert wanted == [run_call(machine(world, [4], [4], exponentials(1.0, 0.5)), one)]
    with pytest.raises(Refused, match="has this table"):
        run_call(machine(world, [4], [4], exponentials(1.0, 0.25)), one)


def test_an_arg_max_searches_the_source_s_bytes() -> None:
    from tests.certify.small import const

    world = World()
    wanted = apply_rule("ARG_MAX", [tensor(ROW), const([3])], tensor((1, 1, 1), "INT32", 0), world=world)
    operands = {"input": operand("input", ROW), "output": operand("output", (1, 1, 1, 1), "INT32")}
    assert wanted == [run_call(machine(world, [4], [4]), call("arg_max", operands, {"axis": 3, "sign": 1}))]
    for lie, why in (({"axis": 3, "sign": -1}, "searches these bytes"), ({"axis": 2, "sign": 1}, "does not follow")):
        with pytest.raises(Refused, match=why):
            run_call(machine(world, [4], [4]), call("arg_max", operands, lie))


def test_an_input_is_what_the_machine_was_given() -> None:
    world = World()
    ready = machine(world, [4], [4])
    assert ready.regions["input", 0] == given(world, 0, 4)
