"""The surface of eiq_neutron_sdk on our compiler: both spellings, pickling, log, files, and the opt-in package."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from openneutron import __version__
from openneutron.compat import eiq
from openneutron.convert import convert
from openneutron.errors import FormatError, OptionError
from openneutron.litert import read_model
from openneutron.microcode.container import graphs_of
from openneutron.microcode.selection import parse
from openneutron.options import Options
from openneutron.run.runner import LiteRtRunner, random_inputs
from tests.compat.odd_graphs import ODD_GRAPHS
from tests.compat.samples import two_outputs, views, with_custom_operator

COMPAT = Path(__file__).parents[2] / "packaging" / "eiq_compat"
SOURCES = Path(__file__).parents[2] / "src"


@pytest.fixture
def context(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> eiq.CompilationContext:
    monkeypatch.chdir(tmp_path)
    made = eiq.CompilationContext()
    made.targetOpts = eiq.getNeutronTarget("imxrt700")
    return made


@pytest.fixture
def installed() -> Iterator[None]:
    """The names in this process, removed afterwards."""
    assert eiq.install()
    yield
    for name in [name for name in sys.modules if name.split(".")[0] == eiq.PACKAGE]:
        del sys.modules[name]


@pytest.mark.parametrize("function", [eiq.convertModel, eiq.compileModel])
@pytest.mark.parametrize(
    "given", [list, bytes, lambda data: np.frombuffer(data, np.uint8)], ids=["list", "bytes", "array"]
)
def test_both_spellings_convert_like_the_seam(function: object, given: object, context: eiq.CompilationContext) -> None:
    assert bytes(function(given(two_outputs()), context)) == convert(two_outputs(), Options()).model


def test_the_result_is_one_neutron_graph_that_says_who_made_it(context: eiq.CompilationContext) -> None:
    model = read_model(eiq.convertModel(list(two_outputs()), context))
    ((_, container),) = graphs_of(model)
    assert container.made_by == "open" and (container.inputs, container.outputs) == (1, 2)
    assert [model.main.tensors[t].name for t in model.main.outputs] == ["first", "second"]


@pytest.mark.parametrize("codes", [("RESHAPE",), ("RESHAPE", "EXPAND_DIMS", "SQUEEZE")], ids=" ".join)
def test_a_graph_of_views_alone_is_one_neutron_graph_too(
    codes: tuple[str, ...], context: eiq.CompilationContext
) -> None:
    data = views(codes)
    converted = eiq.convertModel(list(data), context)
    assert [op.label for op in read_model(converted).main.operators] == ["NeutronGraph"]
    given = [np.arange(24, dtype=np.int8).reshape(1, 4, 6)]
    (ours,), (want,) = (list(LiteRtRunner(one).run(given).outputs.values()) for one in (converted, data))
    assert ours.shape == want.shape and np.array_equal(ours, want)


@pytest.mark.parametrize("profiling", [False, True], ids=["", "profiling"])
@pytest.mark.parametrize("make", ODD_GRAPHS.values(), ids=ODD_GRAPHS)
def test_every_graph_that_is_sent_is_one_neutron_graph(
    make: Callable[[], bytes], profiling: bool, context: eiq.CompilationContext
) -> None:
    data = make()
    context.compilationOpts.useProfiling = profiling
    converted = eiq.convertModel(list(data), context)
    assert [op.label for op in read_model(converted).main.operators] == ["NeutronGraph"]
    ours, theirs = LiteRtRunner(converted), LiteRtRunner(data)
    assert [t.name for t in (*ours.inputs, *ours.outputs)] == [t.name for t in (*theirs.inputs, *theirs.outputs)]
    given = random_inputs(theirs.inputs, seed=0)
    got, want = ours.run(given).outputs, theirs.run(given).outputs
    assert all(np.array_equal(got[name], want[name]) and got[name].shape == want[name].shape for name in want)


def test_the_log_on_standard_output_ends_as_users_expect(
    context: eiq.CompilationContext, capsys: pytest.CaptureFixture[str]
) -> None:
    eiq.convertModel(two_outputs(), context)
    heads = [line.split("=")[0].strip() for line in capsys.readouterr().out.splitlines()]
    assert heads[-6:] == [
        "Number of operators after import",
        "Number of operators after optimize",
        "Number of operators converted",
        "Number of operators NOT converted",
        "Number of Neutron graphs",
        "Operator conversion ratio",
    ]


def test_what_is_left_out_is_in_the_log(context: eiq.CompilationContext, capsys: pytest.CaptureFixture[str]) -> None:
    model = read_model(eiq.convertModel(with_custom_operator(), context))
    assert [op.label for op in model.main.operators] == ["NeutronGraph", "Mystery"]
    assert "Mystery z: custom operator Mystery has no kernel" in capsys.readouterr().out


def test_every_option_has_its_effect(context: eiq.CompilationContext, capsys: pytest.CaptureFixture[str]) -> None:
    options = context.compilationOpts
    options.useProfiling = options.fetchConstantsToSRAM = options.verbose = True
    options.dumpAfterImport = options.dumpAfterGenerate = options.dumpMicrocode = True
    options.excludeGraphPasses = "drop_unused, SomePassOfNxp"
    ((_, container),) = graphs_of(read_model(eiq.convertModel(two_outputs(), context)))
    assert container.profiling and container.sram_scratch_bytes > 0
    printed = capsys.readouterr().out
    assert "Passes to exclude that do not exist here: SomePassOfNxp\n" in printed
    assert "first = RELU(y)" in printed
    assert "graph0.l1.txt:" in printed and "graph0.microcode.txt:" in printed
    assert "bytes of scratch" in printed


def test_small_graphs_can_be_left_on_the_cpu(context: eiq.CompilationContext) -> None:
    context.compilationOpts.minNumOpsPerGraph = 10
    model = read_model(eiq.convertModel(two_outputs(), context))
    assert [op.label for op in model.main.operators] == ["CONV_2D", "RELU", "MAX_POOL_2D"]


def test_the_kernel_selection_is_a_file_only_when_asked_for(context: eiq.CompilationContext, tmp_path: Path) -> None:
    eiq.convertModel(two_outputs(), context)
    assert list(tmp_path.iterdir()) == []
    context.compilationOpts.dumpKernelSelectionCode = True
    eiq.convertModel(two_outputs(), context)
    (file,) = tmp_path.iterdir()
    assert file.name == "_kernel_selection.c"
    chosen = parse(file.name, file.read_text())
    assert {"conv2d", "max_pool2d"} <= set(chosen.kernels.values())
    assert (chosen.target, chosen.converter_version) == ("imxrt700", __version__)


def test_an_option_that_does_not_exist_cannot_be_set(context: eiq.CompilationContext) -> None:
    with pytest.raises(AttributeError, match="turbo"):
        context.compilationOpts.turbo = True
    assert not hasattr(context.compilationOpts, "turbo") and hasattr(context.compilationOpts, "dumpMicrocode")


def test_a_forgotten_target_and_bad_models_get_a_sentence(context: eiq.CompilationContext) -> None:
    with pytest.raises(OptionError, match=r"targetOpts is None.*assign getNeutronTarget"):
        eiq.convertModel(two_outputs(), eiq.CompilationContext())
    with pytest.raises(OptionError, match="no list of bytes"):
        eiq.convertModel([1, 2, 300], context)
    with pytest.raises(FormatError):
        eiq.convertModel(list(b"nonsense"), context)


def test_targets_have_their_figures_in_both_places() -> None:
    assert [t.name for t in eiq.getNeutronTargets()] == ["imx95", "imxrt2660", "imxrt700", "mcxn94x"]
    target = eiq.getNeutronTarget("imxrt700")
    for home in (target, target.npu):
        figures = (home.subsystem, home.numUnits, home.numPipes, home.numMacs, home.hwVersion)
        assert figures == (False, 1, 8, 8, 2)
    assert eiq.getNeutronTarget("imx95").npu.subsystem is True
    assert eiq.isNeutronTarget("mcxn94x") and not eiq.isNeutronTarget("imx943")
    with pytest.raises(OptionError, match="unknown target 'nothing'"):
        eiq.getNeutronTarget("nothing")


def test_everything_pickles(context: eiq.CompilationContext) -> None:
    context.compilationOpts.useProfiling = True
    assert pickle.loads(pickle.dumps(context)) == context
    assert pickle.loads(pickle.dumps(eiq.convertModel)) is eiq.convertModel


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_it_runs_in_a_subprocess(context: eiq.CompilationContext, method: str) -> None:
    with multiprocessing.get_context(method).Pool(1) as pool:
        made = pool.apply(eiq.convertModel, (list(two_outputs()), context))
        assert made == convert(two_outputs(), Options()).model
        # An error must come back as an error; one that does not unpickle would hang the pool.
        with pytest.raises(FormatError, match="identifier"):
            pool.apply(eiq.convertModel, (list(b"nonsense"), context))


def test_installed_names_import(installed: None, context: eiq.CompilationContext) -> None:
    import eiq_neutron_sdk
    from eiq_neutron_sdk import neutron_compiler, neutron_converter
    from eiq_neutron_sdk.neutron_library_utils import isNeutronTarget
    from eiq_neutron_sdk.neutron_library_utils.merge_kernel_selection_code import main

    assert neutron_converter.convertModel is eiq.convertModel
    assert neutron_compiler.compileModel is eiq.compileModel
    assert eiq_neutron_sdk.neutron_converter is neutron_converter
    assert eiq_neutron_sdk.merge_kernel_selection_files is eiq.merge_kernel_selection_files
    assert isNeutronTarget("imxrt700") and callable(main)
    assert eiq.install()


def test_a_real_sdk_is_not_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parent / "fake_sdk")
    assert not eiq.install()
    assert eiq.PACKAGE not in sys.modules


def test_merging_through_their_name(tmp_path: Path) -> None:
    code = convert(two_outputs(), Options(dump_kernel_selection_code=True)).kernel_selection_code
    for name in "ab":
        (tmp_path / f"{name}.c").write_text(code)
    eiq.merge_kernel_selection_files([str(tmp_path / "a.c"), str(tmp_path / "b.c")], str(tmp_path / "out.c"))
    merged = (tmp_path / "out.c").read_text()
    assert "typedef enum NeutronKernelKind" in merged and "int32_t (*neutronKernels[" in merged


def run_compat(*arguments: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(COMPAT / "src"), str(SOURCES)])
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True)


def test_the_opt_in_package_merges_in_a_new_process(tmp_path: Path) -> None:
    code = convert(two_outputs(), Options(dump_kernel_selection_code=True)).kernel_selection_code
    (tmp_path / "a.c").write_text(code)
    tool = "eiq_neutron_sdk.neutron_library_utils.merge_kernel_selection_code"
    done = run_compat("-m", tool, "-input-files", str(tmp_path / "a.c"), "-output-file", str(tmp_path / "out.c"))
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "out.c").read_text() == code


def test_the_opt_in_package_has_the_names_that_install_gives() -> None:
    lines = ["import eiq_neutron_sdk as sdk, importlib", "assert sdk.OPENNEUTRON_COMPATIBILITY"]
    for module, names in eiq.MODULES.items():
        lines.append(f"m = importlib.import_module('eiq_neutron_sdk.{module}')")
        lines.append(f"assert sorted(m.__all__) == {sorted(names)}, m.__all__")
    done = run_compat("-c", "\n".join(lines))
    assert done.returncode == 0, done.stderr


def test_the_opt_in_package_is_not_in_the_main_distribution_and_has_its_version() -> None:
    project = tomllib.loads((COMPAT / "pyproject.toml").read_text())["project"]
    assert project["name"] == "openneutron-eiq-compat" and project["version"] == __version__
    main = tomllib.loads((COMPAT.parents[1] / "pyproject.toml").read_text())
    assert main["tool"]["scikit-build"]["wheel"]["packages"] == ["src/openneutron"]
