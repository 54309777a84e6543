from __future__ import annotations

from dataclasses import fields

import pytest

from openneutron.errors import OpenNeutronError
from openneutron.report.frames import TABLES, rows
from openneutron.report.model import Kernel, Report, WhatIf
from tests.report.samples import report

PLAIN = ("notes", "warnings", "output_sqnr")  # lists of sentences or numbers


def test_every_list_of_a_report_is_a_table() -> None:
    lists = {field.name for field in fields(Report) if str(field.type).startswith("tuple") and field.name not in PLAIN}
    assert lists == set(TABLES)


def test_kernels_have_their_shares_and_bounds() -> None:
    found = report().table()
    assert found["share"].tolist() == [0.8, 0.2]
    assert found["bound_by"].tolist() == ["compute", "memory"]
    assert found.loc[found["cycles"].idxmax(), "name"] == "conv"
    assert {field.name for field in fields(Kernel)} < set(found.columns)


def test_an_empty_table_still_has_its_columns() -> None:
    found = Report().table("what_ifs")
    assert len(found) == 0 and list(found.columns) == [field.name for field in fields(WhatIf)]


def test_an_unknown_table_is_refused() -> None:
    with pytest.raises(OpenNeutronError, match=r"no table 'layers'.*kernels, nodes"):
        rows(report(), "layers")


def test_without_pandas_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> object:
        raise ModuleNotFoundError(name, name=name)

    monkeypatch.setattr("openneutron.report.frames.import_module", missing)
    with pytest.raises(OpenNeutronError, match="needs the Python package pandas"):
        report().table()
