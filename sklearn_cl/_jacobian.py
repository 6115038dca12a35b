"""Per-row derivatives of a net's outputs, in closed form for linear layers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.func import functional_call, jacrev, vmap

from sklearn_cl._dense import DenseEngine
from sklearn_cl._engine import Engine
from sklearn_cl._rows import Rows

# So that the squares of a chunk stay in the cache.
_CHUNK_ROWS = 2048
_CHUNK_BYTES = 64 * 2**20


class Factors(NamedTuple):
    """The derivative of one output by one linear layer: row by row ``delta x [a, 1]``.

    Parameters
    ----------
    weight, bias : slice
        Where the layer's parameters lie in ``theta``; ``bias`` is empty if it has none.
    a : Tensor of shape (n_rows, n_in)
        Its input.
    delta : Tensor of shape (n_rows, n_out)
        The derivative of the net's output by the layer's output.
    """

    weight: slice
    bias: slice
    a: Tensor
    delta: Tensor


def mean_squared_jacobian(engine: Engine, rows: Rows) -> Tensor:
    r"""Mean over rows and outputs of the squared derivative by each parameter.

    ``F_i = mean_{n,k} w_n (d f_k(x_n) / d theta_i)^2``. For a weight of a linear layer that is
    ``(delta^2)^T (a^2)``; a module with other parameters takes `torch.func`.
    """
    if has_linear_factors(engine, rows):
        return _by_factors(engine, rows)
    return _by_vmap(engine, rows)


def linear_factors(engine: Engine, rows: Rows) -> Iterator[tuple[Rows, list[Factors]]]:
    """The factors of every layer, for each chunk of rows and each output in turn."""
    places = dict(zip(map(id, engine.flat.parameters), engine.flat.slices(), strict=True))
    factors = engine.factors if isinstance(engine, DenseEngine) else partial(_traced, engine)
    for chunk in rows.split(_CHUNK_ROWS):
        for found in factors(chunk.X):
            yield (
                chunk,
                [
                    Factors(
                        places[id(layer.weight)], places.get(id(layer.bias), slice(0, 0)), a, delta
                    )
                    for layer, a, delta in found
                ],
            )


def _traced(engine: Engine, X: Tensor) -> Iterator[list[tuple[nn.Linear, Tensor, Tensor]]]:
    """The same as `DenseEngine.factors`, by autograd."""
    calls, f = _trace(engine, X)
    for k in range(f.shape[1]):
        outputs = [output for _, _, output in calls]
        deltas = torch.autograd.grad(f[:, k].sum(), outputs, retain_graph=k + 1 < f.shape[1])
        yield [(layer, a, delta) for (layer, a, _), delta in zip(calls, deltas, strict=True)]


def has_linear_factors(engine: Engine, rows: Rows) -> bool:
    """Whether every parameter belongs to a linear layer that each row passes once."""
    if isinstance(engine, DenseEngine):
        return True
    owned = {id(p) for layer in _linear(engine) for p in layer.parameters()}
    if owned != set(map(id, engine.flat.parameters)):
        return False
    few = rows.take(slice(2))
    calls, f = _trace(engine, few.X)
    if len(calls) != len(_linear(engine)) or len({id(layer) for layer, _, _ in calls}) != len(
        calls
    ):
        return False
    if any(a.ndim != 2 for _, a, _ in calls):
        return False
    # A weight that is also used outside its layer would go unnoticed: compare the sums.
    truth = torch.autograd.grad(f[:, 0].sum(), engine.flat.parameters, materialize_grads=True)
    total = torch.cat([gradient.reshape(-1) for gradient in truth])
    _, factors = next(linear_factors(engine, few))
    return all(
        torch.allclose(total[part.weight], (part.delta.T @ part.a).reshape(-1), 1e-3, 1e-6)
        for part in factors
    )


def _linear(engine: Engine) -> list[nn.Linear]:
    return [module for module in engine.module.modules() if isinstance(module, nn.Linear)]


def _trace(engine: Engine, X: Tensor) -> tuple[list[tuple[nn.Linear, Tensor, Tensor]], Tensor]:
    """The layers that X passes, with input and output, and the net's answer."""
    calls: list[tuple[nn.Linear, Tensor, Tensor]] = []

    def record(layer: nn.Module, args: tuple[Tensor, ...], output: Tensor) -> None:
        assert isinstance(layer, nn.Linear)
        calls.append((layer, args[0].detach(), output))

    handles = [layer.register_forward_hook(record) for layer in _linear(engine)]
    engine.module.eval()
    try:
        return calls, engine.forward(X)
    finally:
        for handle in handles:
            handle.remove()


def _by_factors(engine: Engine, rows: Rows) -> Tensor:
    total = torch.zeros_like(engine.flat.theta)
    count = 0.0
    for chunk, factors in linear_factors(engine, rows):
        count += chunk.total
        for weight, bias, a, delta in factors:
            squared = delta.square()
            if chunk.weight is not None:
                squared = squared * chunk.weight
            total[weight] += (squared.T @ a.square()).reshape(-1)
            if bias.stop:
                total[bias] += squared.sum(0)
    return total.div_(count)


def _by_vmap(engine: Engine, rows: Rows) -> Tensor:
    engine.module.eval()
    rest = engine.flat.rest()

    def f(theta: Tensor, x: Tensor) -> Tensor:
        values = dict(zip(engine.flat.names, engine.flat.views(theta), strict=True))
        answer: Tensor = functional_call(engine.module, values | rest, (x.unsqueeze(0),))
        return answer.reshape(-1)

    theta = engine.flat.theta
    n_outputs = len(engine.units.target_gain)
    size = max(1, _CHUNK_BYTES // (len(theta) * n_outputs * theta.element_size()))
    total = torch.zeros_like(theta)
    for chunk in rows.split(size):
        J = vmap(jacrev(f), in_dims=(None, 0))(theta, engine.units.inputs(chunk.X))
        squared = J.square().mean(1)
        total += squared.sum(0) if chunk.weight is None else (squared * chunk.weight).sum(0)
    return total.div_(rows.total)
