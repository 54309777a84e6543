"""What a converted file says of itself."""

from __future__ import annotations

import pytest

from openneutron.errors import OptionError
from openneutron.litert.read import read_model
from openneutron.nxp.converted import check_same_model, converted_for, converter_version
from tests import tiny


@pytest.mark.parametrize(
    ("description", "chip"),
    [
        (
            "TOCO Converted.\nConverted with eIQ neutron-converter 1.2.0+0X1c933f1b for NXP MCX N94x MCU target.",
            "mcxn94x",
        ),
        (
            "Converted with eIQ neutron-compiler\nVersion: 3.2.2+0Xf157aeb4\nTarget: imxrt700\nTFLite: 2.19.0",
            "imxrt700",
        ),
        ("MLIR Converted.", ""),
        ("Target: something", ""),
    ],
)
def test_the_chip_that_a_file_was_converted_for(description: str, chip: str) -> None:
    assert converted_for(description) == chip


def test_the_version_of_the_converter() -> None:
    assert converter_version("Converted with eIQ neutron-compiler\nVersion: 3.2.2+0Xf157aeb4") == "3.2.2+0Xf157aeb4"
    assert converter_version("MLIR Converted.") == ""


def test_another_model_is_told_by_its_ends() -> None:
    one, other = (read_model(data).main for data in (tiny.convnet(), tiny.sandwich()))
    check_same_model(one, one, where="npu", source_name="model", hint="")
    with pytest.raises(OptionError, match=r"npu: its inputs and outputs are not those of model\. Hint: look"):
        check_same_model(one, other, where="npu", source_name="model", hint="look")
