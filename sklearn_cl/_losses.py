"""Losses of a residual: the value and its slope."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor


class Loss(NamedTuple):
    """A loss of the residual ``r = f - y``, element by element.

    Parameters
    ----------
    value : callable
        The loss of each residual.
    slope : callable
        ``slope(r, factor, out)`` writes ``factor`` times its derivative to ``out``.
    """

    value: Callable[[Tensor], Tensor]
    slope: Callable[[Tensor, float, Tensor], Tensor]


def _huber(r: Tensor) -> Tensor:
    inner = r.clamp(-1, 1)
    return inner * (2 * r - inner)


def _squared_slope(r: Tensor, factor: float, out: Tensor) -> Tensor:
    return torch.mul(r, 2 * factor, out=out)


def _absolute_slope(r: Tensor, factor: float, out: Tensor) -> Tensor:
    return torch.sign(r, out=out).mul_(factor)


def _huber_slope(r: Tensor, factor: float, out: Tensor) -> Tensor:
    return torch.clamp(r, -1, 1, out=out).mul_(2 * factor)


# Huber's loss is the squared error up to one standard deviation of the target.
LOSSES = {
    "squared_error": Loss(torch.square, _squared_slope),
    "absolute_error": Loss(torch.abs, _absolute_slope),
    "huber": Loss(_huber, _huber_slope),
}
