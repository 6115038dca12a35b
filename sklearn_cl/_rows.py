"""Rows: the inputs, targets and weights of a batch, a buffer or an experience."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from sklearn_cl._state import Stateful


@dataclass(frozen=True, eq=False)
class Rows(Stateful):
    """Inputs, targets and weights, row by row; never changed in place.

    The loss of rows is the mean of ``weight * loss`` over them, so weights that average
    to one leave its scale alone.

    Parameters
    ----------
    X : Tensor of shape (n_rows, n_features)
        Standardised inputs.
    y : Tensor of shape (n_rows, n_outputs)
        Standardised targets; always two-dimensional.
    weight : Tensor of shape (n_rows, 1), default=None
        Weights; None means a weight of one for every row.
    """

    X: Tensor
    y: Tensor
    weight: Tensor | None = None

    def __len__(self) -> int:
        return self.X.shape[0]

    def __deepcopy__(self, memo: dict[int, Any]) -> Rows:
        return self

    @property
    def total(self) -> float:
        """Sum of the weights."""
        return float(len(self)) if self.weight is None else float(self.weight.sum())

    def map(self, function: Callable[[Tensor], Tensor]) -> Rows:
        """Apply ``function`` to each of the tensors."""
        weight = None if self.weight is None else function(self.weight)
        return Rows(function(self.X), function(self.y), weight)

    def take(self, index: Tensor | slice) -> Rows:
        """The rows at ``index``."""
        if isinstance(index, slice) or index.dtype == torch.bool:
            return self.map(lambda tensor: tensor[index])
        # Indexing with a tensor is twenty times slower.
        return self.map(lambda tensor: tensor.index_select(0, index))

    def shuffled(self, rng: torch.Generator) -> Rows:
        """The rows in a random order."""
        return self.take(torch.randperm(len(self), generator=rng).to(self.X.device))

    def split(self, size: int) -> Iterator[Rows]:
        """Consecutive pieces of ``size`` rows; the last one may be smaller."""
        weights = [None] * -(-len(self) // size) if self.weight is None else self.weight.split(size)
        return map(Rows, self.X.split(size), self.y.split(size), weights)

    def normalised(self) -> Rows:
        """The rows with weights that average to one."""
        if self.weight is None:
            return self
        return Rows(self.X, self.y, self.weight / self.weight.mean())


def concatenate(*parts: Rows) -> Rows:
    """Stack rows; a part without weights counts as weights of one."""
    if len(parts) == 1:
        return parts[0]
    weight = None
    if any(part.weight is not None for part in parts):
        weight = torch.cat([_weight(part) for part in parts])
    return Rows(
        torch.cat([part.X for part in parts]), torch.cat([part.y for part in parts]), weight
    )


def mix(new: Rows, old: Rows, share: float) -> Rows:
    """Stack ``new`` and ``old`` so that the loss is ``(1 - share) * new + share * old``."""
    n = len(new) + len(old)
    factors = (1 - share) * n / len(new), share * n / len(old)
    if new.weight is None and old.weight is None:
        weight = _two_weights(len(new), len(old), *factors, new.y.dtype, new.y.device)
    else:
        parts = zip((new, old), factors, strict=True)
        weight = torch.cat([_weight(rows) * factor for rows, factor in parts])
    return Rows(torch.cat([new.X, old.X]), torch.cat([new.y, old.y]), weight)


@lru_cache(maxsize=16)
def _two_weights(
    n: int, m: int, first: float, second: float, dtype: torch.dtype, device: torch.device
) -> Tensor:
    """One weight for the first ``n`` rows, another for the rest: the same in every step."""
    made = torch.full((n + m, 1), first, dtype=dtype, device=device)
    made[n:] = second
    return made


def _weight(rows: Rows) -> Tensor:
    return rows.y.new_ones(len(rows), 1) if rows.weight is None else rows.weight
