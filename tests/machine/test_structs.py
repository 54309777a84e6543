"""The structs that C and Python share are one table."""

from __future__ import annotations

import ctypes

from openneutron.machine import driver, structs, targets
from openneutron.machine.pricing import Machine, dma_cost


def test_events_have_all_that_c_writes() -> None:
    names = [name for name, *_ in driver.Event._fields_]
    assert names == [field.name for field in structs.EVENT.fields] and names[-2:] == ["macs", "bytes"]
    assert ctypes.sizeof(driver.Event) == 72


def test_c_and_python_see_the_same_target() -> None:
    for name in targets.names():
        address = driver.target(name)
        inside = driver.MachineTarget.from_address(address)
        assert [getattr(inside, field) for field, *_ in inside._fields_] == structs.target_values(targets.load(name))
        assert dma_cost(name, 1000) == dma_cost(Machine(targets.load(name)), 1000)


def test_definitions_carry_their_size() -> None:
    assert '_Static_assert(sizeof(nm_cost) == 24, "as Python has it");' in structs.c_struct(structs.COST)
    assert structs.c_struct(structs.TARGET, "nm_constants cost")[-2] == "} nm_target;"
