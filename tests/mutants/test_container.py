"""Files changed around the microcode, and programs and bundles: every one is refused, or is the same for those who use it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from openneutron.certify.prove import prove
from tests.mutants.container import FILES, STAGES, compile_source, judge_file, judge_program, load, pack, sources, table

COUNT = 700  # seeds: every model five times in every stage


def test_no_changed_file_is_proved_that_is_another() -> None:
    found = [one for seed in range(COUNT) if (one := judge_file(seed)) is not None]
    missed = [one for one in found if one.outcome == "proved otherwise"]
    assert not missed, "\n".join(map(str, missed)) + "\n" + table(found)
    refused = Counter(one.stage for one in found if one.outcome == "refused")
    assert all(refused[stage] > 0 for stage in (*STAGES, *FILES)), table(found)


def test_a_fault_of_the_past() -> None:
    """A list of sizes with a dimension more, which LiteRT refuses."""
    mutant = judge_file(180322)
    assert mutant is None or mutant.outcome != "proved otherwise"


@pytest.mark.parametrize("name", sorted(sources()))
def test_a_file_that_another_program_wrote_is_proved(name: str) -> None:
    """The order of tables in a file is its writer's; both files are packed by LiteRT's own code here."""
    source, data = sources()[name], compile_source(name, "imxrt700")
    wanted = prove(data, source)
    assert prove(pack(load(data)), pack(load(source))) == wanted


def test_no_changed_program_is_proved(program: tuple[bytes, Callable[[str], bytes]]) -> None:
    found = [judge_program(seed, *program) for seed in range(90)]
    assert not [one for one in found if one.outcome == "proved otherwise"]
    assert Counter(one.stage for one in found if one.outcome == "refused").keys() == {
        "program: program", "program: payload", "program: bundle",
    }  # fmt: skip
