"""PyTorch operators that no rule lowers: why, and what users can write instead.

Example:
    >>> way_out("aten.topk.default").why
    'it sorts'
"""

from __future__ import annotations

from typing import NamedTuple


class WayOut(NamedTuple):
    """Why the NPU does not take an operator, and what to do. Both are "" where nothing is known."""

    why: str = ""
    hint: str = ""


_SORTS = WayOut("it sorts", "for the best one use torch.argmax and torch.amax; for more end the model before it")
_BY_ELEMENT = WayOut(
    "every element has a place of its own",
    "use torch.index_select, which reads rows along one dimension, on more after a reshape that makes them one",
)
_WRITES = WayOut(
    "it writes elements at places that data decide",
    "write whole rows of a buffer with index_copy_ or by a slice; otherwise end the model before it",
)
_UNKNOWN_SIZE = WayOut(
    "the size of its result depends on data",
    "end the model before it, or multiply by a mask of 0 and 1, which keeps the size",
)
_CAST = WayOut(
    "it changes the type of stored numbers without their scale",
    "cast the program's inputs and outputs in the application; the quantizer chooses types inside",
)
_SPECTRUM = WayOut(
    "it computes with complex numbers",
    "read what torch.stft or torch.fft.rfft makes by abs, real, imag or view_as_real alone, with a constant window; otherwise "
    "compute the transformation in the application",
)
_BRANCH = "compute both branches and choose between their results with torch.where"
_NO_ANTIALIAS = WayOut(hint="interpolate without antialias, or after an average pooling")
_IN_FLOAT = WayOut(
    "it becomes others when it is quantized", "give calibration data, so that this part is quantized too"
)
_RANDOM = WayOut("it draws random numbers", "draw them in the application, and make them an input")
VOLUMES = WayOut(
    "it becomes convolutions of images when it is quantized, if its weights are constant",
    "make its weights a parameter, and give calibration data",
)

# By the operator's name without its overload.
_WAYS_OUT: dict[str, WayOut] = {
    **dict.fromkeys(("aten.topk", "aten.sort", "aten.argsort", "aten.kthvalue", "aten.median", "aten.mode"), _SORTS),
    **dict.fromkeys(("aten.gather", "aten.index", "aten.take_along_dim", "aten.take"), _BY_ELEMENT),
    **dict.fromkeys(
        ("aten.scatter", "aten.scatter_add", "aten.scatter_reduce", "aten.index_add", "aten.masked_scatter"), _WRITES
    ),
    **dict.fromkeys(("aten.nonzero", "aten.masked_select", "aten._unique2", "aten.unique_dim"), _UNKNOWN_SIZE),
    **dict.fromkeys(("aten._to_copy", "dim_order_ops._to_dim_order_copy"), _CAST),
    **dict.fromkeys(("aten._fft_r2c", "aten._fft_c2r", "aten._fft_c2c", "aten.complex"), _SPECTRUM),
    **dict.fromkeys(
        ("aten.div", "aten.native_layer_norm", "aten.native_group_norm", "aten._native_batch_norm_legit_no_training"),
        _IN_FLOAT,
    ),
    "aten.scalar_tensor": WayOut("it makes a number for the CPU's part", "see the operators that read it"),
    "aten.atan2": WayOut(
        "it is a function of two values, and a table has one input",
        "give both as outputs, and compute it in the application",
    ),
    "aten.avg_pool3d": WayOut("it divides by another number", "leave divisor_override out, and scale the result"),
    "aten.max_pool3d_with_indices": WayOut("it gives the places of maxima", "pool without return_indices"),
    **dict.fromkeys(("aten._upsample_bilinear2d_aa", "aten._upsample_bicubic2d_aa"), _NO_ANTIALIAS),
    **dict.fromkeys(("aten.rand", "aten.randn", "aten.rand_like", "aten.randn_like", "aten.multinomial"), _RANDOM),
    "aten.bernoulli": _RANDOM,
    "aten._embedding_bag": WayOut("it sums a varying number of rows", "look rows up with nn.Embedding and sum them"),
    "aten.embedding": WayOut(
        hint="looking rows up is little work: the layers behind it are what the NPU is for",
    ),
    # What one_hot becomes.
    "aten.eq": WayOut(hint="in place of one_hot and a linear layer use nn.Embedding with the layer's weights as rows"),
    "aten.where": WayOut(
        hint="compare values inside the model, or multiply by a mask of 0 and 1 and add the other side times its complement"
    ),
    "aten.conv3d": VOLUMES,
    "aten.conv_transpose3d": VOLUMES,
    "aten.grid_sampler_2d": WayOut(
        "it reads pixels at places that data decide",
        "for a fixed grid use interpolate; otherwise end the model before it",
    ),
    "torchvision.nms": WayOut(
        "how much it computes depends on data", "end the model before it: boxes and scores are its outputs then"
    ),
    "cond": WayOut(hint=_BRANCH),
    "while_loop": WayOut(hint="write a loop with a fixed number of steps"),
}


def no_lowering(operator: str) -> tuple[str, str]:
    """Return the message for an operator that no rule lowers, and a hint."""
    why, hint = way_out(operator)
    return f"operator {operator} has no lowering{f': {why}' if why else ''}", hint or "see `openneutron ops`"


def way_out(operator: str) -> WayOut:
    """Return what is known of an operator, named with its overload or without."""
    parts = operator.replace("::", ".").split(".")
    return _WAYS_OUT.get(".".join(parts[:2]), WayOut())
