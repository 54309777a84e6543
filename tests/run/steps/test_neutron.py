from __future__ import annotations

import pytest

from openneutron.errors import FormatError
from openneutron.litert import read_model, write_model
from openneutron.run.runner import LiteRtRunner
from tests import tiny
from tests.compat import nxp_file


def test_a_graph_of_nxps_converter_is_refused_by_name() -> None:
    data = write_model(nxp_file.converted(read_model(tiny.convnet())))
    with pytest.raises(FormatError, match=r"m.tflite, operator 0.*made by NXP's converter.*only NXP's runtime"):
        LiteRtRunner(data, source="m.tflite")
