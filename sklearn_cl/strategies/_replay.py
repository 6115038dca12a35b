"""Replay: train on rows of the past along with the new ones."""

from __future__ import annotations

from typing import Any, Literal

from sklearn_cl._checks import check_number
from sklearn_cl.strategies._rehearsal import DarkMemory


class Replay(DarkMemory):
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
    policy : str or Buffer, default="reservoir"
        Which rows: "reservoir" (a uniform sample of all seen), "recent" (the last ones),
        "balanced" (as many of each experience), "kcenter" (spread over the inputs),
        "target_stratified" (spread over the target), or an object of `sklearn_cl.buffers`.
    batch_size : int or None, default=None
        Rows of the memory in each step, at most as many as it holds; None means as many as a
        full batch of the estimator.
    strength : "share" or float, default="share"
        Weight of the past relative to the new rows, :math:`\rho / (1 - \rho)`, at least 0;
        "share" follows the numbers of rows. 0 is `Naive`.
    distill : float, default=0.0
        Part :math:`\mu` of what the net answered at the end of a row's own experience in the
        target that it is rehearsed with, :math:`(1 - \mu) y + \mu z`, from 0 to 1. It takes
        noise out of the target; 0.75 was best in most of our streams, and worth a doubling of
        the capacity.

    Attributes
    ----------
    buffer_ : Buffer
        The memory: ``len(buffer_)`` rows in ``buffer_.rows``, out of ``buffer_.seen``; with
        ``distill``, ``buffer_.notes["answer"]`` has :math:`z`.

    Notes
    -----
    Take it first: nothing here gives more for its cost if some rows may be kept. With noisy
    targets, set ``distill``.

    References
    ----------
    D. Rolnick et al., "Experience replay for continual learning", NeurIPS 2019,
    arXiv:1811.11682.
    P. Buzzega et al., "Dark experience for general continual learning: a strong, simple
    baseline", NeurIPS 2020, arXiv:2004.07211.

    Examples
    --------
    >>> from sklearn_cl.strategies import Replay
    >>> Replay(capacity=200, policy="balanced")
    Replay(capacity=200, policy='balanced')
    """

    name = "replay"
    dark = "distill"

    def __init__(
        self,
        capacity: int | None = 500,
        policy: Any = "reservoir",
        batch_size: int | None = None,
        strength: float | Literal["share"] = "share",
        distill: float = 0.0,
    ) -> None:
        self.capacity = capacity
        self.policy = policy
        self.batch_size = batch_size
        self.strength = strength
        self.distill = distill

    def check_params(self) -> None:
        check_number("strength", self.strength, low=0, also=["share"])
        check_number("distill", self.distill, low=0, high=1)
        super().check_params()

    def mixture(self) -> tuple[float | Literal["share"], float]:
        return self.strength, self.distill
