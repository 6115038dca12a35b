"""Importances along the way or of the answer: synaptic intelligence and memory aware synapses."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from sklearn_cl._checks import check_number, check_option
from sklearn_cl._learner import Learner
from sklearn_cl._rows import Rows
from sklearn_cl.strategies._pull import Pull


class SynapticIntelligence(Pull):
    r"""Synaptic intelligence: hold the parameters whose change brought the loss down.

    Along the way it adds up what each parameter contributed, :math:`\omega_i = -\sum g_i \,
    \Delta\theta_i`, with the gradient of the new rows' loss alone, and after an experience

    .. math:: \Omega_i \leftarrow \gamma \Omega_i + \frac{\max(\omega_i, 0)}{
        (\Delta\theta_i)^2 + \xi}

    with the whole change :math:`\Delta\theta` of the experience. The next ones add to the loss
    :math:`\lambda \sum_i \Omega_i (\theta_i - \theta^*_i)^2`. On a quadratic loss
    :math:`\Omega` tends to half the diagonal of its Hessian.

    Parameters
    ----------
    strength : float, default=0.1
        :math:`\lambda`, at least 0; 0 is `Naive`. It has no unit if the estimator standardises
        the target.
    xi : float, default=1e-3
        :math:`\xi`, above 0: parameters that hardly moved must not become all-important.
    decay : float, default=1.0
        :math:`\gamma`, by which each new experience discounts the whole past, from 0 to 1.

    Attributes
    ----------
    importance_ : Tensor of shape (n_parameters,)
        :math:`\Omega`.
    anchor_ : Tensor of shape (n_parameters,)
        :math:`\theta^*`, the parameters after the latest experience.

    Notes
    -----
    In a chain, put it before strategies that change the gradient.

    Take it when no row may be kept and not even a pass over the rows after training is affordable.

    References
    ----------
    F. Zenke, B. Poole, S. Ganguli, "Continual learning through synaptic intelligence", ICML
    2017, arXiv:1703.04200.

    Examples
    --------
    >>> from sklearn_cl.strategies import SynapticIntelligence
    >>> SynapticIntelligence(strength=0.5)
    SynapticIntelligence(strength=0.5)
    """

    name = "si"
    _path: Tensor | None = None

    def __init__(self, strength: float = 0.1, xi: float = 1e-3, decay: float = 1.0) -> None:
        self.strength = strength
        self.xi = xi
        self.decay = decay

    def check_params(self) -> None:
        super().check_params()
        check_number("xi", self.xi, low=0, open_low=True)

    def begin(self, experience: Rows, learner: Learner) -> Rows | None:
        self._path, self._start = torch.zeros_like(learner.theta), learner.theta.clone()
        self._before, self._slope = learner.theta.clone(), torch.zeros_like(learner.theta)
        return super().begin(experience, learner)

    def adjust(self, grad: Tensor, learner: Learner) -> None:
        # What the step before brought, and the gradient that this one starts from.
        assert self._path is not None
        self._path.addcmul_(self._slope, self._before.sub_(learner.theta))
        self._before.copy_(learner.theta)
        self._slope.copy_(grad)
        super().adjust(grad, learner)

    def consolidate(self, experience: Rows, learner: Learner) -> None:
        assert self._path is not None
        moved = (learner.theta - self._start).square()
        self.hold(self._path.clamp(min=0) / (moved + self.xi), learner)
        del self._path, self._start, self._before, self._slope


class MAS(Pull):
    r"""Memory aware synapses: hold the parameters that the net's answer depends on.

    It adds to the loss :math:`\lambda \sum_i \Omega_i (\theta_i - \theta^*_i)^2` with

    .. math:: \Omega_i \leftarrow \gamma \Omega_i + \mathrm{mean}_{n,k} \left| \partial f_k(x_n)
        / \partial \theta_i \right|

    row by row, since the derivatives of different rows would cancel. It needs no targets. The
    paper's form is the derivative of :math:`\|f\|^2`, which vanishes where the answer is near
    zero, that is near the mean of a standardised target; it is there for comparison.

    Parameters
    ----------
    strength : float, default=1.0
        :math:`\lambda`, at least 0; 0 is `Naive`. It has no unit if the estimator standardises
        the target.
    decay : float, default=1.0
        :math:`\gamma`, by which each new experience discounts the whole past, from 0 to 1.
    of : {"outputs", "norm"}, default="outputs"
        Whose derivative: each output's, or that of the squared norm of the outputs.

    Attributes
    ----------
    importance_ : Tensor of shape (n_parameters,)
        :math:`\Omega`.
    anchor_ : Tensor of shape (n_parameters,)
        :math:`\theta^*`, the parameters after the latest experience.

    Notes
    -----
    Take it in place of `EWC`, from which it differs by absolute instead of squared sensitivities,
    and is less often ruled by a few parameters.

    References
    ----------
    R. Aljundi et al., "Memory aware synapses: learning what (not) to forget", ECCV 2018,
    arXiv:1711.09601.

    Examples
    --------
    >>> from sklearn_cl.strategies import MAS
    >>> MAS(of="norm")
    MAS(of='norm')
    """

    name = "mas"

    def __init__(
        self, strength: float = 1.0, decay: float = 1.0, of: Literal["outputs", "norm"] = "outputs"
    ) -> None:
        self.strength = strength
        self.decay = decay
        self.of = of

    def check_params(self) -> None:
        super().check_params()
        check_option("of", self.of, ["outputs", "norm"])

    def consolidate(self, experience: Rows, learner: Learner) -> None:
        self.hold(learner.mean_absolute_jacobian(experience, of=self.of), learner)
