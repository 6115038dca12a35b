"""Optimizers of one flat vector: torch's update rules without the cost of torch's wrapper."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


class FlatOptimizer(torch.optim.Optimizer):
    """An optimizer of the single vector ``theta``, whose gradient is ``theta.grad``.

    ``torch.optim`` spends ten times longer around the update of a small net than in it.
    `advance` is the update alone. `step` is the same with torch's hooks around it, for
    schedulers and other callbacks; both read the current ``lr`` from ``param_groups``.

    Parameters
    ----------
    theta : Tensor of shape (n_parameters,)
        The parameters, changed in place.
    lr : float
        Step size, above 0.
    """

    def __init__(self, theta: Tensor, lr: float) -> None:
        super().__init__([theta], {"lr": lr})
        if theta.grad is None:
            raise ValueError("theta must have a gradient; got None.")
        self._theta, self._grad, self._group = theta, theta.grad, self.param_groups[0]

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> None:  # type: ignore[override]
        """Update ``theta``, with torch's hooks."""
        self.advance()

    @abstractmethod
    def advance(self) -> None:
        """Update ``theta``, and nothing around it; call it without autograd."""


class FlatAdam(FlatOptimizer):
    r"""Adam, bit by bit as ``torch.optim.Adam(foreach=False)``.

    .. math:: \theta \leftarrow \theta - \eta \, \frac{m / (1 - \beta_1^t)}{\sqrt{v / (1 -
        \beta_2^t)} + \epsilon}

    Parameters
    ----------
    theta : Tensor of shape (n_parameters,)
        The parameters, changed in place.
    lr : float
        Step size :math:`\eta`.
    betas : (float, float)
        Decay of the first and the second moment, from 0 to below 1.
    eps : float
        Added to the root of the second moment.

    References
    ----------
    D. P. Kingma, J. Ba, "Adam: a method for stochastic optimization", ICLR 2015,
    arXiv:1412.6980.
    """

    def __init__(self, theta: Tensor, lr: float, betas: tuple[float, float], eps: float) -> None:
        super().__init__(theta, lr)
        (self._beta_1, self._beta_2), self._eps = betas, eps
        self._t = 0
        self._m, self._v = torch.zeros_like(theta), torch.zeros_like(theta)
        self._root = torch.empty_like(theta)

    def advance(self) -> None:
        """Update ``theta``."""
        self._t += 1
        correction = math.sqrt(1 - self._beta_2**self._t)
        size = self._group["lr"] / (1 - self._beta_1**self._t)
        self._m.lerp_(self._grad, 1 - self._beta_1)
        self._v.mul_(self._beta_2).addcmul_(self._grad, self._grad, value=1 - self._beta_2)
        torch.sqrt(self._v, out=self._root).div_(correction).add_(self._eps)
        self._theta.addcdiv_(self._m, self._root, value=-size)


class FlatSGD(FlatOptimizer):
    """Stochastic gradient descent with momentum, as ``torch.optim.SGD(foreach=False)``.

    Parameters
    ----------
    theta : Tensor of shape (n_parameters,)
        The parameters, changed in place.
    lr : float
        Step size.
    momentum : float
        From 0 to 1.
    nesterov : bool
        Whether to look ahead.
    """

    def __init__(self, theta: Tensor, lr: float, momentum: float, nesterov: bool) -> None:
        super().__init__(theta, lr)
        self._momentum, self._nesterov = momentum, nesterov
        self._velocity = torch.zeros_like(theta)

    def advance(self) -> None:
        """Update ``theta``."""
        step = self._grad
        if self._momentum:
            step = self._velocity.mul_(self._momentum).add_(self._grad)
            if self._nesterov:
                step = self._grad.add(self._velocity, alpha=self._momentum)
        self._theta.add_(step, alpha=-self._group["lr"])
