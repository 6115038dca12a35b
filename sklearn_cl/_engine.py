"""Engines: the loss of rows, its gradient, and the net's answer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor, nn

from sklearn_cl._flat import Flat
from sklearn_cl._losses import LOSSES
from sklearn_cl._rows import Rows
from sklearn_cl._units import Units

# From the outputs of rows to what is to be differentiated: each seed has the weights of the
# outputs in a sum, row by row, and the shape of the outputs.
Seeds = Callable[[Tensor, Rows], list[Tensor]]
LayerFactors = list[tuple[nn.Linear, Tensor, Tensor]]


class Engine(ABC):
    """Computes with a module whose parameters are views of ``theta``.

    Parameters
    ----------
    module : torch.nn.Module
        Maps (n_rows, n_features) to (n_rows, n_outputs).
    units : Units
        What the module reads and is taught.

    Attributes
    ----------
    flat : Flat
        The vectors ``theta`` and ``grad``.
    loss : {"squared_error", "absolute_error", "huber"}
        The loss that is trained.
    """

    def __init__(self, module: nn.Module, units: Units) -> None:
        self.module = module
        self.units = units
        self.flat = Flat(module)
        self.loss = "squared_error"

    @abstractmethod
    def backward(self, rows: Rows, into: Tensor) -> Tensor:
        """Write the gradient of the loss of ``rows`` to ``into``; return the loss."""

    def gradients(self, parts: list[Rows], into: Tensor) -> None:
        """Write the gradient of the loss of each part to a row of ``into``."""
        for part, own in zip(parts, into, strict=True):
            self.backward(part, into=own)

    def criterion(self, rows: Rows) -> Tensor:
        """The loss of ``rows`` as a scalar that autograd can differentiate."""
        residual = self.forward(rows.X) - self.units.targets(rows.y)
        value = LOSSES[self.loss].value(residual)
        return value.mean() if rows.weight is None else (value * rows.weight).mean()

    def forward(self, X: Tensor) -> Tensor:
        """The net's answer in its own unit, of shape (n_rows, n_outputs)."""
        f = self.module(self.units.inputs(X))
        return checked_output(f, len(X), len(self.units.target_gain))


class AutogradEngine(Engine):
    """Any module, by autograd."""

    def backward(self, rows: Rows, into: Tensor) -> Tensor:
        """Write the gradient of the loss of ``rows`` to ``into``; return the loss."""
        if not self.module.training:
            self.module.train()
        loss = self.criterion(rows)
        if into is self.flat.grad:
            into.zero_()
            loss.backward()
        else:
            gradients = torch.autograd.grad(loss, self.flat.parameters, materialize_grads=True)
            torch.cat([gradient.reshape(-1) for gradient in gradients], out=into)
        return loss.detach()


def checked_output(f: Tensor, n_rows: int, n_outputs: int) -> Tensor:
    """Give ``f`` the shape (n_rows, n_outputs), or say that the module is at fault."""
    if f.shape == (n_rows, n_outputs):
        return f
    if f.shape == (n_rows,) and n_outputs == 1:
        return f.unsqueeze(1)
    raise ValueError(
        f"module must return a tensor of shape (n_rows, n_outputs) = {(n_rows, n_outputs)}; "
        f"got {tuple(f.shape)}."
    )
