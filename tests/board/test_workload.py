from __future__ import annotations

import numpy as np
import pytest

from openneutron.board.answer import converted_by_stock, stock_answer
from openneutron.board.workload import FITTED, NAMES, NEUTRON_C, STEPS, constants_in_files, with_constants, workload_of
from openneutron.machine import targets
from tests import tiny


@pytest.mark.parametrize("name", NEUTRON_C)
def test_the_constants_of_the_files_give_the_time_of_the_answer(name: str) -> None:
    target = targets.load(name)
    work = workload_of(converted_by_stock(tiny.convnet(), target), target)
    answer = stock_answer(tiny.convnet(), target)
    constants = constants_in_files()
    assert work.milliseconds(constants) == pytest.approx(answer.milliseconds, rel=2e-4)
    assert work.cpu_milliseconds(constants) == pytest.approx(answer.cpu_milliseconds, rel=2e-4)


def test_what_the_cpu_does_is_slower_where_its_code_is_in_flash() -> None:
    constants = np.ones(len(NAMES)) * 2
    fast, slow = (with_constants(targets.load(name), constants) for name in NEUTRON_C)
    assert (slow.row, slow.call, slow.mac) == (2 * fast.row, 2 * fast.call, fast.mac)
    assert all(getattr(fast, name) == 2 * STEPS for name in FITTED)
