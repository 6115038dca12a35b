"""The hand-written step and the closed-form Jacobian against autograd."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from torch import nn
from torch.func import functional_call

from sklearn_cl import ContinualMLPRegressor
from sklearn_cl._dense import DenseEngine
from sklearn_cl._engine import AutogradEngine
from sklearn_cl._jacobian import has_linear_factors, linear_factors, mean_jacobian
from sklearn_cl._learner import Learner
from sklearn_cl._losses import LOSSES
from sklearn_cl._module import ACTIVATIONS, MLPRecipe
from sklearn_cl._optimizer import FlatAdam, FlatSGD
from sklearn_cl._rows import Rows
from sklearn_cl._schedule import Average, cosine
from sklearn_cl._units import Units

WIDTHS = [(), (7,), (16, 5), (8, 8, 8)]


def units(n_features, n_outputs, dtype):
    asleep = torch.zeros(n_features, dtype=torch.bool)
    return Units.of(asleep, torch.zeros(n_outputs, dtype=torch.bool), dtype)


def rows(n_rows, n_features, n_outputs, dtype, *, weighted=False, seed=0):
    rng = torch.Generator().manual_seed(seed)
    X, y = (torch.randn(n_rows, k, generator=rng, dtype=dtype) for k in (n_features, n_outputs))
    weight = torch.rand(n_rows, 1, generator=rng, dtype=dtype) * 2 if weighted else None
    return Rows(X, 2 * y, weight)


def net(widths, activation, n_outputs, dtype, n_features=4):
    rng = torch.Generator().manual_seed(1)
    return MLPRecipe(widths, activation)(n_features, n_outputs, rng).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_dense_step_is_autograd(activation, loss, dtype):
    tolerance = {"rtol": 1e-5, "atol": 1e-6} if dtype == torch.float32 else {}
    for widths, n_outputs, weighted in itertools.product(WIDTHS, (1, 3), (False, True)):
        module = net(widths, activation, n_outputs, dtype)
        assert DenseEngine.fits(module, 4, n_outputs)
        assert not DenseEngine.fits(module, 4, n_outputs + 1)
        dense = DenseEngine(module, units(4, n_outputs, dtype))
        auto = AutogradEngine(net(widths, activation, n_outputs, dtype), units(4, n_outputs, dtype))
        dense.loss = auto.loss = loss
        for n_rows in (33, 1, 33):  # buffers are reused
            batch = rows(n_rows, 4, n_outputs, dtype, weighted=weighted, seed=n_rows)
            scratch = torch.empty_like(dense.flat.theta)
            value = dense.backward(batch, into=dense.flat.grad)
            assert dense.backward(batch, into=scratch) == value
            torch.testing.assert_close(value, auto.backward(batch, auto.flat.grad), **tolerance)
            torch.testing.assert_close(dense.flat.grad, auto.flat.grad, **tolerance)
            torch.testing.assert_close(scratch, auto.flat.grad, **tolerance)
            auto.backward(batch, into=scratch)
            torch.testing.assert_close(dense.flat.grad, scratch, **tolerance)


@pytest.mark.parametrize("sizes", [(6, 6, 6), (5,), (3, 4)])
@pytest.mark.parametrize("weighted", [False, True])
def test_gradients_of_parts_are_those_of_each(sizes, weighted):
    batch = rows(sum(sizes), 4, 2, torch.float64, weighted=weighted)
    parts = [batch.take(index) for index in torch.arange(len(batch)).split(sizes)]
    for widths in WIDTHS:
        dense = DenseEngine(net(widths, "tanh", 2, torch.float64), units(4, 2, torch.float64))
        auto = AutogradEngine(dense.module, dense.units)
        out = torch.empty(2, len(sizes), len(dense.flat.theta), dtype=torch.float64)
        dense.gradients(parts, into=out[0])
        auto.gradients(parts, into=out[1])
        torch.testing.assert_close(out[0], out[1])
        assert out.any()


def test_weights_of_dead_units_do_not_become_denormal():
    """They would make every later product many times slower."""
    tiny, outside = torch.finfo(torch.float32).tiny, []
    reg = ContinualMLPRegressor((8,), max_iter=1, alpha=0.5, random_state=0)
    X, y = np.random.default_rng(0).normal(size=(2, 20, 3))[0], np.arange(20.0)
    reg.fit(X, y)
    with torch.no_grad():
        reg.net_.engine_.flat.theta.mul_(tiny / 100)
    outside.append(bool(reg.net_.engine_.flat.theta.any()))
    reg.partial_fit(X, y)
    size = reg.net_.engine_.flat.theta.abs()
    assert not ((size > 0) & (size < tiny)).any()
    outside.append(torch.tensor(tiny) / 2 > 0)
    assert all(outside)


class Functional(nn.Module):
    """A linear layer and a bare parameter."""

    def __init__(self):
        super().__init__()
        self.layer, self.scale = nn.Linear(4, 2), nn.Parameter(torch.ones(2) * 0.7)

    def forward(self, X):
        return self.layer(X) * self.scale


class Twice(nn.Module):
    """A linear layer that each row passes twice."""

    def __init__(self):
        super().__init__()
        self.layer, self.head = nn.Linear(4, 4), nn.Linear(4, 2)

    def forward(self, X):
        return self.head(torch.tanh(self.layer(torch.tanh(self.layer(X)))))


class Hidden(nn.Module):
    """A weight that is used outside its layer as well."""

    def __init__(self):
        super().__init__()
        self.layer, self.head = nn.Linear(4, 4), nn.Linear(4, 2)

    def forward(self, X):
        h = torch.tanh(self.layer(X))
        return self.head(h + X @ self.layer.weight)


class Skip(nn.Module):
    """Linear layers only, but no chain."""

    def __init__(self):
        super().__init__()
        self.layer, self.head = nn.Linear(4, 4, bias=False), nn.Linear(4, 2)

    def forward(self, X):
        return self.head(X + torch.nn.functional.gelu(self.layer(X)))


def by_rows(engine, data):
    """The mean squared Jacobian by a loop over rows and outputs."""
    flat, total = engine.flat, 0
    engine.module.eval()
    for i in range(len(data)):
        for k in range(data.y.shape[1]):
            f = engine.forward(data.X[i : i + 1])[0, k]
            J = torch.autograd.grad(f, flat.parameters, materialize_grads=True)
            w = 1 if data.weight is None else data.weight[i, 0]
            total = total + w * torch.cat([g.reshape(-1) for g in J]) ** 2
    return total / data.total / data.y.shape[1]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("kind", "make", "closed"),
    [
        (DenseEngine, lambda: net((6, 5), "tanh", 2, torch.float64), True),
        (DenseEngine, lambda: net((6, 5), "logistic", 2, torch.float64), True),
        (AutogradEngine, lambda: net((6, 5), "tanh", 2, torch.float64), True),
        (AutogradEngine, lambda: net((6,), "relu", 2, torch.float64), True),
        (AutogradEngine, Skip, True),
        (AutogradEngine, Functional, False),
        (AutogradEngine, Twice, False),
        (AutogradEngine, Hidden, False),
    ],
)
def test_mean_squared_jacobian(kind, make, closed, weighted):
    torch.manual_seed(0)
    module = make().double()
    engine = kind(module, units(4, 2, torch.float64))
    data = rows(23, 4, 2, torch.float64, weighted=weighted)
    assert has_linear_factors(engine, data) == closed
    torch.testing.assert_close(mean_jacobian(engine, data, torch.square), by_rows(engine, data))


@pytest.mark.parametrize("kind", [DenseEngine, AutogradEngine])
def test_linear_factors_give_the_gradient_of_each_row(kind):
    engine = kind(net((6,), "tanh", 1, torch.float64), units(4, 1, torch.float64))
    data = rows(5, 4, 1, torch.float64)
    ((_, factors),) = linear_factors(engine, data)

    def f(theta, x):
        values = dict(zip(engine.flat.names, engine.flat.views(theta)))
        return functional_call(engine.module, values, x[None])[0, 0]

    for i in range(5):
        J = torch.func.grad(f)(engine.flat.theta, data.X[i])
        for part in factors:
            outer = torch.outer(part.delta[i], part.a[i]).reshape(-1)
            torch.testing.assert_close(J[part.weight], outer)
            torch.testing.assert_close(J[part.bias], part.delta[i])


@pytest.mark.parametrize(
    "module",
    [
        nn.Sequential(nn.Linear(4, 4, bias=False)),
        nn.Sequential(nn.Linear(4, 4), nn.GELU()),
        nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.Linear(4, 1)),
        nn.Sequential(nn.ReLU(), nn.Linear(4, 1)),
        nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Tanh()),
        Skip(),
    ],
)
def test_other_modules_go_by_autograd(module):
    assert not any(DenseEngine.fits(module, 4, n_outputs) for n_outputs in (1, 2, 4))


def test_frozen_tied_and_hooked_layers_go_by_autograd():
    frozen = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1))
    frozen[0].bias.requires_grad_(False)
    tied = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))
    tied[2].weight = tied[0].weight
    hooked = nn.Sequential(nn.Linear(4, 1))
    hooked.register_forward_hook(lambda module, args, output: 2 * output)
    assert not any(
        DenseEngine.fits(module, 4, n_outputs)
        for module, n_outputs in [(frozen, 1), (tied, 4), (hooked, 1)]
    )
    assert AutogradEngine(tied, units(4, 4, torch.float32)).flat.theta.numel() == 16 + 8
    assert AutogradEngine(frozen, units(4, 1, torch.float32)).flat.theta.numel() == 16 + 5


def test_huber_is_squared_near_zero_and_linear_far_away():
    r = torch.linspace(-3, 3, 61, dtype=torch.float64, requires_grad=True)
    value, slope = LOSSES["huber"]
    reference = 2 * nn.functional.huber_loss(r, torch.zeros_like(r), reduction="none")
    torch.testing.assert_close(value(r), reference)
    (gradient,) = torch.autograd.grad(value(r).sum(), r)
    torch.testing.assert_close(slope(r.detach(), 0.5, torch.empty_like(gradient)), 0.5 * gradient)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (
            lambda theta: FlatAdam(theta, 0.01, (0.9, 0.99), 1e-8),
            lambda theta: torch.optim.Adam([theta], 0.01, (0.9, 0.99), 1e-8, foreach=False),
        ),
        *(
            (
                lambda theta, momentum=momentum, nesterov=nesterov: FlatSGD(
                    theta, 0.01, momentum, nesterov
                ),
                lambda theta, momentum=momentum, nesterov=nesterov: torch.optim.SGD(
                    [theta], 0.01, momentum, nesterov=nesterov, foreach=False
                ),
            )
            for momentum, nesterov in [(0.0, False), (0.9, False), (0.9, True)]
        ),
    ],
)
def test_optimizers_are_those_of_torch_bit_by_bit(ours, theirs, dtype):
    theta = torch.randn(50, dtype=dtype, generator=torch.Generator().manual_seed(0))
    twins = [theta.clone() for _ in range(2)]
    for twin in twins:
        twin.grad = torch.zeros_like(twin)
    optimizers = [ours(twins[0]), theirs(twins[1])]
    schedulers = [torch.optim.lr_scheduler.ExponentialLR(o, 0.9) for o in optimizers]
    for step in range(30):
        for twin, optimizer, scheduler in zip(twins, optimizers, schedulers, strict=True):
            twin.grad.copy_((twin + step).sin())
            if step % 2 and twin is twins[0]:
                optimizer.advance()
            else:
                optimizer.step()
            scheduler.step()
        assert torch.equal(twins[0], twins[1])
    assert not torch.equal(twins[0], theta)


@pytest.mark.parametrize("of", ["outputs", "loss"])
@pytest.mark.parametrize("n_outputs", [1, 2])
@pytest.mark.parametrize("kind", ["dense", "traced", "functional"])
def test_cosines_are_those_of_the_rows_derivatives(kind, n_outputs, of):
    """The products of factors against vectors as long as the parameters."""
    torch.manual_seed(0)
    module = net((6, 5), "tanh", n_outputs, torch.float64)
    make = DenseEngine if kind == "dense" else AutogradEngine
    if kind == "functional":
        module = nn.Sequential(nn.Linear(4, 5), nn.LayerNorm(5), nn.Linear(5, n_outputs)).double()
    engine = make(module, units(4, n_outputs, torch.float64))
    some, more = (rows(n, 4, n_outputs, torch.float64) for n in (7, 11))
    assert has_linear_factors(engine, some) == (kind != "functional")

    def derivative(data, i):
        row = data.take(slice(i, i + 1))
        parts = [engine.criterion(row)] if of == "loss" else list(engine.forward(row.X)[0])
        found = [torch.autograd.grad(p, engine.flat.parameters, retain_graph=True) for p in parts]
        return torch.cat([g.reshape(-1) for gradient in found for g in gradient])

    learner = Learner(engine, torch.Generator(), 8, 0.1, lambda: None)
    A, B = (torch.stack([derivative(data, i) for i in range(len(data))]) for data in (some, more))
    expected = nn.functional.normalize(A) @ nn.functional.normalize(B).T
    torch.testing.assert_close(learner.cosines(some, more, of=of), expected)
    if of == "outputs":
        torch.testing.assert_close(learner.jacobian(some).flatten(1), A)


@pytest.mark.parametrize("of", ["outputs", "norm"])
@pytest.mark.parametrize("kind", [DenseEngine, AutogradEngine])
def test_mean_absolute_jacobian_does_not_cancel(kind, of):
    engine = kind(net((6,), "relu", 2, torch.float64), units(4, 2, torch.float64))
    data = rows(9, 4, 2, torch.float64, weighted=True)
    learner = Learner(engine, torch.Generator(), 8, 0.1, lambda: None)
    total = 0
    for i in range(len(data)):
        f = engine.forward(data.X[i : i + 1])[0]
        for part in [f.square().sum()] if of == "norm" else f:
            J = torch.autograd.grad(part, engine.flat.parameters, retain_graph=True)
            total = total + data.weight[i, 0] * torch.cat([g.reshape(-1).abs() for g in J])
    expected = total / data.total / (1 if of == "norm" else 2)
    torch.testing.assert_close(learner.mean_absolute_jacobian(data, of=of), expected)


@pytest.mark.parametrize("part", [1.0, 1 / 3, 0.1, 0.01])
def test_average_covers_a_last_part_of_the_steps_and_nothing_before(part):
    value, seen = torch.zeros(1, dtype=torch.float64), []
    average = Average([value], part)
    for t in range(1, 601):
        value.fill_(t * t)
        seen.append(float(value))
        average.update()
        average.swap()
        windows = [sum(seen[-n:]) / n for n in range(1, t + 1)]
        (n,) = [n for n, mean in enumerate(windows, 1) if mean == pytest.approx(float(value))]
        assert part * t <= n <= part * (2 - part) * t + 2
        average.swap()
        assert float(value) == t * t


def test_average_of_no_part_is_the_value_itself():
    value = torch.zeros(1)
    average = Average([value], 0.0)
    for t in range(5):
        value.fill_(t)
        average.update()
        average.swap()
        assert float(value) == t


def test_cosine_rises_and_ends_near_zero():
    sizes = list(cosine(200))
    assert len(sizes) == 200
    assert sizes[0] < 0.11
    assert max(sizes) == pytest.approx(1, abs=0.01) == pytest.approx(sizes[9], abs=0.01)
    assert sizes[100] == pytest.approx(0.5)
    assert sizes[-1] < 1e-3
    assert list(cosine(1)) == [1.0]
