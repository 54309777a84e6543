from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from executorch.exir import to_edge_transform_and_lower
from executorch.exir.backend.compile_spec_schema import CompileSpec
from torch import nn

from openneutron.errors import OptionError
from openneutron.executorch import NeutronCompileSpecBuilder, NeutronPartitioner, generate_neutron_compile_spec
from openneutron.executorch.compile_spec import conversion_options, from_specs
from openneutron.executorch.deliver.backend import Partition
from openneutron.executorch.delivery import partitions_of
from openneutron.executorch.pipeline import quantize
from openneutron.litert.read import read_model
from openneutron.microcode.payload import parse_payload

INPUTS = (torch.linspace(-1, 1, 192).reshape(1, 3, 8, 8),)


def compiled(**options: Any) -> tuple[Partition, bytes]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
    program = quantize(model, INPUTS, [INPUTS]).program
    spec = generate_neutron_compile_spec(options.pop("config", "imxrt700"), **options)
    edge = to_edge_transform_and_lower(program, partitioner=[NeutronPartitioner(spec)])
    module = edge.exported_program().graph_module
    (partition,) = partitions_of(module)
    return partition, module.lowered_module_0.processed_bytes


def test_survives_the_way_through_executorch() -> None:
    specs = generate_neutron_compile_spec(
        "mcxn94x", None, ["--optimize=fast"], None, ["aten.add.Tensor"], True, True, True, True, converter="open"
    )
    options = from_specs(specs)
    assert options.target == "mcxn94x" and options.operators_not_to_delegate == ("aten.add.Tensor",)
    conversion = conversion_options(options)
    assert (conversion.optimize, conversion.use_profiling, conversion.fetch_constants_to_sram) == ("fast", True, True)
    assert NeutronCompileSpecBuilder().neutron_compile_spec("mcxn94x").build() == generate_neutron_compile_spec(
        "mcxn94x"
    )


def test_positions_are_those_of_upstream(tmp_path: Path) -> None:
    """A script that gives its arguments by position means the same here; the builder's order is another one."""
    flags, kept, switches = "--optimize=fast", ["aten.add.Tensor"], (True, False, True, False)
    by_name = generate_neutron_compile_spec(
        config="imxrt700", extra_flags=flags, intermediates_dir=tmp_path, operators_not_to_delegate=kept,
        use_neutron_for_format_conversion=True, fetch_constants_to_sram=False, dump_kernel_selection_code=True,
        use_profiling=False,
    )  # fmt: skip
    assert generate_neutron_compile_spec("imxrt700", None, flags, tmp_path, kept, *switches) == by_name
    builder = NeutronCompileSpecBuilder().neutron_compile_spec("imxrt700", tmp_path, flags, kept, *switches)
    assert builder.build() == by_name


def test_a_system_config_is_taken_with_a_word() -> None:
    with pytest.warns(UserWarning, match="system_config='fast' has no effect"):
        given = generate_neutron_compile_spec("imxrt700", system_config="fast")
    assert given == generate_neutron_compile_spec("imxrt700")


@pytest.mark.parametrize("target", ["imxrt700", "mcxn94x", "imx95"])
def test_config_is_the_target(target: str) -> None:
    partition, payload = compiled(config=target)
    assert partition.report.target == target
    assert parse_payload(payload, where="payload").target == target


def test_format_conversion_inside_emits_transposes() -> None:
    outside, inside = compiled()[0], compiled(use_neutron_for_format_conversion=True)[0]
    assert (outside.transposes, outside.input_formats, outside.output_formats) == (0, (1,), (1,))
    assert (inside.transposes, inside.input_formats, inside.output_formats) == (2, (0,), (0,))


def test_profiling_is_payload_version_1() -> None:
    assert not parse_payload(compiled()[1], where="payload").profiling
    assert parse_payload(compiled(use_profiling=True)[1], where="payload").profiling


def test_fetching_constants_needs_prefetch_memory() -> None:
    assert compiled()[0].report.totals.prefetch_bytes == 0
    assert compiled(fetch_constants_to_sram=True)[0].report.totals.prefetch_bytes > 0


def test_kernel_selection_is_written_where_no_folder_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert compiled()[0].kernel_selection_code == "" and not [*tmp_path.iterdir()]
    code = compiled(dump_kernel_selection_code=True)[0].kernel_selection_code
    assert "conv2d" in code and (tmp_path / "partition_0_kernel_selection.c").read_text("utf-8") == code
    compiled(dump_kernel_selection_code=True, config="imx95")
    assert [path.name for path in tmp_path.iterdir()] == ["partition_0_kernel_selection.c"]


def test_extra_flags_reach_the_converter() -> None:
    partition, _ = compiled(extra_flags=["--dump-kernel-selection", "--pass-off fuse_transposes,fuse_lut"])
    assert partition.kernel_selection_code
    assert "fuse_transposes" not in partition.passes and "fuse_lut" not in partition.report.passes


def test_intermediates_are_written(tmp_path: Path) -> None:
    partition, _ = compiled(intermediates_dir=tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    assert {"partition_0.tflite", "partition_0_converted.tflite", "partition_0_report.json"} <= names
    assert any(name.endswith("l1.txt") for name in names) and any(name.endswith("microcode.txt") for name in names)
    assert read_model((tmp_path / "partition_0.tflite").read_bytes()).main.operators
    assert (tmp_path / "partition_0.tflite").read_bytes() == partition.litert


@pytest.mark.parametrize(
    "arguments, part",
    [
        ({"config": "imxrt7000"}, "imxrt7000"),
        ({"config": 700}, "config is 700"),
        ({"extra_flags": "--faster"}, "unknown option '--faster'"),
        ({"extra_flags": "--optimize=best"}, "--optimize is 'best'"),
        ({"extra_flags": "--optimize"}, "--optimize: expected one argument"),
        ({"extra_flags": "--use-profiling=1"}, "--use-profiling: ignored explicit argument '1'"),
        ({"operators_not_to_delegate": [""]}, "operators_not_to_delegate contains ''"),
        ({"use_neutron_for_format_conversion": "yes"}, "use_neutron_for_format_conversion is 'yes'"),
        ({"fetch_constants_to_sram": 1}, "fetch_constants_to_sram is 1"),
        ({"dump_kernel_selection_code": None}, "dump_kernel_selection_code is None"),
        ({"use_profiling": 2}, "use_profiling is 2"),
        ({"intermediates_dir": "/no/such/folder"}, "is not a folder"),
        ({"converter": "vela"}, "converter is 'vela'"),
        ({"optimize": "most"}, "optimize is 'most'"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_wrong_value_is_named(arguments: dict[str, Any], part: str) -> None:
    with pytest.raises(OptionError, match=part):
        generate_neutron_compile_spec(**{"config": "imxrt700", **arguments})


@pytest.mark.parametrize(
    "specs, part",
    [
        ([CompileSpec("speed", b"1")], "unknown key 'speed'"),
        ([CompileSpec("config", b"imxrt700")], "no JSON"),
        ([], "no target"),
    ],
)
def test_foreign_specs_are_refused(specs: list[CompileSpec], part: str) -> None:
    with pytest.raises(OptionError, match=part):
        from_specs(specs)


def test_builder_without_target() -> None:
    with pytest.raises(OptionError, match="no target was given"):
        NeutronCompileSpecBuilder().build()
