from __future__ import annotations

from itertools import pairwise

from openneutron.report.html import page
from openneutron.report.html.memory import memory_maps
from openneutron.report.model import Buffer, Report


def test_the_peak_is_where_the_highest_address_is_in_use() -> None:
    buffers = (
        Buffer(0, "a", "scratch", 0, 4096, 0, 1),
        Buffer(0, "b", "scratch", 4096, 1024, 1, 2),
        Buffer(0, "w", "prefetch", 0, 512, 2, 3),
        Buffer(1, "large", "scratch", 0, 9000, 0, 0),
    )
    large, small = memory_maps(Report(buffers=buffers))
    assert (large.graph, large.top, small.graph, small.top) == (1, 9000, 0, 5632)
    assert small.peak == 2
    assert [(cause.name, cause.size) for cause in small.causes] == [("b", 1024), ("w", 512)]


def test_blocks_lie_inside_the_map_and_do_not_cross() -> None:
    buffers = tuple(Buffer(0, f"b{at}", "scratch", 256 * at, 256, at, at + 100 * at) for at in range(6))
    (found,) = memory_maps(Report(buffers=buffers))
    for block in found.blocks:
        assert found.left <= block.x and block.x + block.width <= found.right + 0.2
        assert found.top_line - 0.2 <= block.y and block.y + block.height <= found.bottom + 0.2
    heights = sorted((block.y, block.y + block.height) for block in found.blocks)
    assert all(end <= start + 0.2 for (_, end), (start, _) in pairwise(heights))
    assert found.left < found.peak_x < found.right


def test_a_graph_without_scratch_has_no_map() -> None:
    assert memory_maps(Report()) == []


def test_buffers_that_overlap_at_the_peak_say_so() -> None:
    buffers = (Buffer(0, "input", "scratch", 256, 4096, 0, 1), Buffer(0, "output", "scratch", 0, 1024, 0, 1))
    (found,) = memory_maps(Report(buffers=buffers))
    first, second = found.causes
    assert (first.over, second.over, second.shared) == ("", "input", 768)
    assert "768 B of it on the bytes of input" in page(Report(buffers=buffers))


def test_buffers_are_called_as_their_layers_with_the_tensor_second() -> None:
    buffers = (
        Buffer(0, "aten_convolution (4 rows)", "scratch", 0, 4096, 0, 1, module="features.0"),
        Buffer(0, "aten_add", "scratch", 2048, 4096, 0, 1, module="features.1"),
        Buffer(0, "sum (of all)", "scratch", 6144, 64, 0, 1),
    )
    (found,) = memory_maps(Report(buffers=buffers))
    assert [cause.name for cause in found.causes] == ["features.0 (4 rows)", "features.1", "sum (of all)"]
    assert found.causes[1].over == "features.0 (4 rows)"
    first = found.blocks[0]
    assert first.label == "features.0 (4 rows)"
    assert first.tip.splitlines()[:2] == ["features.0 (4 rows)", "aten_convolution (4 rows)"]
