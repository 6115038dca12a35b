"""Buffers: which rows of the past are kept."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor

from sklearn_cl._rows import Rows, concatenate
from sklearn_cl._state import Stateful


class Buffer(Stateful, ABC):
    """A bounded memory of rows.

    Parameters
    ----------
    capacity : int or None
        Rows to keep at most; None keeps all.

    Attributes
    ----------
    rows : Rows or None
        What is kept, in the order of arrival.
    seen : int
        How many rows have been offered.
    total : float
        The sum of their weights.
    """

    def __init__(self, capacity: int | None) -> None:
        self.capacity = capacity
        self.rows: Rows | None = None
        self.seen = 0
        self.total = 0.0

    def __len__(self) -> int:
        return 0 if self.rows is None else len(self.rows)

    def add(self, rows: Rows, rng: torch.Generator) -> None:
        """Offer the rows of an experience."""
        parts = [rows] if self.rows is None else [self.rows, rows]
        self.seen += len(rows)
        self.total += rows.total
        kept = self._keep(len(rows), sum(map(len, parts)), rng)
        if kept is not None:
            kept = kept.to(rows.X.device)
            n_old = len(parts[0])
            halves = [kept[kept < n_old], kept[kept >= n_old] - n_old]
            # The new rows may be many: take from each part before they are put together.
            parts = [part.take(half) for part, half in zip(parts, halves, strict=False)]
        self.rows = concatenate(*parts)

    def sample(self) -> Rows:
        """The kept rows, with weights that average to about one as those of all seen do."""
        if self.rows is None:
            raise ValueError("the buffer must hold rows before it can give any; it is empty.")
        if self.rows.weight is None:
            return self.rows
        return Rows(self.rows.X, self.rows.y, self.rows.weight * (self.seen / self.total))

    @abstractmethod
    def _keep(self, n_new: int, n_union: int, rng: torch.Generator) -> Tensor | None:
        """Which of the kept rows and the new ones stay, ascending; None means all."""


class Reservoir(Buffer):
    """A uniform sample of all rows seen: those with the largest of i.i.d. uniform keys.

    The sample does not depend on how the rows were cut into calls.
    """

    def __init__(self, capacity: int | None) -> None:
        super().__init__(capacity)
        self.keys = torch.empty(0, dtype=torch.float64)

    def _keep(self, n_new: int, n_union: int, rng: torch.Generator) -> Tensor | None:
        fresh = torch.rand(n_new, generator=rng, dtype=torch.float64)
        self.keys = torch.cat([self.keys, fresh])
        if self.capacity is None or n_union <= self.capacity:
            return None
        kept = self.keys.topk(self.capacity).indices.sort().values
        self.keys = self.keys[kept]
        return kept


class Balanced(Buffer):
    """As many rows of each experience, drawn at random; small ones leave room to the others."""

    def __init__(self, capacity: int | None) -> None:
        super().__init__(capacity)
        self.keys = torch.empty(0, dtype=torch.float64)
        self.experience = torch.empty(0, dtype=torch.int64)
        self.n_experiences = 0

    def _keep(self, n_new: int, n_union: int, rng: torch.Generator) -> Tensor | None:
        fresh = torch.rand(n_new, generator=rng, dtype=torch.float64)
        self.keys = torch.cat([self.keys, fresh])
        label = torch.full((n_new,), self.n_experiences)
        self.experience = torch.cat([self.experience, label])
        self.n_experiences += 1
        if self.capacity is None or n_union <= self.capacity:
            return None
        # Rank the rows of each experience by key; the capacity takes the lowest ranks.
        by_key = self.keys.argsort(descending=True)
        order = by_key[self.experience[by_key].argsort(stable=True)]
        _, counts = self.experience[order].unique_consecutive(return_counts=True)
        starts = (counts.cumsum(0) - counts).repeat_interleave(counts)
        rank = torch.arange(n_union) - starts
        # Among equal ranks the newest experience comes first.
        first = rank * self.n_experiences + (self.n_experiences - 1 - self.experience[order])
        kept = order[first.argsort()[: self.capacity]].sort().values
        self.keys, self.experience = self.keys[kept], self.experience[kept]
        return kept


class Recent(Buffer):
    """The last rows."""

    def _keep(self, n_new: int, n_union: int, rng: torch.Generator) -> Tensor | None:
        if self.capacity is None or n_union <= self.capacity:
            return None
        return torch.arange(n_union - self.capacity, n_union)


POLICIES: dict[str, type[Buffer]] = {
    "reservoir": Reservoir,
    "recent": Recent,
    "balanced": Balanced,
}
