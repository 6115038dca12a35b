"""A quadratic pull towards where the parameters were."""

from __future__ import annotations

import torch
from torch import Tensor

from sklearn_cl._checks import check_number
from sklearn_cl._learner import Learner
from sklearn_cl._rows import Rows
from sklearn_cl.strategies._base import Strategy

# A step of gradient descent overshoots when the learning rate times the curvature passes 1.
_STIFF = 0.1


class Pull(Strategy):
    """Adds ``strength * sum importance * (theta - anchor)^2`` to the loss.

    A subclass says in `consolidate` what is important and calls `hold`. Where the pull is
    so stiff that a step could overshoot, it is stepped implicitly: with ``c`` twice strength
    times importance, the whole gradient is divided by ``1 + learning_rate * c``. That moves no
    minimum, makes a step of plain gradient descent the exact implicit one, and leaves the steps
    of Adam as they are, so that no strength is too large.
    """

    holds_parameters = True
    strength: float
    decay: float
    importance_: Tensor | None = None
    anchor_: Tensor | None = None
    _stiffness: Tensor | None = None

    def check_params(self) -> None:
        check_number("strength", self.strength, low=0)
        check_number("decay", self.decay, low=0, high=1)

    def begin(self, experience: Rows, learner: Learner) -> Rows | None:
        factor = 2 * self.strength * self.decay
        if self.importance_ is not None and factor:
            stiffness = factor * self.importance_.double()
            reach = learner.learning_rate * stiffness
            self._damping = None
            if bool(reach.max() > _STIFF):
                self._damping = (1 / (1 + reach)).to(learner.theta)
                stiffness = stiffness / (1 + reach)
            self._stiffness = stiffness.to(learner.theta)
            self._change = torch.empty_like(learner.theta)
        return experience

    def adjust(self, grad: Tensor, learner: Learner) -> None:
        if self._stiffness is not None and self.anchor_ is not None:
            torch.sub(learner.theta, self.anchor_, out=self._change)
            if self._damping is not None:
                grad.mul_(self._damping)
            grad.addcmul_(self._stiffness, self._change)

    def hold(self, importance: Tensor, learner: Learner) -> None:
        """Add the importance of an experience to what is left of that of the past."""
        if self.importance_ is not None:
            importance = importance + self.decay * self.importance_
        self.importance_, self.anchor_ = importance, learner.theta.clone()
        for name in ("_stiffness", "_damping", "_change"):
            self.__dict__.pop(name, None)
