from __future__ import annotations

import pytest

from openneutron.errors import OptionError
from openneutron.executorch import NeutronTargetSpec


@pytest.mark.parametrize(
    "name, subsystem, version, cores, units, length",
    [("imxrt700", False, 2, 1, 8, 8), ("mcxn94x", False, 1, 1, 4, 4)],
)
def test_the_figures_answer_to_the_names_of_upstream(
    name: str, subsystem: bool, version: int, cores: int, units: int, length: int
) -> None:
    spec = NeutronTargetSpec(name)
    assert (spec.get_name(), spec.is_subsystem(), spec.get_hw_version()) == (name, subsystem, version)
    assert (spec.get_num_units(), spec.get_num_pipes(), spec.get_num_macs()) == (cores, units, length)
    assert spec.target.macs_per_cycle == cores * units * length


def test_neutron_s_is_a_subsystem() -> None:
    assert NeutronTargetSpec("imx95").is_subsystem()


def test_an_unknown_target_lists_the_known_ones() -> None:
    with pytest.raises(OptionError, match=r"unknown target 'imxrt500'.*imxrt700"):
        NeutronTargetSpec("imxrt500")
