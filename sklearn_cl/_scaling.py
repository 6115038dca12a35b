"""Standardisation with the statistics of the first experience."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

# Copies of a block of rows, not of all of them, are what a step of the computation takes.
_BLOCK = 2**13

Floats = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True, eq=False)
class Scaling:
    """Centre and scale of columns, in float64.

    Parameters
    ----------
    centre, scale : ndarray of shape (n_columns,)
        ``(values - centre) / scale`` is what the rows hold.
    constant : ndarray of shape (n_columns,), dtype bool
        Columns that did not vary. A value that equals the constant becomes exactly zero.
    resolution : float
        Relative difference up to which values count as equal.
    """

    centre: npt.NDArray[np.float64]
    scale: npt.NDArray[np.float64]
    constant: npt.NDArray[np.bool_]
    resolution: float = 0.0

    @classmethod
    def identity(cls, n_columns: int) -> Self:
        """Leaves the values alone."""
        return cls(np.zeros(n_columns), np.ones(n_columns), np.zeros(n_columns, dtype=bool))

    @classmethod
    def of(cls, values: Floats, weight: Floats | None, resolution: float) -> Self:
        """Mean and standard deviation, weighted."""
        top = np.abs(values).max(axis=0).astype(np.float64)
        top[top == 0] = 1.0
        spread = values.max(axis=0).astype(np.float64) - values.min(axis=0)
        constant = spread <= resolution * top
        # Relative to the largest value, so that squares do not overflow.
        weight = np.ones((len(values), 1)) if weight is None else weight[:, None]
        blocks = [slice(k, k + _BLOCK) for k in range(0, len(values), _BLOCK)]
        centre = sum((weight[k] * (values[k] / top)).sum(0) for k in blocks) / weight.sum()
        squares = sum((weight[k] * (values[k] / top - centre) ** 2).sum(0) for k in blocks)
        deviation = np.sqrt(squares / weight.sum()) * top
        centre = np.where(constant, values[0], centre * top)
        constant |= deviation == 0
        scale = np.where(constant, np.where(centre == 0, 1.0, np.abs(centre)), deviation)
        return cls(centre, scale, constant, resolution)

    def forward(
        self, values: Floats, dtype: npt.DTypeLike = np.float64
    ) -> npt.NDArray[np.floating[Any]]:
        """Standardise; computed in float64, a block of rows at a time."""
        answer = np.empty(values.shape, dtype)
        for k in range(0, len(values), _BLOCK):
            scaled = (values[k : k + _BLOCK] - self.centre) / self.scale
            if self.constant.any():
                scaled[self.constant & (np.abs(scaled) <= self.resolution)] = 0.0
            # What is too large for the type is infinite, and refused where it does harm.
            with np.errstate(over="ignore"):
                answer[k : k + _BLOCK] = scaled
        return answer

    def backward(self, scaled: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Undo `forward`."""
        return scaled * self.scale + self.centre
