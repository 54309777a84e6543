"""ExecuTorch's private names do what their names here say; a missing one ends in a sentence with the version."""

from __future__ import annotations

from importlib.metadata import version
from types import SimpleNamespace

import pytest
import torch

from openneutron.errors import OpenNeutronError
from openneutron.executorch.upstream import edge_names

ATEN = torch.ops.aten


def test_edge_operators_wrap_those_of_aten() -> None:
    assert str(edge_names.edge_operator(ATEN.add.Tensor)).startswith("<EdgeOpOverload: aten.add.Tensor>")
    assert str(edge_names.edge_operator(ATEN.add.Tensor, "Scalar")).startswith("<EdgeOpOverload: aten.add.Scalar>")


def test_what_a_backend_leaves_is_found_again() -> None:
    made = edge_names.preprocess_result(b"payload", {}, "info")
    delegate = SimpleNamespace(
        meta={edge_names.DELEGATE_INFO: made._delegate_info_meta}, _processed_bytes=made.processed_bytes
    )
    assert edge_names.info_of(delegate) == "info" and edge_names.info_of(SimpleNamespace(meta=None)) is None
    edge_names.replace_payload(delegate, b"other")
    assert delegate._processed_bytes == b"other"


def test_stages_are_read_and_replaced() -> None:
    session = SimpleNamespace(_pipeline_stages=["a"])
    edge_names.replace_pipeline(session, [*edge_names.pipeline_of(session), "b"])
    assert edge_names.pipeline_of(session) == ["a", "b"]


def test_what_is_missing_is_named_with_the_version() -> None:
    for call in (lambda: edge_names.pipeline_of(None), lambda: edge_names.replace_payload(SimpleNamespace(), b"")):
        with pytest.raises(OpenNeutronError, match=f"executorch {version('executorch')} does not have"):
            call()


def test_verification_is_off() -> None:
    assert edge_names.unchecked_config()._check_ir_validity is False
