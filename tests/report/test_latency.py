from __future__ import annotations

import pytest

from openneutron.report.latency import latency


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ((0.96, 0.85, 1.08), "0.960 ms, 0.850 to 1.080"),
        ((778.0, 495.7, 1221.0), "778.0 ms, 495.7 to 1,221.0"),
        ((0.5, 0.0, 0.0), "0.500 ms"),
        ((0.0021, 0.0018, 0.0024), "0.0021 ms, 0.0018 to 0.0024"),
        ((0.0, 0.0, 0.0), "0.000 ms"),
    ],
)
def test_an_estimate_is_told_with_its_interval(given: tuple[float, float, float], text: str) -> None:
    assert latency(*given) == text
