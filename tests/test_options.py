"""One table of options: what is made from it agrees with it, and wrong values are named."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import openneutron
from openneutron.compat.eiq import CompilationOptions
from openneutron.errors import OptionError
from openneutron.options import LITERT, PUBLIC, SCHEMA, TORCH, Options, check_options, read_text, refuse_inapplicable


def test_every_public_option_is_a_keyword_of_compile_with_its_default() -> None:
    parameters = inspect.signature(openneutron.compile).parameters
    assert {one.name: one.default for one in PUBLIC}.items() <= {n: p.default for n, p in parameters.items()}.items()
    assert all(one.help in (openneutron.compile.__doc__ or "") for one in PUBLIC)


def test_names_of_the_sdk_exist_in_its_surface() -> None:
    named = {one.sdk for one in SCHEMA.values() if one.sdk}
    assert named <= set(CompilationOptions.__dataclass_fields__)


def test_flags_and_keys_are_given_once() -> None:
    for names in ([one.flag for one in SCHEMA.values() if one.flag], [one.key for one in SCHEMA.values() if one.key]):
        assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"targt": "imx95"}, r"unknown option 'targt'. Hint: did you mean 'target'"),
        ({"optimize": "hard"}, r"optimize is 'hard'. Hint: one of fast, default, max"),
        ({"use_profiling": 1}, r"use_profiling is 1. Hint: use True or False"),
        ({"fit_bytes": 0}, r"fit_bytes is 0. Hint: give a number of bytes above 0"),
        ({"passes_off": ["fuse_pad", 3]}, r"passes_off contains 3"),
        ({"minimum_operators_per_graph": True}, r"minimum_operators_per_graph is True"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_wrong_values_are_named(given: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        check_options(given)


def test_one_name_is_a_list_of_one() -> None:
    assert check_options({"passes_off": "fuse_pad"}) == {"passes_off": ("fuse_pad",)}


def test_options_of_another_front_end_are_refused_unless_they_change_nothing() -> None:
    refuse_inapplicable({"per_channel": True, "target": "imx95"}, LITERT, hint="-")
    with pytest.raises(OptionError, match=r"per_channel \(--per-tensor\) is for PyTorch models"):
        refuse_inapplicable({"per_channel": False}, LITERT, hint="-")
    with pytest.raises(OptionError, match="certificate is for LiteRT models"):
        refuse_inapplicable({"certificate": True}, TORCH, hint="-")


def test_texts_are_read_by_kind() -> None:
    assert read_text(SCHEMA["fit_bytes"], "1M") == 1 << 20
    assert read_text(SCHEMA["passes_off"], "a, b") == ("a", "b")
    assert read_text(SCHEMA["minimum_operators_per_graph"], "3") == 3
    with pytest.raises(OptionError, match="one of open, nxp"):
        read_text(SCHEMA["converter"], "closed")


def test_defaults_are_valid() -> None:
    assert Options(**check_options({one.name: one.default for one in SCHEMA.values()})) == Options()
