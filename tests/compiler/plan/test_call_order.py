from __future__ import annotations

from openneutron.compiler.l1 import RowDemand
from openneutron.compiler.plan.call_order import CallOrder, Reader

POOL = RowDemand(2, 1, 0, 2)
WINDOW = RowDemand(1, 1, 1, 3)


def _conv_pool_conv() -> CallOrder:
    body = CallOrder()
    body.sink(2)
    body.weave(1, 2, 1, 1, [Reader(2, 2, 0, WINDOW)])
    return body


def test_parts_are_pulled_by_the_call_that_needs_them() -> None:
    body = _conv_pool_conv()
    made = body.weave(0, 2, 2, 2, [Reader(1, 1, 1, POOL)])
    assert body.calls == [(0, 0), (1, 0), (0, 1), (1, 1), (2, 0)]
    assert made == (2, (0, 1))  # nothing is left of a part when the next is made


def test_rows_that_stay_are_not_fresh() -> None:
    body = CallOrder()
    body.sink(2)
    made = body.weave(1, 2, 1, 1, [Reader(2, 2, 0, WINDOW)])
    assert made == (4, ())  # two of the iteration before, two of this one


def test_passing_rows_count_only_while_they_are_held() -> None:
    body = _conv_pool_conv()
    _, fresh = body.weave(0, 2, 2, 2, [Reader(1, 1, 1, POOL)])
    body.hold(0, {1}, fresh, 100)
    body.use(2, 7)
    assert body.live == [100, 100, 100, 100, 7]
    assert body.between == [0, 100, 0, 100, 0]


def test_a_call_woven_in_between_meets_what_is_held_there() -> None:
    body = CallOrder()
    body.sink(2)
    _, fresh = body.weave(1, 1, 4, 0, [Reader(2, 4, 0, RowDemand())])
    body.hold(1, {2}, fresh, 50)
    body.weave(0, 1, 4, 0, [Reader(2, 4, 0, RowDemand())])
    assert body.calls == [(1, 0), (0, 0), (2, 0)]
    assert body.live == [50, 50, 50]
