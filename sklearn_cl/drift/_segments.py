"""Exact penalised least squares: where the mean of a sequence changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def changes(values: Floats, penalty: float, least: int = 1) -> list[int]:
    r"""Positions that cut a sequence into segments of constant mean.

    They minimise :math:`\sum_s \sum_{t \in s} \|v_t - \bar v_s\|^2` plus the penalty for each
    cut, exactly, by a dynamic programme over where the last segment begins.

    Parameters
    ----------
    values : ndarray of shape (n, k)
        The sequence.
    penalty : float
        Cost of a cut.
    least : int, default=1
        Values in a segment at least.

    Returns
    -------
    list of int
        Where segments begin, the first one excepted.
    """
    n = len(values)
    sums, squares = cumulative(values)
    best, begin = np.full(n + 1, np.inf), np.zeros(n + 1, dtype=np.intp)
    best[0] = -penalty
    for end in range(least, n + 1):
        start = np.arange(end - least + 1)
        total = best[start] + segment_cost(sums, squares, start, end) + penalty
        begin[end] = total.argmin()
        best[end] = total[begin[end]]
    cuts, end = [], int(begin[n])
    while end:
        cuts.append(end)
        end = int(begin[end])
    return cuts[::-1]


def gains(values: Floats, cuts: list[int]) -> Floats:
    """By how much the cost would grow without each of the cuts."""
    sums, squares = cumulative(values)
    edges = np.array([0, *cuts, len(values)])
    left, middle, right = edges[:-2], edges[1:-1], edges[2:]
    apart = segment_cost(sums, squares, left, middle) + segment_cost(sums, squares, middle, right)
    return segment_cost(sums, squares, left, right) - apart


def cumulative(values: Floats) -> tuple[Floats, Floats]:
    """Sums of the first values and of their squares, from none to all."""
    centred = values - values.mean(0)
    sums = np.vstack([np.zeros(values.shape[1]), centred.cumsum(0)])
    return sums, np.append(0.0, (centred**2).sum(1).cumsum())


def segment_cost(sums: Floats, squares: Floats, start: Any, end: Any) -> Floats:
    """Sum of squares about the mean of each segment."""
    length = end - start
    cost: Floats = squares[end] - squares[start] - ((sums[end] - sums[start]) ** 2).sum(-1) / length
    return cost
