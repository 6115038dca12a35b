"""Distillation: keep the function, by teaching the net what it answered before."""

from __future__ import annotations

from typing import Any, Literal

from sklearn_cl._checks import check_number, check_option
from sklearn_cl._learner import Learner
from sklearn_cl._rows import Rows
from sklearn_cl.buffers import Buffer
from sklearn_cl.strategies._rehearsal import DarkMemory, Memory


class DER(DarkMemory):
    r"""Dark experience replay: rehearse kept rows with the answers that the net gave then.

    Each step minimises, up to its scale,

    .. math:: \mathrm{mean}_{new} (f - y)^2 + \alpha \, \mathrm{mean}_{memory} (f - z)^2

    where :math:`z` is what the net answered when the experience of the row had been learnt: a
    target without the noise of :math:`y`. (The paper files :math:`z` while it trains; at the end
    it is a better one.)

    Parameters
    ----------
    alpha : float, default=1.0
        Weight of the old answers relative to the new targets, at least 0; 0 is `Naive`.
    capacity : int or None, default=500
        Rows to keep; None keeps all.
    policy : str or Buffer, default="reservoir"
        Which rows; a name or an object of `sklearn_cl.buffers`.
    batch_size : int or None, default=None
        Rows of the memory in each step; None means as many as a full batch of the estimator.

    Attributes
    ----------
    buffer_ : Buffer
        The memory; ``buffer_.notes["answer"]`` has :math:`z`.

    See Also
    --------
    Replay : With ``distill`` it weights the past by the number of rows seen.

    Notes
    -----
    Take it when rows may be kept but targets are noisy or may not be: it rehearses answers, not
    targets.

    References
    ----------
    P. Buzzega et al., "Dark experience for general continual learning: a strong, simple
    baseline", NeurIPS 2020, arXiv:2004.07211.

    Examples
    --------
    >>> from sklearn_cl.strategies import DER
    >>> DER(alpha=2.0)
    DER(alpha=2.0)
    """

    name = "der"

    def __init__(
        self,
        alpha: float = 1.0,
        capacity: int | None = 500,
        policy: Any = "reservoir",
        batch_size: int | None = None,
    ) -> None:
        self.alpha = alpha
        self.capacity = capacity
        self.policy = policy
        self.batch_size = batch_size

    def check_params(self) -> None:
        check_number("alpha", self.alpha, low=0)
        super().check_params()

    def mixture(self) -> tuple[float | Literal["share"], float]:
        return self.alpha, 1.0


class DERPlusPlus(DarkMemory):
    r"""Dark experience replay with the targets too.

    It adds :math:`\alpha \, \mathrm{mean} (f - z)^2 + \beta \, \mathrm{mean} (f - y)^2` over the
    memory. Both terms on the same rows are one, with the target :math:`(\alpha z + \beta y) /
    (\alpha + \beta)` and the weight :math:`\alpha + \beta`, so they cost no more than replay.

    Parameters
    ----------
    alpha : float, default=0.5
        Weight of the old answers relative to the new targets, at least 0.
    beta : float, default=0.5
        Weight of the old targets, at least 0; with both at 0 it is `Naive`.
    capacity : int or None, default=500
        Rows to keep; None keeps all.
    policy : str or Buffer, default="reservoir"
        Which rows; a name or an object of `sklearn_cl.buffers`.
    batch_size : int or None, default=None
        Rows of the memory in each step; None means as many as a full batch of the estimator.

    Attributes
    ----------
    buffer_ : Buffer
        The memory; ``buffer_.notes["answer"]`` has :math:`z`.

    Notes
    -----
    Take it to compare with; `Replay` with ``distill`` mixes target and answer in one batch, which
    is cheaper.

    References
    ----------
    P. Buzzega et al., "Dark experience for general continual learning: a strong, simple
    baseline", NeurIPS 2020, arXiv:2004.07211.

    Examples
    --------
    >>> from sklearn_cl.strategies import DERPlusPlus
    >>> DERPlusPlus(beta=1.0)
    DERPlusPlus(beta=1.0)
    """

    name = "der++"

    def __init__(
        self,
        alpha: float = 0.5,
        beta: float = 0.5,
        capacity: int | None = 500,
        policy: Any = "reservoir",
        batch_size: int | None = None,
    ) -> None:
        self.alpha = alpha
        self.beta = beta
        self.capacity = capacity
        self.policy = policy
        self.batch_size = batch_size

    def check_params(self) -> None:
        check_number("alpha", self.alpha, low=0)
        check_number("beta", self.beta, low=0)
        super().check_params()

    def mixture(self) -> tuple[float | Literal["share"], float]:
        total = self.alpha + self.beta
        return total, self.alpha / total if total else 0.0


class LwF(Memory):
    r"""Learning without forgetting: hold the net to what it answered before the experience.

    It minimises

    .. math:: \mathrm{mean} (f - y)^2 + \lambda \, \mathrm{mean}_Q (f - f_{old})^2

    There is no softmax and no temperature in regression; what matters is the points :math:`Q`.
    With the *new* inputs (the paper's form) both terms are one, with the target :math:`(y +
    \lambda f_{old}) / (1 + \lambda)`: no cost and nothing to keep, but the net is only held
    back where the new rows are, and it can no longer fit them. With a *memory* of inputs
    (their targets are not used) it is held where the old rows were: for a linear model that
    is exact.

    Parameters
    ----------
    strength : float, default=1.0
        :math:`\lambda`, at least 0; 0 is `Naive`. The ratio of the variance of the noise to
        that of the old net's error.
    points : {"new", "memory"}, default="new"
        Where to compare with the old net.
    capacity : int or None, default=500
        Rows to keep if ``points="memory"``; None keeps all.
    policy : str or Buffer, default="reservoir"
        Which rows; a name or an object of `sklearn_cl.buffers`.
    batch_size : int or None, default=None
        Rows of the memory in each step; None means as many as a full batch of the estimator.

    Attributes
    ----------
    buffer_ : Buffer
        The memory, if there is one.

    Notes
    -----
    Take it when nothing but the net itself may be kept and the workload stays where it was: it is
    as good as new inputs resemble old ones.

    References
    ----------
    Z. Li, D. Hoiem, "Learning without forgetting", ECCV 2016, arXiv:1606.09282.

    Examples
    --------
    >>> from sklearn_cl.strategies import LwF
    >>> LwF(points="memory", capacity=100)
    LwF(capacity=100, points='memory')
    """

    name = "lwf"
    taught_ = False

    def __init__(
        self,
        strength: float = 1.0,
        points: str = "new",
        capacity: int | None = 500,
        policy: Any = "reservoir",
        batch_size: int | None = None,
    ) -> None:
        self.strength = strength
        self.points = points
        self.capacity = capacity
        self.policy = policy
        self.batch_size = batch_size

    def check_params(self) -> None:
        check_number("strength", self.strength, low=0)
        check_option("points", self.points, ["new", "memory"])
        super().check_params()

    def begin(self, experience: Rows, learner: Learner) -> Rows | None:
        if self.points == "memory" or not self.taught_ or not self.strength:
            return super().begin(experience, learner)
        part = self.strength / (1 + self.strength)
        old = learner.predict(experience.X)
        return Rows(experience.X, experience.y + part * (old - experience.y), experience.weight)

    def lesson(self, experience: Rows, learner: Learner, buffer: Buffer) -> None:
        if self.points == "memory":
            rows = buffer.sample()
            pool = Rows(rows.X, learner.predict(rows.X), rows.weight)
            self.recall(pool, buffer.total, experience, learner, self.strength)

    def consolidate(self, experience: Rows, learner: Learner) -> None:
        self.taught_ = True
        if self.points == "memory":
            super().consolidate(experience, learner)
