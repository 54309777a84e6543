from __future__ import annotations

import os
import signal

import pytest

from openneutron.errors import OptionError
from openneutron.process_pool import map_in_processes


@pytest.mark.parametrize("workers", [1, 2])
def test_results_in_order_of_work_that_cannot_be_pickled(workers: int) -> None:
    table = {at: at * at for at in range(5)}
    assert list(map_in_processes(lambda at: table[at], range(5), workers)) == [0, 1, 4, 9, 16]


def test_the_work_is_done_elsewhere() -> None:
    found = set(map_in_processes(lambda at: os.getpid(), range(4), 2))
    assert os.getpid() not in found and len(found) <= 2


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_comes_where_its_piece_is_met(workers: int) -> None:
    def work(at: int) -> int:
        if at == 1:
            raise OptionError("no such layer", where="second")
        return at

    found = map_in_processes(work, range(3), workers)
    assert next(found) == 0
    with pytest.raises(OptionError, match="second: no such layer"):
        next(found)


def test_a_process_that_dies_is_one_sentence() -> None:
    with pytest.raises(OptionError, match="a worker ended"):
        list(map_in_processes(lambda at: os.kill(os.getpid(), signal.SIGKILL), range(2), 2))
