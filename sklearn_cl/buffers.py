"""Buffers: which rows of the past are kept.

Strategies that remember rows take one as ``policy``, by name or as an object.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from typing import Any, Self

import torch
from torch import Tensor

from sklearn_cl._checks import check_number
from sklearn_cl._rows import Rows, concatenate
from sklearn_cl._state import Stateful

__all__ = ["Balanced", "Buffer", "KCenter", "Recent", "Reservoir", "TargetStratified"]


class Buffer(Stateful, ABC):
    """A bounded memory of rows.

    A subclass says in `choose` which rows stay. Whatever that depends on besides the rows lies
    in ``notes``, one value a row, so that two buffers can be merged as if one had seen all.

    Parameters
    ----------
    capacity : int or None, default=None
        Rows to keep at most; None keeps all. A strategy sets it to its own.

    Attributes
    ----------
    rows : Rows or None
        What is kept, in the order of arrival.
    notes : dict of str to Tensor
        What is known of each kept row, on the CPU.
    seen : int
        How many rows have been offered.
    total : float
        The sum of their weights.
    """

    name = ""

    def __init__(self, capacity: int | None = None) -> None:
        self.capacity = capacity
        self.rows: Rows | None = None
        self.notes: dict[str, Tensor] = {}
        self.seen = 0
        self.total = 0.0

    def __repr__(self) -> str:
        return f"{type(self).__name__}(capacity={self.capacity})"

    def __len__(self) -> int:
        return 0 if self.rows is None else len(self.rows)

    def add(self, rows: Rows, rng: torch.Generator, **notes: Tensor) -> Self:
        """Offer the rows of an experience.

        Parameters
        ----------
        rows : Rows
            The rows.
        rng : torch.Generator
            The chance that decides, on the CPU.
        **notes : Tensor of shape (n_rows, ...)
            What else to keep with each row, under a name of its own in ``notes``.

        Returns
        -------
        self : Buffer
            The buffer.
        """
        self._join(rows, self.note(rows, rng) | {k: v.cpu() for k, v in notes.items()})
        self.seen += len(rows)
        self.total += rows.total
        return self

    def merge(self, other: Self) -> Self:
        """Take in what another buffer has seen after this one.

        Parameters
        ----------
        other : Buffer
            A buffer of the same kind; it stays as it is.

        Returns
        -------
        self : Buffer
            The buffer, as if it had been offered the rows of both.

        Raises
        ------
        ValueError
            If the other is of another kind.
        """
        if type(other) is not type(self):
            raise ValueError(
                f"other must be a {type(self).__name__}; got a {type(other).__name__}."
            )
        if other.rows is not None:
            self._join(other.rows, self._after(other.notes))
            self.seen += other.seen
            self.total += other.total
        return self

    def sample(self) -> Rows:
        """The kept rows, with weights that average to about one as those of all seen do.

        Returns
        -------
        Rows
            The rows; the mean of weight times loss over them estimates that over all seen.

        Raises
        ------
        ValueError
            If there are none.
        """
        if self.rows is None:
            raise ValueError("the buffer must hold rows before it can give any; it is empty.")
        if self.rows.weight is None:
            return self.rows
        return Rows(self.rows.X, self.rows.y, self.rows.weight * (self.seen / self.total))

    def note(self, rows: Rows, rng: torch.Generator) -> dict[str, Tensor]:
        """What to know of each new row: by default a key, uniform on [0, 1).

        Parameters
        ----------
        rows : Rows
            The new rows.
        rng : torch.Generator
            The chance that decides.

        Returns
        -------
        dict of str to Tensor of shape (n_rows,)
            The notes, on the CPU.
        """
        return {"key": torch.rand(len(rows), generator=rng, dtype=torch.float64)}

    @abstractmethod
    def choose(self, parts: list[Rows], notes: dict[str, Tensor], capacity: int) -> Tensor:
        """Which rows stay, when there are too many.

        Parameters
        ----------
        parts : list of Rows
            The kept rows and the new ones.
        notes : dict of str to Tensor
            What is known of each of them; may be changed.
        capacity : int
            How many may stay.

        Returns
        -------
        Tensor of shape (n_kept,), dtype int64
            Their places in both parts together, ascending.
        """

    def _after(self, notes: dict[str, Tensor]) -> dict[str, Tensor]:
        """Another buffer's notes, as they are when its rows come after ours."""
        return notes

    def _join(self, rows: Rows, notes: dict[str, Tensor]) -> None:
        parts = [rows] if self.rows is None else [self.rows, rows]
        if self.rows is not None:
            old = {name: note.cpu() for name, note in self.notes.items()}
            notes = {name: torch.cat([old[name], new]) for name, new in notes.items()}
        if self.capacity is not None and sum(map(len, parts)) > self.capacity:
            kept = self.choose(parts, notes, self.capacity)
            notes = {name: note[kept] for name, note in notes.items()}
            parts = _take(parts, kept)
        self.rows, self.notes = concatenate(*parts), notes


class Reservoir(Buffer):
    """A uniform sample of all rows seen: those with the largest of i.i.d. uniform keys.

    The sample does not depend on how the rows were cut into calls, and two merge exactly.

    Parameters
    ----------
    capacity : int or None, default=None
        Rows to keep at most; None keeps all.

    References
    ----------
    J. S. Vitter, "Random sampling with a reservoir", ACM TOMS 11(1), 1985.
    """

    name = "reservoir"

    def choose(self, parts: list[Rows], notes: dict[str, Tensor], capacity: int) -> Tensor:
        return notes["key"].topk(capacity).indices.sort().values


class Balanced(Buffer):
    """As many rows of each experience, drawn at random; small ones leave room to the others.

    Parameters
    ----------
    capacity : int or None, default=None
        Rows to keep at most; None keeps all.
    """

    name = "balanced"

    def __init__(self, capacity: int | None = None) -> None:
        super().__init__(capacity)
        self.n_experiences = 0

    def note(self, rows: Rows, rng: torch.Generator) -> dict[str, Tensor]:
        label = torch.full((len(rows),), self.n_experiences)
        self.n_experiences += 1
        return super().note(rows, rng) | {"experience": label}

    def merge(self, other: Self) -> Self:
        super().merge(other)
        self.n_experiences += other.n_experiences
        return self

    def choose(self, parts: list[Rows], notes: dict[str, Tensor], capacity: int) -> Tensor:
        label = notes["experience"]
        # Among equal ranks the newest experience comes first.
        order = _rank(label, notes["key"]) * (label.max() + 1) + (label.max() - label)
        return order.argsort()[:capacity].sort().values

    def _after(self, notes: dict[str, Tensor]) -> dict[str, Tensor]:
        return notes | {"experience": notes["experience"] + self.n_experiences}


class Recent(Buffer):
    """The last rows.

    Parameters
    ----------
    capacity : int or None, default=None
        Rows to keep at most; None keeps all.
    """

    name = "recent"

    def note(self, rows: Rows, rng: torch.Generator) -> dict[str, Tensor]:
        return {}

    def choose(self, parts: list[Rows], notes: dict[str, Tensor], capacity: int) -> Tensor:
        n_rows = sum(map(len, parts))
        return torch.arange(n_rows - capacity, n_rows)


class KCenter(Buffer):
    r"""Rows that cover the inputs: each next one is the farthest from those chosen before.

    Greedy 2-approximation of the k-center problem; it likes outliers, and its sample is not
    representative.

    Parameters
    ----------
    capacity : int or None, default=None
        Rows to keep at most; None keeps all.

    References
    ----------
    T. F. Gonzalez, "Clustering to minimize the maximum intercluster distance", TCS 38, 1985.
    """

    name = "kcenter"

    def choose(self, parts: list[Rows], notes: dict[str, Tensor], capacity: int) -> Tensor:
        X = torch.cat([part.X for part in parts])
        chosen = [int(notes["key"].argmax())]
        distance = torch.full((len(X),), float("inf"), dtype=X.dtype, device=X.device)
        while len(chosen) < capacity:
            torch.minimum(distance, (X - X[chosen[-1]]).square().sum(1), out=distance)
            distance[chosen[-1]] = -1
            chosen.append(int(distance.argmax()))
        return torch.tensor(sorted(chosen))


class TargetStratified(Buffer):
    r"""As many rows from each range of the target, with weights that undo the choice.

    The targets (their mean, if there are several) between the quantiles at 1 % and 99 % are cut
    into bins of equal width. A kept row stands for all rows seen in its place:
    its importance is the number of those in its bin over the number kept.

    Parameters
    ----------
    capacity : int or None, default=None
        Rows to keep at most; None keeps all.
    n_bins : int, default=10
        Number of bins, at least 1.
    """

    name = "target_stratified"

    def __init__(self, capacity: int | None = None, n_bins: int = 10) -> None:
        check_number("n_bins", n_bins, low=1, integer=True)
        super().__init__(capacity)
        self.n_bins = n_bins

    def note(self, rows: Rows, rng: torch.Generator) -> dict[str, Tensor]:
        return super().note(rows, rng) | {"stands_for": torch.ones(len(rows), dtype=torch.float64)}

    def sample(self) -> Rows:
        rows = super().sample()
        share = self.notes["stands_for"] / self.notes["stands_for"].mean()
        weight = share.to(rows.y).unsqueeze(1)
        return Rows(rows.X, rows.y, weight if rows.weight is None else weight * rows.weight)

    def choose(self, parts: list[Rows], notes: dict[str, Tensor], capacity: int) -> Tensor:
        y = torch.cat([part.y for part in parts]).double().mean(1).cpu()
        stands_for = notes["stands_for"]
        low, high = (y.quantile(q) for q in (0.01, 0.99))
        width = (high - low).clamp(min=torch.finfo(y.dtype).tiny) / self.n_bins
        label = ((y - low) / width).floor().clamp(0, self.n_bins - 1).long()
        # A row that stands for many is more likely to stay.
        kept = _rank(label, notes["key"] ** (1 / stands_for)).argsort(stable=True)[:capacity]
        kept = kept.sort().values
        total = torch.zeros(self.n_bins, dtype=torch.float64).index_add_(0, label, stands_for)
        count = label[kept].bincount(minlength=self.n_bins).double()
        stands_for[kept] = (total / count)[label[kept]]
        return kept


POLICIES: dict[str, type[Buffer]] = {
    cls.name: cls for cls in (Reservoir, Recent, Balanced, KCenter, TargetStratified)
}


def make_buffer(policy: Any, capacity: int | None) -> Buffer:
    """An empty buffer from a name or an object, which is copied."""
    buffer = POLICIES[policy]() if isinstance(policy, str) else copy.deepcopy(policy)
    buffer.capacity = capacity
    return buffer


def check_policy(policy: Any, buffer: Buffer | None) -> None:
    """Raise a ValueError if ``policy`` is none, or not that of ``buffer``, which is in use."""
    if isinstance(policy, Buffer):
        if policy.rows is not None:
            raise ValueError(f"policy must be an empty buffer; got one of {len(policy)} rows.")
        kind = type(policy)
    elif isinstance(policy, str) and policy in POLICIES:
        kind = POLICIES[policy]
    else:
        known = ", ".join(repr(name) for name in POLICIES)
        raise ValueError(f"policy must be one of {known}, or a Buffer; got {policy!r}.")
    if buffer is not None and type(buffer) is not kind:
        raise ValueError(
            f"policy must stay {buffer.name or type(buffer).__name__!r} while the stream goes on; "
            f"got {policy!r}. Call fit to start anew."
        )


def _take(parts: list[Rows], kept: Tensor) -> list[Rows]:
    """The rows at ``kept`` of all parts together, without putting them together first."""
    taken, start = [], 0
    for part in parts:
        inside = kept[(kept >= start) & (kept < start + len(part))] - start
        taken.append(part.take(inside.to(part.X.device)))
        start += len(part)
    return taken


def _rank(label: Tensor, key: Tensor) -> Tensor:
    """The rank of each row within its label, the largest key first."""
    by_key = key.argsort(descending=True)
    order = by_key[label[by_key].argsort(stable=True)]
    _, counts = label[order].unique_consecutive(return_counts=True)
    starts = (counts.cumsum(0) - counts).repeat_interleave(counts)
    rank = torch.empty_like(order)
    rank[order] = torch.arange(len(order)) - starts
    return rank
