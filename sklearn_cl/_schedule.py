"""What a step size and the parameters do in the course of an experience."""

from __future__ import annotations

import math
from collections.abc import Iterator

from torch import Tensor

_WARM = 0.05


def cosine(n_steps: int) -> Iterator[float]:
    """The size of each step relative to the largest: a short rise, then half a cosine."""
    warm = max(1, round(_WARM * n_steps))
    for step in range(n_steps):
        rise = min(1.0, (step + 1) / warm)
        yield rise * 0.5 * (1 + math.cos(math.pi * step / n_steps))


class Average:
    """Average of tensors over a last part of the steps, however many there will be.

    Two running averages take turns: when the younger one covers ``part`` of all steps, it
    becomes the one that is asked for, and a new one begins. So the average covers between
    ``part`` and ``part * (2 - part)`` of the steps, and none before.

    Parameters
    ----------
    values : list of Tensor
        What to average; changed in place by every step.
    part : float
        From 0 to 1; 0 averages nothing.
    """

    def __init__(self, values: list[Tensor], part: float) -> None:
        self._values = values if part else []
        self._part = part
        self._old, self._young = ([v.clone() for v in self._values] for _ in range(2))
        self._n_old = self._n_young = self._n_steps = 0

    def update(self) -> None:
        """Take in the values as they are after a step."""
        if not self._values:
            return
        self._n_steps += 1
        self._n_old += 1
        self._n_young += 1
        for value, old, young in zip(self._values, self._old, self._young, strict=True):
            old.lerp_(value, 1 / self._n_old)
            young.lerp_(value, 1 / self._n_young)
        if self._n_young >= self._part * self._n_steps:
            self._old, self._young = self._young, self._old
            self._n_old, self._n_young = self._n_young, 0

    def swap(self) -> None:
        """Exchange the values with their average; twice changes nothing."""
        for mean, value in zip(self._old, self._values, strict=True):
            now = value.clone()
            value.copy_(mean)
            mean.copy_(now)
