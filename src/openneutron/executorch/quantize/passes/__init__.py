"""Rewrites of the ATen graph before annotation: one file each, in the order of `PASSES`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch.fx import GraphModule

from openneutron.executorch.quantize.passes.bypass_joins import bypass_joins
from openneutron.executorch.quantize.passes.decompose.decompose_attention import (
    decompose_attention,
    decompose_large_attention,
)
from openneutron.executorch.quantize.passes.decompose.decompose_batch_norm import decompose_batch_norm
from openneutron.executorch.quantize.passes.decompose.decompose_composites import decompose_composites
from openneutron.executorch.quantize.passes.decompose.decompose_group_norm import decompose_group_norm
from openneutron.executorch.quantize.passes.decompose.decompose_gru import decompose_gru
from openneutron.executorch.quantize.passes.decompose.decompose_layer_norm import decompose_layer_norm
from openneutron.executorch.quantize.passes.decompose.decompose_log_softmax import decompose_log_softmax
from openneutron.executorch.quantize.passes.decompose.decompose_lstm import decompose_lstm
from openneutron.executorch.quantize.passes.decompose.decompose_products import decompose_products
from openneutron.executorch.quantize.passes.decompose.decompose_rnn import decompose_rnn
from openneutron.executorch.quantize.passes.decompose.decompose_volumes import decompose_volumes
from openneutron.executorch.quantize.passes.drop_batch_counters import drop_batch_counters
from openneutron.executorch.quantize.passes.fold_affine import fold_affine
from openneutron.executorch.quantize.passes.fold_constants import fold_constants
from openneutron.executorch.quantize.passes.fold_into_tables import fold_into_tables
from openneutron.executorch.quantize.passes.fold_positions import fold_positions
from openneutron.executorch.quantize.passes.keep_counters_float import keep_counters_float
from openneutron.executorch.quantize.passes.linear_norm_to_conv import linear_norm_to_conv
from openneutron.executorch.quantize.passes.recognize.recognize_activation import recognize_activation
from openneutron.executorch.quantize.passes.recognize.recognize_layer_norm import recognize_layer_norm
from openneutron.executorch.quantize.passes.recognize.recognize_softmax import recognize_softmax
from openneutron.executorch.quantize.passes.recognize.recognize_steps import recognize_steps
from openneutron.executorch.quantize.passes.remove_aliases import remove_aliases
from openneutron.executorch.quantize.passes.remove_dropout import remove_dropout
from openneutron.executorch.quantize.passes.replace.replace_additive_mask import (
    replace_additive_mask,
    replace_large_additive_mask,
)
from openneutron.executorch.quantize.passes.replace.replace_channel_average import replace_channel_average
from openneutron.executorch.quantize.passes.replace.replace_complex import replace_complex
from openneutron.executorch.quantize.passes.replace.replace_division import replace_division
from openneutron.executorch.quantize.passes.replace.replace_index import replace_index
from openneutron.executorch.quantize.passes.replace.replace_low_padding import replace_low_padding
from openneutron.executorch.quantize.passes.replace.replace_mask import replace_mask
from openneutron.executorch.quantize.passes.replace.replace_masked_fill import (
    replace_large_masked_fill,
    replace_masked_fill,
)
from openneutron.executorch.quantize.passes.replace.replace_max import replace_max
from openneutron.executorch.quantize.passes.replace.replace_one_hot import replace_one_hot
from openneutron.executorch.quantize.passes.replace.replace_operands import replace_operands
from openneutron.executorch.quantize.passes.replace.replace_padding import replace_padding
from openneutron.executorch.quantize.passes.replace.replace_resize import replace_resize
from openneutron.executorch.quantize.passes.replace.replace_roll import replace_roll
from openneutron.executorch.quantize.passes.replace.replace_scalars import replace_scalars
from openneutron.executorch.quantize.passes.replace.replace_subtracted_mask import replace_subtracted_mask
from openneutron.executorch.quantize.passes.replace.replace_where import replace_where
from openneutron.executorch.quantize.passes.separate_constants import separate_constants
from openneutron.executorch.quantize.passes.separate_ranges import separate_ranges
from openneutron.executorch.quantize.passes.split_probabilities import split_probabilities
from openneutron.executorch.quantize.passes.split_to_slices import split_to_slices

Pass = Callable[[GraphModule], int]

# Each edits the graph in place and returns how many places it changed.
RECOGNITION: tuple[Pass, ...] = (
    fold_constants,
    replace_complex,  # magnitudes of spectra have a form for 16 bits
    recognize_activation,
    recognize_softmax,
    recognize_layer_norm,
)
PASSES: tuple[Pass, ...] = (
    remove_aliases,  # `scores.float()` would stand between a mask and its softmax
    fold_constants,  # attention masks are often sliced from larger ones
    fold_positions,  # before masks made from positions are taken apart
    replace_complex,
    replace_subtracted_mask,
    replace_additive_mask,
    decompose_attention,
    replace_low_padding,
    replace_masked_fill,
    # Masks of these three that a check restored, because the scores are too large, get a form for scores of any size.
    replace_large_additive_mask,
    decompose_large_attention,
    replace_large_masked_fill,
    fold_into_tables,
    decompose_composites,
    decompose_products,
    decompose_group_norm,
    decompose_log_softmax,
    decompose_layer_norm,
    decompose_gru,
    decompose_lstm,
    decompose_rnn,
    replace_max,
    replace_channel_average,
    decompose_volumes,
    replace_where,
    replace_mask,
    replace_one_hot,
    replace_roll,
    replace_resize,
    replace_padding,
    replace_index,
    replace_division,
    decompose_batch_norm,
    remove_dropout,
    remove_aliases,
    split_probabilities,
    split_to_slices,
    bypass_joins,
    recognize_steps,  # before constant folding changes the first step
    fold_constants,
    fold_affine,
    replace_operands,
    replace_scalars,
    separate_ranges,
    separate_constants,
    keep_counters_float,
)
# Not used in training: dropout and batch norms are active, and parameters change.
_EVALUATION_ONLY = frozenset({decompose_batch_norm, remove_dropout, fold_constants, fold_affine, recognize_layer_norm})
# Only used in training.
TRAINING_PASSES: tuple[Pass, ...] = (drop_batch_counters, linear_norm_to_conv)


def passes_for(*, is_qat: bool, wide: Sequence[Pass] = (), written_out: Sequence[Pass] = ()) -> tuple[Pass, ...]:
    """Return all passes in their order.

    Two kinds are for 16-bit activations: `wide` run after recognition, `written_out` where norms and masks are written out.
    """
    at = PASSES.index(replace_division)
    every = (*RECOGNITION, *wide, *(TRAINING_PASSES if is_qat else ()), *PASSES[:at], *written_out, *PASSES[at:])
    return tuple(step for step in every if not (is_qat and step in _EVALUATION_ONLY))


def recognize(model: GraphModule, *, is_qat: bool) -> GraphModule:
    """Recognise operators that the model writes out, before other passes decompose operators."""
    return run_passes([step for step in RECOGNITION if not (is_qat and step in _EVALUATION_ONLY)], model)


def prepare_for_annotation(model: GraphModule, *, is_qat: bool) -> GraphModule:
    """Run all passes except recognition in place."""
    passes = (*TRAINING_PASSES, *PASSES) if is_qat else PASSES
    return run_passes([step for step in passes if not (is_qat and step in _EVALUATION_ONLY)], model)


def run_passes(passes: Sequence[Pass], model: GraphModule) -> GraphModule:
    """Run passes in place, without the check of `RewriteCheck`; a pass that finds nothing costs one walk over the nodes."""
    changed = sum([step(model) for step in passes])
    if changed:
        model.graph.eliminate_dead_code()
        model.recompile()
    return model
