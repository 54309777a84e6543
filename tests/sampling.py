"""How many random examples a test takes: few by default, many in `make test-full`."""

from __future__ import annotations

from hypothesis import settings

FULL = 20  # times as many examples in `make test-full`


def examples(count: int) -> settings:
    """Settings for a test that takes `count` examples, or `FULL` times as many in the full profile.

    Example:
        >>> @examples(25)
        ... @given(shapes())
        ... def test_any_shape(shape): ...
    """
    return settings(max_examples=count * (FULL if settings.get_current_profile_name() == "full" else 1))
