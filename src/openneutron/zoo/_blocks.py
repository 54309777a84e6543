"""Building blocks shared by several networks of the zoo."""

from __future__ import annotations

from torch import nn


def conv_norm(
    channels_in: int,
    channels_out: int,
    kernel: int | tuple[int, int],
    *,
    stride: int = 1,
    padding: int | tuple[int, int] | None = None,
    groups: int = 1,
    activation: type[nn.Module] | None = nn.ReLU,
) -> nn.Sequential:
    """Return convolution without bias, batch norm, activation; padding defaults to half the (odd, square) kernel.

    >>> [type(layer).__name__ for layer in conv_norm(3, 16, 3)]
    ['Conv2d', 'BatchNorm2d', 'ReLU']
    """
    if padding is None:
        assert isinstance(kernel, int) and kernel % 2 == 1, "an even or oblong kernel needs its padding named"
        padding = kernel // 2
    layers: list[nn.Module] = [
        nn.Conv2d(channels_in, channels_out, kernel, stride=stride, padding=padding, groups=groups, bias=False),
        nn.BatchNorm2d(channels_out),
    ]
    if activation is not None:
        layers.append(activation())
    return nn.Sequential(*layers)


def separable(channels_in: int, channels_out: int, *, stride: int = 1) -> nn.Sequential:
    """Return depthwise 3x3 and pointwise convolution, each with batch norm and ReLU: the block of MobileNetV1 and DS- CNN."""
    return nn.Sequential(
        conv_norm(channels_in, channels_in, 3, stride=stride, groups=channels_in),
        conv_norm(channels_in, channels_out, 1),
    )
