"""Per-row derivatives of a net, in closed form for linear layers."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.func import functional_call, jacrev, vmap

from sklearn_cl._dense import DenseEngine
from sklearn_cl._engine import Engine, LayerFactors, Seeds
from sklearn_cl._losses import LOSSES
from sklearn_cl._rows import Rows

# So that the squares of a chunk stay in the cache.
_CHUNK_ROWS = 2048
_CHUNK_BYTES = 64 * 2**20


class Factors(NamedTuple):
    """A derivative by one linear layer: row by row ``delta x [a, 1]``.

    Parameters
    ----------
    weight, bias : slice
        Where the layer's parameters lie in ``theta``; ``bias`` is empty if it has none.
    a : Tensor of shape (n_rows, n_in)
        Its input.
    delta : Tensor of shape (n_rows, n_out)
        The derivative by the layer's output.
    """

    weight: slice
    bias: slice
    a: Tensor
    delta: Tensor


def outputs(f: Tensor, rows: Rows) -> list[Tensor]:
    """Seeds of each output in turn."""
    units = torch.eye(f.shape[1], dtype=f.dtype, device=f.device)
    return [unit.expand_as(f) for unit in units]


def norm(f: Tensor, rows: Rows) -> list[Tensor]:
    """The seed of the squared norm of the outputs."""
    return [2 * f]


def row_loss(engine: Engine, f: Tensor, rows: Rows) -> list[Tensor]:
    """The seed of the loss of each row, the mean over its outputs."""
    residual = f - engine.units.targets(rows.y)
    slope = LOSSES[engine.loss].slope(residual, 1 / f.shape[1], torch.empty_like(f))
    return [slope if rows.weight is None else slope * rows.weight]


def mean_jacobian(
    engine: Engine, rows: Rows, size: Callable[[Tensor], Tensor], seeds: Seeds = outputs
) -> Tensor:
    r"""Mean over rows and seeds of the size of the derivative by each parameter.

    ``size`` is the square or the absolute value, of which that of a product is the product. So
    for a weight of a linear layer the sum over rows is ``size(delta)^T size(a)``; a module with
    other parameters takes `torch.func`. Rows count with their weights.
    """
    total = torch.zeros_like(engine.flat.theta)
    count = 0.0
    if not has_linear_factors(engine, rows):
        for chunk, J in _row_derivatives(engine, rows, seeds):
            count += chunk.total
            sizes = size(J)
            total += sizes.sum(0) if chunk.weight is None else (sizes * chunk.weight).sum(0)
        return total.div_(count)
    for chunk, factors in linear_factors(engine, rows, seeds):
        count += chunk.total
        for weight, bias, a, delta in factors:
            sizes = size(delta)
            if chunk.weight is not None:
                sizes = sizes * chunk.weight
            total[weight].view(delta.shape[1], a.shape[1]).addmm_(sizes.T, size(a))
            if bias.stop:
                total[bias] += sizes.sum(0)
    return total.div_(count)


def jacobian(engine: Engine, rows: Rows, seeds: Seeds = outputs) -> Tensor:
    """The derivative of every seed of every row, of shape (n_rows, n_seeds, n_parameters)."""
    pairs: Iterator[tuple[Rows, Tensor]] = _row_derivatives(engine, rows, seeds)
    if has_linear_factors(engine, rows):
        pairs = (
            (chunk, _written(engine, factors))
            for chunk, factors in linear_factors(engine, rows, seeds)
        )
    chunks = itertools.groupby(pairs, key=lambda pair: pair[0])
    return torch.cat([torch.stack([J for _, J in parts], 1) for _, parts in chunks])


def cosines(engine: Engine, rows: Rows, others: Rows, seeds: Seeds) -> Tensor:
    """Cosines between the derivatives of rows and of other rows, without writing them down.

    The scalar product of two outer products is a product of two scalar products. With several
    seeds a row has one long vector of all of them.
    """
    if not has_linear_factors(engine, rows):
        long, longer = (
            nn.functional.normalize(jacobian(engine, part, seeds).flatten(1))
            for part in (rows, others)
        )
        return long @ longer.T
    mine, theirs = (_collected(engine, part, seeds) for part in (rows, others))
    gram = torch.zeros(len(rows), len(others)).to(rows.X)
    squares = [torch.zeros(len(part)).to(rows.X) for part in (rows, others)]
    for (_, bias, a, delta), (_, _, b, epsilon) in zip(mine, theirs, strict=True):
        one = float(bias.stop > 0)
        gram += (delta @ epsilon.T) * (a @ b.T + one)
        squares[0] += delta.square().sum(1) * (a.square().sum(1) + one)
        squares[1] += epsilon.square().sum(1) * (b.square().sum(1) + one)
    tiny = torch.finfo(gram.dtype).tiny
    root = [square.clamp(min=tiny).rsqrt() for square in squares]
    return gram * root[0].unsqueeze(1) * root[1]


def linear_factors(
    engine: Engine, rows: Rows, seeds: Seeds = outputs
) -> Iterator[tuple[Rows, list[Factors]]]:
    """The factors of every layer, for each chunk of rows and each seed in turn."""
    places = dict(zip(map(id, engine.flat.parameters), engine.flat.slices(), strict=True))
    factors = engine.factors if isinstance(engine, DenseEngine) else partial(_traced, engine)
    for chunk in rows.split(_CHUNK_ROWS):
        for found in factors(chunk, seeds):
            yield (
                chunk,
                [
                    Factors(
                        places[id(layer.weight)], places.get(id(layer.bias), slice(0, 0)), a, delta
                    )
                    for layer, a, delta in found
                ],
            )


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


def _traced(engine: Engine, rows: Rows, seeds: Seeds) -> Iterator[LayerFactors]:
    """The same as `DenseEngine.factors`, by autograd."""
    calls, f = _trace(engine, rows.X)
    through = [output for _, _, output in calls]
    for seed in seeds(f.detach(), rows):
        deltas = torch.autograd.grad(f, through, seed, retain_graph=True)
        yield [(layer, a, delta) for (layer, a, _), delta in zip(calls, deltas, strict=True)]


def _linear(engine: Engine) -> list[nn.Linear]:
    return [module for module in engine.module.modules() if isinstance(module, nn.Linear)]


def _trace(engine: Engine, X: Tensor) -> tuple[LayerFactors, Tensor]:
    """The layers that X passes, with input and output, and the net's answer."""
    calls: LayerFactors = []

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


def _collected(engine: Engine, rows: Rows, seeds: Seeds) -> list[Factors]:
    """The factors of all rows, layer by layer and seed by seed."""
    chunks = list(_by_chunk(engine, rows, seeds))
    return [
        Factors(
            parts[0].weight,
            parts[0].bias,
            torch.cat([part.a for part in parts]),
            torch.cat([part.delta for part in parts]),
        )
        for parts in zip(*chunks, strict=True)
    ]


def _by_chunk(engine: Engine, rows: Rows, seeds: Seeds) -> Iterator[list[Factors]]:
    """For each chunk, the factors of all seeds in one list."""
    for chunk in rows.split(_CHUNK_ROWS):
        yield [part for _, factors in linear_factors(engine, chunk, seeds) for part in factors]


def _row_derivatives(engine: Engine, rows: Rows, seeds: Seeds) -> Iterator[tuple[Rows, Tensor]]:
    """Derivatives row by row of any module, for each chunk and each seed in turn."""
    engine.module.eval()
    rest = engine.flat.rest()

    def f(theta: Tensor, x: Tensor) -> Tensor:
        values = dict(zip(engine.flat.names, engine.flat.views(theta), strict=True))
        answer: Tensor = functional_call(engine.module, values | rest, (x.unsqueeze(0),))
        return answer.reshape(-1)

    theta = engine.flat.theta
    n_outputs = len(engine.units.target_gain)
    size = max(1, _CHUNK_BYTES // (len(theta) * n_outputs * theta.element_size()))
    for chunk in rows.split(size):
        J = vmap(jacrev(f), in_dims=(None, 0))(theta, engine.units.inputs(chunk.X))
        with torch.no_grad():
            answer = engine.forward(chunk.X)
        for seed in seeds(answer, chunk):
            yield chunk, torch.einsum("nk,nkp->np", seed, J)


def _written(engine: Engine, factors: list[Factors]) -> Tensor:
    """The outer products, of shape (n_rows, n_parameters)."""
    J = engine.flat.theta.new_zeros(len(factors[0].a), len(engine.flat.theta))
    for weight, bias, a, delta in factors:
        J[:, weight] = (delta.unsqueeze(2) * a.unsqueeze(1)).flatten(1)
        if bias.stop:
            J[:, bias] = delta
    return J
