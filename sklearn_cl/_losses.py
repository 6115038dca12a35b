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
        Its derivative.
    """

    value: Callable[[Tensor], Tensor]
    slope: Callable[[Tensor], Tensor]


def _huber(r: Tensor) -> Tensor:
    inner = r.clamp(-1, 1)
    return inner * (2 * r - inner)


# Huber's loss is the squared error up to one standard deviation of the target.
LOSSES = {
    "squared_error": Loss(torch.square, lambda r: 2 * r),
    "absolute_error": Loss(torch.abs, torch.sign),
    "huber": Loss(_huber, lambda r: 2 * r.clamp(-1, 1)),
}
