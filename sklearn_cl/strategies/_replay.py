"""Replay: train on rows of the past along with the new ones."""

from __future__ import annotations

from typing import Literal

from sklearn_cl._buffer import POLICIES, Buffer
from sklearn_cl._checks import check_number, check_option
from sklearn_cl._learner import Learner
from sklearn_cl._rows import Rows, mix
from sklearn_cl.strategies._base import Strategy


class Replay(Strategy):
    r"""Experience replay: keep a few rows of the past and train on them with the new ones.

    Each step minimises, in one forward pass,

    .. math:: (1 - \rho) \, \mathrm{mean}_{new} \, \ell + \rho \, \mathrm{mean}_{memory} \, \ell

    With ``strength="share"``, :math:`\rho = n_{old} / (n_{old} + n_{new})` is the share of the
    past in all rows seen, which makes a step an unbiased estimate of the gradient of training
    on everything.

    Parameters
    ----------
    capacity : int or None, default=500
        Rows to keep; None keeps all.
    policy : {"reservoir", "recent", "balanced"}, default="reservoir"
        Which rows: a uniform sample of all seen, the last ones, or as many of each experience.
    batch_size : int or None, default=None
        Rows of the memory in each step, at most as many as it holds; None means as many as a
        full batch of the estimator.
    strength : "share" or float, default="share"
        Weight of the past relative to the new rows, :math:`\rho / (1 - \rho)`, at least 0;
        "share" follows the numbers of rows. 0 is `Naive`.

    Attributes
    ----------
    buffer_ : Buffer
        The memory: ``len(buffer_)`` rows in ``buffer_.rows``, out of ``buffer_.seen``.

    References
    ----------
    D. Rolnick et al., "Experience replay for continual learning", NeurIPS 2019,
    arXiv:1811.11682.
    J. S. Vitter, "Random sampling with a reservoir", ACM TOMS 11(1), 1985.

    Examples
    --------
    >>> from sklearn_cl.strategies import Replay
    >>> Replay(capacity=200, policy="balanced")
    Replay(capacity=200, policy='balanced')
    """

    name = "replay"
    buffer_: Buffer | None = None
    _share = 0.0

    def __init__(
        self,
        capacity: int | None = 500,
        policy: str = "reservoir",
        batch_size: int | None = None,
        strength: float | Literal["share"] = "share",
    ) -> None:
        self.capacity = capacity
        self.policy = policy
        self.batch_size = batch_size
        self.strength = strength

    def check_params(self) -> None:
        check_number("capacity", self.capacity, low=1, integer=True, also=[None])
        check_option("policy", self.policy, list(POLICIES))
        check_number("batch_size", self.batch_size, low=1, integer=True, also=[None])
        check_number("strength", self.strength, low=0, also=["share"])
        if self.buffer_ is not None and type(self.buffer_) is not POLICIES[self.policy]:
            kept = type(self.buffer_).__name__.lower()
            raise ValueError(
                f"policy must stay {kept!r} while the stream goes on; got {self.policy!r}. "
                "Call fit to start anew."
            )

    def begin(self, experience: Rows, learner: Learner) -> Rows | None:
        if self.buffer_ is not None and self.strength != 0:
            past = self.buffer_.total
            odds = past / experience.total if self.strength == "share" else float(self.strength)
            self._share = odds / (1 + odds)
            self._pool = self.buffer_.sample().shuffled(learner.rng)
            self._size = min(self.batch_size or learner.batch_size, len(self._pool))
            self._start = 0
        return experience

    def rehearse(self, batch: Rows, learner: Learner) -> Rows:
        if not self._share:
            return batch
        if self._start + self._size > len(self._pool):
            self._pool, self._start = self._pool.shuffled(learner.rng), 0
        memory = self._pool.take(slice(self._start, self._start + self._size))
        self._start += self._size
        return mix(batch, memory, self._share)

    def consolidate(self, experience: Rows, learner: Learner) -> None:
        if self.buffer_ is None:
            self.buffer_ = POLICIES[self.policy](self.capacity)
        self.buffer_.capacity = self.capacity
        self.buffer_.add(experience, learner.rng)
        if self._share:
            del self._share, self._pool, self._size, self._start
