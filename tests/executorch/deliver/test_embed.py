"""Payloads as C source: the sizes static memory needs, for our microcode and NXP's alike."""

from __future__ import annotations

import re
import struct

import numpy as np
import pytest

from openneutron.errors import OptionError
from openneutron.executorch.deliver.embed import Border, embed, random_inputs
from openneutron.microcode.payload import parse_payload
from tests.microcode.test_payload import KERNELS, WEIGHTS, microcode, payload

NXP = 0x12345678  # any version word but ours


def macros(header: str) -> dict[str, str]:
    return dict(re.findall(r"#define NET_(\w+) (.+)", header))


def embedded(data: bytes) -> tuple[dict[str, str], bytes]:
    """The macros, and the payload's bytes as the source has them."""
    made = embed(data, name="net", header="net.h", where="net.pte")
    words = [int(word, 16) for word in re.findall(r"0x([0-9a-f]{8}),", made.source)]
    return macros(made.header), struct.pack(f"<{len(words)}I", *words)


def test_offsets_and_sizes_find_every_block() -> None:
    data = payload(input_map=(0, 1))
    found, words = embedded(data)
    assert words == data and found["PAYLOAD_BYTES"] == f"{len(data)}u"
    numbers = {name: int(value[:-1]) for name, value in found.items() if value.endswith("u")}
    for block, content in (("MICROCODE", microcode()), ("WEIGHTS", WEIGHTS), ("KERNELS", KERNELS)):
        offset = numbers[f"{block}_OFFSET"]
        assert offset % 16 == 0
        assert data[offset : offset + numbers[f"{block}_BYTES"]] == content
    assert (numbers["SCRATCH_BYTES"], numbers["PREFETCH_BYTES"], numbers["PROFILE_BYTES"]) == (64, 32, 0)
    assert (found["INPUT_BYTES"], found["OUTPUT_BYTES"], found["IO_BYTES"]) == ("{48, 7}", "{10}", "80u")


def test_nxps_payloads_have_sizes_when_they_are_known() -> None:
    known = payload(microcode(version=NXP), converter="nxp", tensor_bytes=(48, 7, 10))
    assert embedded(known)[0]["INPUT_BYTES"] == "{48, 7}"
    unknown = embedded(payload(microcode(version=NXP), converter="nxp"))[0]
    assert "INPUT_BYTES" not in unknown and "IO_BYTES" not in unknown
    assert (unknown["INPUTS"], unknown["OUTPUTS"], unknown["SCRATCH_BYTES"]) == ("2u", "1u", "64u")


def test_nxps_microcode_takes_no_inputs() -> None:
    data = payload(microcode(version=NXP), converter="nxp")
    with pytest.raises(OptionError, match=r"net\.pte: NXP's microcode does not say what its inputs are"):
        random_inputs(parse_payload(data, where="net.pte"), seed=0, where="net.pte")
    with pytest.raises(OptionError, match="embed it without inputs"):
        embed(data, name="net", header="net.h", where="net.pte", inputs=[np.zeros(48, np.int8)])


def test_a_files_name_cannot_end_the_comment() -> None:
    made = embed(payload(input_map=(0, 1)), name="net", header="net.h", where="a*/b\n.pte")
    assert made.source.splitlines()[0].count("*/") == 1
    assert made.source.splitlines()[1] == '#include "net.h"'


@pytest.mark.parametrize("name", ["", "2net", "net work", "nét", "a-b"])
def test_a_name_must_be_one_in_c(name: str) -> None:
    with pytest.raises(OptionError, match="is no name in C"):
        embed(payload(), name=name, header="net.h", where="net.pte")


def test_nxps_order_is_kept_and_said() -> None:
    found = embedded(payload(microcode(version=NXP), converter="nxp", tensor_bytes=(48, 7, 10)))[0]
    assert (found["INPUT_MAP"], found["OUTPUT_MAP"]) == ("{1, 0}", "{0}")
    assert found["INPUT_NAMES"] == '{"input_0", "input_1"}'


def test_names_are_strings_of_c() -> None:
    border = Border(('a"b\\n\n', "é??/"), ("*/",))
    made = embed(payload(input_map=(0, 1)), name="net", header="net.h", where="net.pte", border=border)
    assert macros(made.header)["INPUT_NAMES"] == r'{"a\042b\134n\012", "\303\251\077\077/"}'
    assert all(line.count("*/") <= 1 for line in made.header.splitlines() if line.startswith("/* output"))
