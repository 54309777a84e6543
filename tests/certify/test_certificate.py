"""A certificate saves the search; one for other files, or none at all, is refused with its first wrong byte."""

from __future__ import annotations

import json

import pytest

from openneutron.certify.certificate import read, write
from openneutron.certify.prove import prove
from openneutron.certify.refused import Refused
from openneutron.convert import convert
from openneutron.options import Options
from tests import tiny


def test_hints_lead_to_the_same_proof() -> None:
    source = tiny.convnet()
    result = convert(source, Options(certificate=True))
    hints = read(result.intermediates["certificate.json"].encode(), result.model, source)
    assert hints and prove(result.model, source, hints) == prove(result.model, source)


def test_wrong_hints_cost_time_only() -> None:
    source = tiny.convnet()
    compiled = convert(source, Options()).model
    hints = dict.fromkeys(prove(compiled, source).recognised, 7)
    assert prove(compiled, source, hints).graphs == 1


def test_bad_certificates_are_refused() -> None:
    source, other = tiny.convnet(), tiny.sandwich()
    compiled = convert(source, Options()).model
    good = write(prove(compiled, source), compiled, source).encode()
    with pytest.raises(Refused, match="another source file"):
        read(good, compiled, other)
    with pytest.raises(Refused, match="another compiled file"):
        read(good, compiled + b"x", source)
    with pytest.raises(Refused, match=f"byte {len(good) // 2}|no JSON"):
        read(good[: len(good) // 2], compiled, source)
    with pytest.raises(Refused, match=r"byte \d+: the certificate is no text"):
        read(b"\xff\xfe\x00", compiled, source)
    with pytest.raises(Refused, match=r"no JSON|nested"):
        read(b"[" * 100_000, compiled, source)
    with pytest.raises(Refused, match="byte 9: the certificate has a number"):
        read(b'{"calls":' + b"9" * 5000 + b"}", compiled, source)
    document = json.loads(good)
    document["calls"] = [["a", "b"]]
    with pytest.raises(Refused, match="a call of the certificate"):
        read(json.dumps(document).encode(), compiled, source)
