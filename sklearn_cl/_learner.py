"""Learner: what the hooks of a strategy may see and do."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from sklearn_cl._engine import Engine
from sklearn_cl._jacobian import (
    Factors,
    has_linear_factors,
    linear_factors,
    mean_squared_jacobian,
)
from sklearn_cl._rows import Rows


class Learner:
    """A narrow view of the net in training, for the hooks of a strategy.

    Parameters
    ----------
    engine : Engine
        Computes with the net.
    rng : torch.Generator
        The strategy's own chance, on the CPU; the order of the rows has another.
    batch_size : int
        Rows of a full batch.
    reset : callable
        Starts the net anew.

    Attributes
    ----------
    theta : Tensor of shape (n_parameters,)
        All parameters; changed in place by every step, so keep a clone.
    grad : Tensor of shape (n_parameters,)
        Their gradient in this step.
    """

    def __init__(
        self, engine: Engine, rng: torch.Generator, batch_size: int, reset: Callable[[], None]
    ) -> None:
        self._engine = engine
        self._reset = reset
        self.rng = rng
        self.batch_size = batch_size

    @property
    def theta(self) -> Tensor:
        """All parameters in one vector of shape (n_parameters,)."""
        return self._engine.flat.theta

    @property
    def grad(self) -> Tensor:
        """The gradient of this step, of shape (n_parameters,)."""
        return self._engine.flat.grad

    def loss(self, rows: Rows) -> Tensor:
        """Mean of weight times loss over the rows, differentiable."""
        return self._engine.criterion(rows)

    def gradient(self, rows: Rows) -> Tensor:
        """Gradient of the loss of ``rows`` in a vector of its own; `grad` stays."""
        gradient = torch.empty_like(self.theta)
        self._engine.backward(rows, into=gradient)
        return gradient

    def predict(self, X: Tensor) -> Tensor:
        """The net's answer in the unit of ``rows.y``, without gradient or dropout."""
        self._engine.module.eval()
        with torch.no_grad():
            return self._engine.units.outputs(self._engine.forward(X))

    def mean_squared_jacobian(self, rows: Rows) -> Tensor:
        """Mean over rows and outputs of the squared derivative by each parameter."""
        return mean_squared_jacobian(self._engine, rows)

    def linear_factors(self, rows: Rows) -> Iterator[tuple[Rows, list[Factors]]]:
        """Per-row derivatives as ``delta x [a, 1]``; for modules of linear layers only."""
        if not has_linear_factors(self._engine, rows):
            raise ValueError(
                "module must keep all its parameters in torch.nn.Linear layers, each used once, "
                "for a strategy that needs its layers' factors."
            )
        return linear_factors(self._engine, rows)

    def reset(self) -> None:
        """Start anew: the first weights, and the same order of rows as then."""
        self._reset()
