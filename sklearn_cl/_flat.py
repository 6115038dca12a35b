"""One flat vector for all parameters of a module, and one for their gradients."""

from __future__ import annotations

import copy
from collections.abc import Iterator

import torch
from torch import Tensor, nn


class Flat:
    """Move the trainable parameters of ``module`` into views of one vector.

    Frozen parameters stay outside; tied ones enter once.

    Parameters
    ----------
    module : torch.nn.Module
        Its parameters must share one dtype and device. Changed in place.

    Attributes
    ----------
    theta : Tensor of shape (n_parameters,)
        The parameters; a step of the optimizer changes it in place.
    grad : Tensor of shape (n_parameters,)
        Their gradient; also ``theta.grad``.
    """

    def __init__(self, module: nn.Module) -> None:
        self.module = module
        trainable = [(k, p) for k, p in module.named_parameters() if p.requires_grad]
        if not trainable:
            raise ValueError("module must have at least one trainable parameter; got none.")
        self.names = [name for name, _ in trainable]
        self.parameters = [parameter for _, parameter in trainable]
        self.theta = torch.cat([p.detach().reshape(-1) for p in self.parameters])
        self.grad = torch.zeros_like(self.theta)
        self.theta.grad = self.grad
        self._bind()

    def restore(self, theta: Tensor, rest: dict[str, Tensor]) -> None:
        """Put back values, and the parameter objects if the module has replaced any."""
        for name, parameter in zip(self.names, self.parameters, strict=True):
            owner, _, attribute = name.rpartition(".")
            setattr(self.module.get_submodule(owner), attribute, parameter)
            parameter.requires_grad_()
        self._bind()
        self.theta.copy_(theta)
        for name, tensor in self.rest().items():
            tensor.copy_(rest[name])

    def slices(self) -> Iterator[slice]:
        """Where each parameter lies in ``theta``."""
        start = 0
        for parameter in self.parameters:
            yield slice(start, start + parameter.numel())
            start += parameter.numel()

    def views(self, vector: Tensor) -> list[Tensor]:
        """Cut vectors like ``theta`` into tensors shaped like the parameters."""
        shapes = [parameter.shape for parameter in self.parameters]
        return [
            vector[..., s].view(*vector.shape[:-1], *shape)
            for s, shape in zip(self.slices(), shapes, strict=True)
        ]

    def rest(self) -> dict[str, Tensor]:
        """What the module holds besides ``theta``: buffers and frozen parameters."""
        frozen = {k: p.data for k, p in self.module.named_parameters() if not p.requires_grad}
        return frozen | dict(self.module.named_buffers())

    def check(self) -> None:
        """Raise a ValueError if a parameter is no longer the view that it was made."""
        trainable = [p for p in self.module.parameters() if p.requires_grad]
        same = len(trainable) == len(self.parameters) and all(
            now is then
            and now.data_ptr() == value.data_ptr()
            and now.grad is not None
            and now.grad.data_ptr() == gradient.data_ptr()
            for now, then, value, gradient in zip(
                trainable,
                self.parameters,
                self.views(self.theta),
                self.views(self.grad),
                strict=True,
            )
        )
        if not same:
            raise ValueError(
                "module must keep its parameter objects while it trains; it replaced, froze or "
                "moved one of them. Build all parameters in __init__ and change only their values."
            )

    def _bind(self) -> None:
        pairs = zip(self.parameters, self.views(self.theta), self.views(self.grad), strict=True)
        for parameter, value, gradient in pairs:
            parameter.data = value
            parameter.grad = gradient

    def replica(self, theta: Tensor, rest: dict[str, Tensor], dtype: torch.dtype) -> nn.Module:
        """A copy of the module for prediction, with its own tensors, in another dtype."""
        # A deep copy of a view would clone the whole vector once per parameter.
        device = torch.device("cpu") if theta.device.type == "mps" else theta.device
        memo: dict[int, object] = {}
        for parameter, value in zip(self.parameters, self.views(theta), strict=True):
            fresh = value.to(device, dtype, copy=True)
            memo[id(parameter)] = nn.Parameter(fresh, requires_grad=False)
        for name, tensor in rest.items():
            fresh = tensor.to(device, dtype if tensor.is_floating_point() else None, copy=True)
            owner, _, attribute = name.rpartition(".")
            old = getattr(self.module.get_submodule(owner), attribute)
            frozen = isinstance(old, nn.Parameter)
            memo[id(old)] = nn.Parameter(fresh, requires_grad=False) if frozen else fresh
        return copy.deepcopy(self.module, memo).eval()
