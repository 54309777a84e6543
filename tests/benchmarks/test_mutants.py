"""The tables of planted faults in the documentation are what the benchmark prints."""

from __future__ import annotations

import pytest

from benchmarks import mutants
from tests.mutants import container, judge


def _shown(name: str) -> str:
    (found,) = mutants.place(name).findall(mutants.PAGE.read_text(encoding="utf-8"))
    return str(found[1])


@pytest.mark.parametrize(
    ("name", "column", "count"),
    [("mutants", "simulation", mutants.COUNT), ("mutants of files", "proved otherwise", mutants.COUNT_OF_FILES)],
)
def test_no_row_has_a_fault_that_passed(name: str, column: str, count: int) -> None:
    head, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in _shown(name).splitlines())
    numbers = [[int(cell.replace(",", "")) for cell in row[1:]] for row in rows]
    assert all(sum(row[:-1]) == row[-1] for row in numbers)
    assert [sum(column) for column in zip(*numbers[:-1], strict=True)] == numbers[-1]
    assert numbers[-1][-1] == count and numbers[-1][head.index(column) - 1] == 0


def test_the_first_faults_are_found_by_their_seeds() -> None:
    found = mutants.find(container.judge_file, 12)
    assert len(found) == 12 and "proved otherwise" not in {one.outcome for one in found}


@pytest.mark.full
def test_the_tables_are_todays() -> None:
    files = mutants.find(mutants.container_judge(), mutants.COUNT_OF_FILES)
    assert container.table(files) == _shown("mutants of files")
    assert judge.table(mutants.find(judge.judge, mutants.COUNT)) == _shown("mutants")
