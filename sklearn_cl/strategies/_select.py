"""Strategies that choose what to remember or rehearse by what the net makes of it."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sklearn_cl._checks import check_number, check_option
from sklearn_cl._learner import Learner
from sklearn_cl._rows import Rows, concatenate, mix
from sklearn_cl.buffers import Buffer
from sklearn_cl.strategies._rehearsal import DarkMemory, Memory

_CANDIDATES_AT_ONCE = 256


class GDumb(Memory):
    r"""Greedy sampler and dumb learner: start anew, and train on the buffer only.

    The buffer takes the new rows first. Nothing is learnt that is not in it, so the model is
    as good as ``capacity`` rows allow; what beats it makes some use of the rest.

    Parameters
    ----------
    capacity : int or None, default=500
        Rows to keep; None keeps all.
    policy : str or Buffer, default="balanced"
        Which rows; a name or an object of `sklearn_cl.buffers`. The paper balances classes;
        "target_stratified" balances ranges of the target.

    Attributes
    ----------
    buffer_ : Buffer
        The memory.

    Notes
    -----
    Take it to see whether the past matters at all: what needs a stream must beat a net that is
    trained on the memory alone.

    References
    ----------
    A. Prabhu, P. Torr, P. Dokania, "GDumb: a simple approach that questions our progress in
    continual learning", ECCV 2020.

    Examples
    --------
    >>> from sklearn_cl.strategies import GDumb
    >>> GDumb(capacity=1000)
    GDumb(capacity=1000)
    """

    name = "gdumb"
    batch_size = None

    def __init__(self, capacity: int | None = 500, policy: Any = "balanced") -> None:
        self.capacity = capacity
        self.policy = policy

    def begin(self, experience: Rows, learner: Learner) -> Rows | None:
        first = self.buffer_ is None
        super().consolidate(experience, learner)
        assert self.buffer_ is not None
        if not first:
            learner.reset()
        rows = self.buffer_.sample()
        if rows.weight is None:
            return rows
        # Weight decay needs the true sum of the weights.
        return Rows(rows.X, rows.y, rows.weight * (self.buffer_.total / self.buffer_.seen))

    def lesson(self, experience: Rows, learner: Learner, buffer: Buffer) -> None:
        raise NotImplementedError

    def consolidate(self, experience: Rows, learner: Learner) -> None:
        pass


class MIR(Memory):
    r"""Maximally interfered retrieval: rehearse the rows that the next step would hurt most.

    In each step it draws candidates from the memory, takes a step on the new rows on trial,
    :math:`\theta' = \theta - \eta g`, and rehearses those whose loss it raises most, with the
    weight of `Replay`. It favours rows with noisy targets.

    Parameters
    ----------
    capacity : int or None, default=500
        Rows to keep; None keeps all.
    policy : str or Buffer, default="reservoir"
        Which rows; a name or an object of `sklearn_cl.buffers`.
    batch_size : int or None, default=None
        Rows of the memory in each step; None means as many as a full batch of the estimator.
    n_candidates : int, default=3
        Candidates for each row that is rehearsed, at least 1; 1 is `Replay`.
    strength : "share" or float, default="share"
        Weight of the past relative to the new rows, at least 0; "share" follows the numbers of
        rows.

    Attributes
    ----------
    buffer_ : Buffer
        The memory.

    Notes
    -----
    Take it to compare with; its search for the rows most at risk costs extra passes in each step,
    and rarely pays for regression.

    References
    ----------
    R. Aljundi et al., "Online continual learning with maximally interfered retrieval", NeurIPS
    2019, arXiv:1908.04742.

    Examples
    --------
    >>> from sklearn_cl.strategies import MIR
    >>> MIR(n_candidates=2)
    MIR(n_candidates=2)
    """

    name = "mir"

    def __init__(
        self,
        capacity: int | None = 500,
        policy: Any = "reservoir",
        batch_size: int | None = None,
        n_candidates: int = 3,
        strength: float | Literal["share"] = "share",
    ) -> None:
        self.capacity = capacity
        self.policy = policy
        self.batch_size = batch_size
        self.n_candidates = n_candidates
        self.strength = strength

    def check_params(self) -> None:
        check_number("n_candidates", self.n_candidates, low=1, integer=True)
        check_number("strength", self.strength, low=0, also=["share"])
        super().check_params()

    def lesson(self, experience: Rows, learner: Learner, buffer: Buffer) -> None:
        self.recall(buffer.sample(), buffer.total, experience, learner, self.strength)

    def rehearse(self, batch: Rows, learner: Learner) -> Rows:
        if self._pool is None:
            return batch
        candidates = self._pool.draw(self.n_candidates * self._size)
        n_kept = min(self._size, len(candidates))
        worst = interference(candidates, learner.gradient(batch), learner).topk(n_kept).indices
        return mix(batch, candidates.take(worst), self._share)


class GSS(DarkMemory):
    r"""Gradient-based sample selection: keep rows whose gradients point different ways.

    Each new row gets a score, the largest cosine between its gradient and those of a few kept
    rows, drawn at random. While there is room every row is kept. After that one with a score
    below 0 may replace a kept one, drawn in proportion to the scores (raised to 0 to 1), with a
    probability that compares the two scores. It then rehearses as `Replay` does.

    The gradient of a squared error is the residual times the derivative of the output, so
    for one target the sign of the cosine is that of the noise. ``direction="jacobian"`` leaves
    the residual out; since derivatives of outputs rarely oppose each other, a row then counts
    as new when its score is below the mean of the kept ones.

    Parameters
    ----------
    capacity : int or None, default=500
        Rows to keep; None keeps all.
    batch_size : int or None, default=None
        Rows of the memory in each step; None means as many as a full batch of the estimator.
    strength : "share" or float, default="share"
        Weight of the past relative to the new rows, at least 0; "share" follows the numbers of
        rows.
    direction : {"jacobian", "loss"}, default="jacobian"
        Derivatives of the outputs, or of the loss as in the paper.
    n_references : int, default=10
        Kept rows to compare each new row with, at least 1.

    Attributes
    ----------
    buffer_ : Buffer
        The memory; ``buffer_.notes["score"]`` has the scores.

    Notes
    -----
    Take it for a stream of rows whose kinds are very unequal in number, where a uniform sample
    would miss the rare ones.

    References
    ----------
    R. Aljundi et al., "Gradient based sample selection for online continual learning", NeurIPS
    2019, arXiv:1903.08671.

    Examples
    --------
    >>> from sklearn_cl.strategies import GSS
    >>> GSS(capacity=200)
    GSS(capacity=200)
    """

    name = "gss"

    def __init__(
        self,
        capacity: int | None = 500,
        batch_size: int | None = None,
        strength: float | Literal["share"] = "share",
        direction: str = "jacobian",
        n_references: int = 10,
    ) -> None:
        self.capacity = capacity
        self.batch_size = batch_size
        self.strength = strength
        self.direction = direction
        self.n_references = n_references

    @property
    def policy(self) -> Buffer:
        """Its own kind of buffer."""
        return Diverse()

    def check_params(self) -> None:
        check_number("strength", self.strength, low=0, also=["share"])
        check_option("direction", self.direction, ["jacobian", "loss"])
        check_number("n_references", self.n_references, low=1, integer=True)
        super().check_params()

    def mixture(self) -> tuple[float | Literal["share"], float]:
        return self.strength, 0.0

    def file(self, experience: Rows, learner: Learner, buffer: Buffer) -> None:
        assert isinstance(buffer, Diverse)
        of: Literal["outputs", "loss"] = "loss" if self.direction == "loss" else "outputs"
        chance = np.random.default_rng(int(torch.randint(2**62, (1,), generator=learner.rng)))
        for rows in experience.split(_CANDIDATES_AT_ONCE):
            union = rows if buffer.rows is None else concatenate(buffer.rows, rows)
            cosines = learner.cosines(rows, union, of=of).cpu().numpy()
            score = buffer.notes["score"].cpu().numpy() if len(buffer) else np.empty(0)
            places, score = greedy(
                cosines,
                score,
                len(union) if self.capacity is None else self.capacity,
                self.n_references,
                0.5 if self.direction == "loss" else None,
                chance,
            )
            buffer.put(union.take(torch.from_numpy(places).to(rows.X.device)), score)
        buffer.seen += len(experience)
        buffer.total += experience.total


class Diverse(Buffer):
    """The memory of `GSS`, which chooses for it."""

    name = "gss"

    def put(self, rows: Rows, score: npt.NDArray[np.float64]) -> None:
        """Keep these rows and no others."""
        self.rows, self.notes = rows, {"score": torch.from_numpy(score)}

    def choose(self, parts: list[Rows], notes: dict[str, Tensor], capacity: int) -> Tensor:
        """Without a net, the most diverse rows as they were scored."""
        return (-notes["score"]).topk(capacity).indices.sort().values


def interference(candidates: Rows, gradient: Tensor, learner: Learner) -> Tensor:
    """By how much a step along ``gradient`` would raise the loss of each row."""
    before, theta = learner.losses(candidates), learner.theta.clone()
    learner.theta.sub_(gradient, alpha=learner.learning_rate)
    after = learner.losses(candidates)
    learner.theta.copy_(theta)
    return after - before


def greedy(
    cosines: npt.NDArray[np.floating[Any]],
    score: npt.NDArray[np.float64],
    capacity: int,
    n_references: int,
    gate: float | None,
    chance: np.random.Generator,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """The paper's greedy selection, with scores raised from [-1, 1] to [0, 1].

    Parameters
    ----------
    cosines : ndarray of shape (n_new, n_kept + n_new)
        Of the new rows with the kept ones and with each other.
    score : ndarray of shape (n_kept,)
        Scores of the kept rows.
    capacity : int
        Rows to keep at most.
    n_references : int
        Kept rows to compare with.
    gate : float or None
        A row with a lower score may replace another; None means the mean of the kept scores.
    chance : numpy.random.Generator
        Draws references and victims.

    Returns
    -------
    places : ndarray of shape (n_after,)
        Columns of ``cosines`` that are kept now.
    score : ndarray of shape (n_after,)
        Their scores.
    """
    n_kept = len(score)
    # What has no room any more if the capacity was lowered.
    n_used = min(n_kept, capacity)
    places, scores = np.empty(capacity, dtype=np.int64), np.empty(capacity)
    order = np.sort(np.argsort(score, kind="stable")[:n_used])
    places[:n_used], scores[:n_used] = order, score[order]
    # Which slots each row is compared with, as parts of those in use. Neither a draw nor a mean
    # in each turn of the loop, which would cost more than all the rest.
    part = chance.random((len(cosines), n_references))
    total = scores[:n_used].sum()
    for i, row in enumerate(cosines):
        mine = 0.5
        if n_used:
            drawn = places[(part[i] * n_used).astype(np.int64)]
            mine = (1 + row[drawn].max()) / 2
        if n_used < capacity:
            places[n_used], scores[n_used] = n_kept + i, mine
            n_used += 1
            total += mine
        elif mine < (total / n_used if gate is None else gate):
            upto = scores.cumsum()
            victim = min(int(upto.searchsorted(chance.random() * upto[-1])), capacity - 1)
            if chance.random() * (scores[victim] + mine) < scores[victim]:
                total += mine - scores[victim]
                places[victim], scores[victim] = n_kept + i, mine
    return places[:n_used], scores[:n_used]
