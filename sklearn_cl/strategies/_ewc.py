"""Elastic weight consolidation: hold the parameters that mattered, diagonal or layer by layer."""

from __future__ import annotations

import torch
from torch import Tensor

from sklearn_cl._checks import check_number
from sklearn_cl._learner import Learner
from sklearn_cl._rows import Rows
from sklearn_cl.strategies._base import Strategy
from sklearn_cl.strategies._pull import Pull


class EWC(Pull):
    r"""Online elastic weight consolidation with a diagonal Gauss-Newton importance.

    It adds to the loss

    .. math:: \lambda \gamma \sum_i F_i (\theta_i - \theta^*_i)^2, \qquad
        F \leftarrow \gamma F + \mathrm{mean}_{n,k} (\partial f_k(x_n) / \partial \theta)^2

    where :math:`\theta^*` are the parameters after the latest experience: one anchor is enough,
    and one per experience would count the past twice. The importance is the mean squared
    Jacobian of the outputs, so it needs no targets and does not vanish where the fit is good,
    as the square of the loss gradient would. In closed form for linear layers.

    Parameters
    ----------
    strength : float, default=1.0
        :math:`\lambda`, at least 0; 0 is `Naive`. It has no unit if the estimator
        standardises the target. For a linear model whose inputs are uncorrelated, 1 gives the
        joint fit of experiences of equal size, :math:`n_{old} / n_{new}` that of two others.
    decay : float, default=1.0
        :math:`\gamma`, by which each new experience discounts the whole past: 1 remembers all
        alike, 0 is `Naive`. A linear model then fits the experiences with weights
        :math:`\gamma^{T - t}`.

    Attributes
    ----------
    importance_ : Tensor of shape (n_parameters,)
        :math:`F`.
    anchor_ : Tensor of shape (n_parameters,)
        :math:`\theta^*`.

    Notes
    -----
    Take it when no row may be kept, the state must not grow and there is no time for
    `PseudoRehearsal`, which forgets less; and to compare with.

    References
    ----------
    J. Kirkpatrick et al., "Overcoming catastrophic forgetting in neural networks", PNAS 2017,
    arXiv:1612.00796.
    F. Huszar, "Note on the quadratic penalties in elastic weight consolidation", PNAS 2018,
    arXiv:1712.03847.
    J. Schwarz et al., "Progress & Compress", ICML 2018, arXiv:1805.06370.

    Examples
    --------
    >>> from sklearn_cl.strategies import EWC
    >>> EWC(strength=10.0)
    EWC(strength=10.0)
    """

    name = "ewc"

    def __init__(self, strength: float = 1.0, decay: float = 1.0) -> None:
        self.strength = strength
        self.decay = decay

    def consolidate(self, experience: Rows, learner: Learner) -> None:
        self.hold(learner.mean_squared_jacobian(experience), learner)


class KroneckerEWC(Strategy):
    r"""Elastic weight consolidation with a Kronecker-factored importance for each layer.

    Like `EWC`, but :math:`F` is a block :math:`A \otimes G` for each linear layer, with
    :math:`A = \mathrm{mean}\, a a^T` of its inputs and :math:`G = \mathrm{mean}\, \delta
    \delta^T` of the derivatives of the net's outputs by the layer's, so correlated inputs
    count. For a model of one linear layer that is exact: a strength of 1 gives the joint fit
    of any number of experiences of equal size. :math:`A` adds up over the experiences,
    :math:`G` is averaged.

    Parameters
    ----------
    strength : float, default=1.0
        Weight of the penalty, at least 0; 0 is `Naive`.
    decay : float, default=1.0
        By which each new experience discounts the whole past, from 0 to 1.

    Attributes
    ----------
    factors_ : list of (slice, slice, Tensor, Tensor)
        For each layer its places in ``theta`` (weight and bias), :math:`A` and :math:`G`.
    anchor_ : Tensor of shape (n_parameters,)
        The parameters after the latest experience.

    Notes
    -----
    Take it in place of `EWC`, if a matrix for each layer is affordable: it forgets less, and is
    exact for one linear layer.

    References
    ----------
    H. Ritter, A. Botev, D. Barber, "Online structured Laplace approximations for overcoming
    catastrophic forgetting", NeurIPS 2018, arXiv:1805.07810.
    J. Martens, R. Grosse, "Optimizing neural networks with Kronecker-factored approximate
    curvature", ICML 2015, arXiv:1503.05671.

    Examples
    --------
    >>> from sklearn_cl.strategies import KroneckerEWC
    >>> KroneckerEWC(decay=0.9)
    KroneckerEWC(decay=0.9)
    """

    name = "kfac"
    holds_parameters = True
    factors_: list[tuple[slice, slice, Tensor, Tensor]] | None = None
    anchor_: Tensor | None = None
    weight_ = 0.0
    _damping = 1.0

    def __init__(self, strength: float = 1.0, decay: float = 1.0) -> None:
        self.strength = strength
        self.decay = decay

    def check_params(self) -> None:
        check_number("strength", self.strength, low=0)
        check_number("decay", self.decay, low=0, high=1)

    def begin(self, experience: Rows, learner: Learner) -> Rows | None:
        # As in `Pull`, but by the stiffest direction of all, since the layers' factors couple.
        top = [
            float(torch.linalg.eigvalsh(A.double())[-1] * torch.linalg.eigvalsh(G.double())[-1])
            for _, _, A, G in self.factors_ or []
        ]
        stiffness = 2 * self.strength * self.decay
        self._damping = 1 / max(1.0, learner.learning_rate * stiffness * max(top, default=0.0))
        return experience

    def adjust(self, grad: Tensor, learner: Learner) -> None:
        if self.anchor_ is None or self.factors_ is None or not self.strength:
            return
        change = learner.theta - self.anchor_
        factor = 2 * self.strength * self.decay * self._damping
        if self._damping < 1:
            grad.mul_(self._damping)
        for weight, bias, A, G in self.factors_:
            pull = factor * G @ _join(change, weight, bias, len(G)) @ A
            n_in = (weight.stop - weight.start) // len(G)
            grad[weight] += pull[:, :n_in].reshape(-1)
            grad[bias] += pull[:, n_in:].reshape(-1)

    def consolidate(self, experience: Rows, learner: Learner) -> None:
        old, fresh = self.decay * self.weight_, _kronecker(experience, learner)
        if self.factors_ is not None:
            fresh = [
                (weight, bias, self.decay * A_old + A, (old * G_old + G) / (old + 1))
                for (weight, bias, A, G), (_, _, A_old, G_old) in zip(
                    fresh, self.factors_, strict=True
                )
            ]
        self.factors_, self.weight_ = fresh, old + 1
        self.anchor_ = learner.theta.clone()


def _kronecker(experience: Rows, learner: Learner) -> list[tuple[slice, slice, Tensor, Tensor]]:
    """A and G of every layer, means over the rows; G over the outputs too."""
    sums: dict[int, tuple[slice, slice, Tensor, Tensor]] = {}
    passes = 0.0
    for chunk, factors in learner.linear_factors(experience):
        passes += chunk.total
        for weight, bias, a, delta in factors:
            if bias.stop:
                a = torch.cat([a, a.new_ones(len(a), 1)], 1)
            w = 1.0 if chunk.weight is None else chunk.weight
            A, G = (w * a).T @ a, (w * delta).T @ delta
            _, _, A_sum, G_sum = sums.get(weight.start, (weight, bias, 0.0, 0.0))
            sums[weight.start] = (weight, bias, A_sum + A, G_sum + G)
    return [(weight, bias, A / passes, G / passes) for weight, bias, A, G in sums.values()]


def _join(vector: Tensor, weight: slice, bias: slice, n_out: int) -> Tensor:
    """The layer's part of a vector like theta, as ``[W, b]``."""
    return torch.cat([vector[weight].view(n_out, -1), vector[bias].view(n_out, -1)], 1)
