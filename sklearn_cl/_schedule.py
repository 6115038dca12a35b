"""What a step size and the parameters do in the course of an experience."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor

_WARM = 0.05


def cosine(n_steps: int) -> Iterator[float]:
    """The size of each step relative to the largest: a short rise, then half a cosine."""
    warm = max(1, round(_WARM * n_steps))
    for step in range(n_steps):
        rise = min(1.0, (step + 1) / warm)
        yield rise * 0.5 * (1 + math.cos(math.pi * step / n_steps))


class Average:
    """Average of tensors over about the last ``part`` of the steps, however many there will be.

    Step t has the weight t^(2 / part - 2), whose mean age is that of a window of that part.

    Parameters
    ----------
    values : list of Tensor
        What to average; changed in place by every step.
    part : float
        From 0 to 1; 0 averages nothing.

    References
    ----------
    O. Shamir, T. Zhang, "Stochastic gradient descent for non-smooth optimization: convergence
    results and optimal averaging schemes", ICML 2013.
    """

    def __init__(self, values: list[Tensor], part: float) -> None:
        self._values = values if part else []
        self._means = [value.clone() for value in self._values]
        self._power = 2 / part - 2 if part else 0.0
        self._t = 0

    def update(self) -> None:
        """Take in the values as they are after a step."""
        self._t += 1
        weight = (self._power + 1) / (self._power + self._t)
        for mean, value in zip(self._means, self._values, strict=True):
            mean.lerp_(value, weight)

    def swap(self) -> None:
        """Exchange the values with their average; twice changes nothing."""
        with torch.no_grad():
            for mean, value in zip(self._means, self._values, strict=True):
                now = value.clone()
                value.copy_(mean)
                mean.copy_(now)
