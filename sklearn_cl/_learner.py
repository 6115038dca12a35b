"""Learner: what the hooks of a strategy may see and do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Literal

import torch
from torch import Tensor

from sklearn_cl._engine import Engine
from sklearn_cl._jacobian import (
    Factors,
    cosines,
    has_linear_factors,
    jacobian,
    linear_factors,
    mean_jacobian,
    norm,
    outputs,
    row_loss,
)
from sklearn_cl._losses import LOSSES
from sklearn_cl._rows import Rows

_AT_ONCE = 2048


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
    learning_rate : float
        The step size, at its largest.
    reset : callable
        Starts the net anew.

    Attributes
    ----------
    past : float
        Weight of old rows, relative to the new ones, that steps of this experience mix in.
    theta : Tensor of shape (n_parameters,)
        All parameters; changed in place by every step, so keep a clone.
    grad : Tensor of shape (n_parameters,)
        Their gradient in this step.
    """

    def __init__(
        self,
        engine: Engine,
        rng: torch.Generator,
        batch_size: int,
        learning_rate: float,
        reset: Callable[[], None],
    ) -> None:
        self._engine = engine
        self._reset = reset
        self.rng = rng
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.past = 0.0

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

    def gradient(self, rows: Rows, out: Tensor | None = None) -> Tensor:
        """Gradient of the loss of ``rows``, in ``out`` or a vector of its own; `grad` stays."""
        gradient = torch.empty_like(self.theta) if out is None else out
        self._engine.backward(rows, into=gradient)
        return gradient

    def gradients(self, parts: list[Rows], out: Tensor) -> None:
        """Write the gradient of the loss of each of ``parts`` to a row of ``out``."""
        self._engine.gradients(parts, into=out)

    def predict(self, X: Tensor) -> Tensor:
        """The net's answer in the unit of ``rows.y``, without gradient or dropout."""
        self._engine.module.eval()
        with torch.no_grad():
            # Piece by piece, so that what lies between the layers stays in the cache.
            f = torch.cat([self._engine.forward(piece) for piece in X.split(_AT_ONCE)])
            return self._engine.units.outputs(f)

    def losses(self, rows: Rows) -> Tensor:
        """The loss of each row, whatever its weight, without gradient; of shape (n_rows,)."""
        with torch.no_grad():
            f = self._engine.forward(rows.X)
            value = LOSSES[self._engine.loss].value(f - self._engine.units.targets(rows.y))
            return value.mean(1)

    def mean_squared_jacobian(self, rows: Rows) -> Tensor:
        """Mean over rows and outputs of the squared derivative by each parameter."""
        return mean_jacobian(self._engine, rows, torch.square)

    def mean_absolute_jacobian(
        self, rows: Rows, of: Literal["outputs", "norm"] = "outputs"
    ) -> Tensor:
        """Mean over rows of the absolute derivative by each parameter.

        The derivative is that of each output in turn, or of their squared norm.
        """
        seeds = norm if of == "norm" else outputs
        return mean_jacobian(self._engine, rows, torch.abs, seeds)

    def jacobian(self, rows: Rows) -> Tensor:
        """Derivatives of all outputs of all rows: (n_rows, n_outputs, n_parameters)."""
        return jacobian(self._engine, rows)

    def cosines(
        self, rows: Rows, others: Rows, of: Literal["outputs", "loss"] = "outputs"
    ) -> Tensor:
        """Cosines between the derivatives of rows and of others: (n_rows, n_others)."""
        seeds = partial(row_loss, self._engine) if of == "loss" else outputs
        return cosines(self._engine, rows, others, seeds)

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
