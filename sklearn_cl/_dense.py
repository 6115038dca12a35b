"""The inner loop by hand: forward and backward of linear layers with known activations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor, nn

from sklearn_cl._engine import Engine, LayerFactors, Seeds
from sklearn_cl._losses import LOSSES
from sklearn_cl._rows import Rows, concatenate
from sklearn_cl._units import Units

# Batches of a stream may come in any number of sizes, one of them at the end of each epoch.
_KEPT_BUFFERS = 8
_KEPT_GRADIENTS = 16


class _Activation(NamedTuple):
    """An activation in place, and ``delta *= slope`` from its output ``h``, which is used up."""

    apply: Callable[[Tensor], Tensor]
    backward: Callable[[Tensor, Tensor], Tensor]


_ACTIVATIONS: dict[type[nn.Module], _Activation] = {
    nn.ReLU: _Activation(Tensor.relu_, lambda delta, h: delta.mul_(h.sign_())),
    nn.Tanh: _Activation(
        Tensor.tanh_, lambda delta, h: delta.addcmul_(delta, h.square_(), value=-1)
    ),
    nn.Sigmoid: _Activation(
        Tensor.sigmoid_, lambda delta, h: delta.addcmul_(delta, h, value=-1).mul_(h)
    ),
    nn.Identity: _Activation(lambda h: h, lambda delta, h: delta),
}


class _Scratch(NamedTuple):
    """What a layer needs for a batch: its output, and the derivative of the loss by that."""

    h: Tensor
    delta: Tensor
    delta_t: Tensor

    @classmethod
    def of(cls, like: Tensor, n_rows: int, width: int) -> _Scratch:
        h, delta = like.new_empty(n_rows, width), like.new_empty(n_rows, width)
        return cls(h, delta, delta.t())


class DenseEngine(Engine):
    """Linear layers and known activations, without autograd.

    A step of a small net is a few matrix products; autograd takes longer to record them
    than the processor to compute them. Buffers are allocated once per batch size.
    """

    def __init__(self, module: nn.Module, units: Units) -> None:
        super().__init__(module, units)
        self._layers, self._activations = _layers(module)
        self._weights = self._cut(self.flat.theta)
        self._transposed = [W.t() for W, _ in self._weights]
        # With the vector itself, so that no other can come to its place in memory.
        self._gradients: dict[int, tuple[Tensor, list[tuple[Tensor, Tensor]]]] = {}
        self._buffers: dict[int, list[_Scratch]] = {}
        self._downwards = range(len(self._layers) - 1, -1, -1)
        self._n_outputs = self._layers[-1].out_features

    @staticmethod
    def fits(module: nn.Module, n_features: int, n_outputs: int) -> bool:
        """Whether the module is a chain of linear layers and known activations."""
        try:
            layers, _ = _layers(module)
        except ValueError:
            return False
        parameters = [p for layer in layers for p in layer.parameters()]
        hooks = any(
            m._forward_hooks or m._forward_pre_hooks or m._backward_hooks for m in module.modules()
        )
        widths = (layers[0].in_features, layers[-1].out_features)
        return (
            widths == (n_features, n_outputs)
            and not hooks
            and all(p.requires_grad for p in parameters)
            and len({id(p) for p in parameters}) == 2 * len(layers)
        )

    def backward(self, rows: Rows, into: Tensor) -> Tensor:
        """Write the gradient of the loss of ``rows`` to ``into``; return the loss."""
        return self._backward(rows, into, 1)

    def gradients(self, parts: list[Rows], into: Tensor) -> None:
        """Write the gradient of the loss of each part to a row of ``into``."""
        if len({len(part) for part in parts}) > 1:
            super().gradients(parts, into)
        else:
            self._backward(concatenate(*parts), into if len(parts) > 1 else into[0], len(parts))

    def _backward(self, rows: Rows, into: Tensor, n_parts: int) -> Tensor:
        """The loss; the gradients of ``n_parts`` equal parts of the rows are written."""
        X, loss = self.units.inputs(rows.X), LOSSES[self.loss]
        n_rows = X.shape[0]
        scratch = self._buffers.get(n_rows) or self._allocate(X)
        known = self._gradients.get(id(into)) or self._remember(into)
        gradients = known[1]
        h = X
        for (_, b), W_t, (apply, _), own in zip(
            self._weights, self._transposed, self._activations, scratch, strict=True
        ):
            h = apply(torch.addmm(b, h, W_t, out=own.h))
        residual = h - self.units.targets(rows.y)
        delta = loss.slope(residual, n_parts / (n_rows * self._n_outputs), scratch[-1].delta)
        value = loss.value(residual)
        if rows.weight is not None:
            value = value * rows.weight
            delta.mul_(rows.weight)
        for i in self._downwards:
            h, delta, delta_t = scratch[i]
            self._activations[i].backward(delta, h)
            into_weight, into_bias = gradients[i]
            below = scratch[i - 1].h if i else X
            if n_parts == 1:
                torch.mm(delta_t, below, out=into_weight)
                torch.sum(delta, 0, out=into_bias)
            else:
                deltas = delta.unflatten(0, (n_parts, -1))
                torch.bmm(deltas.mT, below.unflatten(0, (n_parts, -1)), out=into_weight)
                torch.sum(deltas, 1, out=into_bias)
            if i:
                torch.mm(delta, self._weights[i][0], out=scratch[i - 1].delta)
        return value.mean()

    def factors(self, rows: Rows, seeds: Seeds) -> Iterator[LayerFactors]:
        """For each seed: every layer with its input, and what comes down to its output.

        Row by row, the derivative by the layer's weights is the outer product of the two.
        """
        a = [self.units.inputs(rows.X)]
        for (_, b), W_t, activation in zip(
            self._weights, self._transposed, self._activations, strict=True
        ):
            a.append(activation.apply(torch.addmm(b, a[-1], W_t)))
        for seed in seeds(a[-1], rows):
            delta, found = seed.clone(), []
            for i in self._downwards:
                # The activation uses up its output, which the next seed needs again.
                delta = self._activations[i].backward(delta, a[i + 1].clone())
                found.append((self._layers[i], a[i], delta))
                if i:
                    delta = delta @ self._weights[i][0]
            yield found[::-1]

    def change_units(self, units: Units) -> None:
        """Read and answer in other units, with first and last layer so that no answer changes."""
        old, self.units = self.units, units
        W, b = (view.double() for view in self._weights[0])
        ratio = torch.where(old.gain == 0, 1.0, old.gain.double() / units.gain)
        b = b + W @ (old.shift - ratio * units.shift)
        self._weights[0][0].copy_(W * ratio)
        self._weights[0][1].copy_(b)
        W, b = (view.double() for view in self._weights[-1])
        ratio = units.target_gain.double() / old.target_gain
        self._weights[-1][0].copy_(ratio.unsqueeze(1) * W)
        self._weights[-1][1].copy_(ratio * (b - old.target_shift) + units.target_shift)

    def _remember(self, into: Tensor) -> tuple[Tensor, list[tuple[Tensor, Tensor]]]:
        if len(self._gradients) >= _KEPT_GRADIENTS:
            self._gradients.clear()
        self._gradients[id(into)] = (into, self._cut(into))
        return self._gradients[id(into)]

    def _allocate(self, X: Tensor) -> list[_Scratch]:
        if len(self._buffers) >= _KEPT_BUFFERS:
            self._buffers.clear()
        self._buffers[len(X)] = [_Scratch.of(X, len(X), len(b)) for _, b in self._weights]
        return self._buffers[len(X)]

    def _cut(self, vector: Tensor) -> list[tuple[Tensor, Tensor]]:
        views = {
            id(p): v for p, v in zip(self.flat.parameters, self.flat.views(vector), strict=True)
        }
        return [(views[id(layer.weight)], views[id(layer.bias)]) for layer in self._layers]


def _layers(module: nn.Module) -> tuple[list[nn.Linear], list[_Activation]]:
    """The linear layers and the activation after each; ValueError if there is more to it."""
    layers: list[nn.Linear] = []
    activations: list[_Activation] = []
    for part in _parts(module):
        if type(part) is nn.Linear and part.bias is not None:
            layers.append(part)
            activations.append(_ACTIVATIONS[nn.Identity])
        elif (
            type(part) in _ACTIVATIONS and layers and (activations[-1] is _ACTIVATIONS[nn.Identity])
        ):
            activations[-1] = _ACTIVATIONS[type(part)]
        else:
            raise ValueError(f"module must be linear layers and activations; got {part!r}.")
    if not layers:
        raise ValueError("module must have a linear layer; got none.")
    return layers, activations


def _parts(module: nn.Module) -> list[nn.Module]:
    if isinstance(module, nn.Sequential) and type(module).forward is nn.Sequential.forward:
        return [part for child in module for part in _parts(child)]
    return [module]
