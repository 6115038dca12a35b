"""Replay and its buffers against joint training and the hypergeometric distribution."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

from sklearn_cl import ContinualMLPRegressor, ContinualRegressor
from sklearn_cl._rows import Rows, concatenate, mix
from sklearn_cl.buffers import Balanced, KCenter, Recent, Reservoir, TargetStratified
from sklearn_cl.strategies import Cumulative, Naive, Replay
from tests.conftest import At, weights


def test_weighted_step_is_the_joint_gradient(tiny):
    theta = torch.tensor([[0.5, -0.2]], dtype=torch.float64, requires_grad=True)
    *past, new = (Rows(torch.tensor(X), torch.tensor(y)[:, None]) for X, y in tiny)
    step = mix(new, concatenate(*past), share=5 / 7)
    loss = (step.weight * (step.X @ theta.T - step.y) ** 2).mean()
    (gradient,) = torch.autograd.grad(loss, theta)
    np.testing.assert_allclose(gradient[0], [-1.371428571429, -2.8], atol=1e-10)


def test_unlimited_buffer_is_cumulative(tiny):
    def learn(strategy):
        reg = ContinualRegressor(
            At,
            module__start=[0.770693206667, 1.259573275115],
            strategy=strategy,
            solver="sgd",
            momentum=0.0,
            learning_rate_init=1e-300,
            batch_size=100,
            max_iter=1,
            alpha=0.0,
            tol=0.0,
            standardize=False,
            dtype="float64",
        )
        reg.partial_fit(*tiny[0])
        reg.set_params(learning_rate_init=0.02, max_iter=50, n_iter_no_change=50)
        return weights(reg.partial_fit(*tiny[1]))

    expected = [0.425377279676, 1.058159870239]
    np.testing.assert_allclose(learn(Cumulative()), expected, atol=1e-10)
    np.testing.assert_allclose(learn(Replay(capacity=None)), expected, atol=1e-10)
    equal = learn(Replay(capacity=None, strength=1.0))
    np.testing.assert_allclose(equal, [0.386455838401, 0.950493408313], atol=1e-10)


def offered(buffer, *sizes, seed=0):
    rng, start = torch.Generator().manual_seed(seed), 0
    for size in sizes:
        X = torch.arange(start, start + size, dtype=torch.float64)[:, None]
        buffer.add(Rows(X, X), rng)
        start += size
    return buffer.rows.X[:, 0].long()


def test_reservoir_is_uniform():
    R, N, M = 2000, 1000, 100
    count = np.zeros(N)
    for seed in range(R):
        count[offered(Reservoir(M), N, seed=seed)] += 1
    p = M / N
    # Without replacement: the plain sum (c - Rp)^2 / Rp is not chi-square.
    statistic = ((count - R * p) ** 2).sum() / (R * p * (1 - p)) * (N - 1) / N
    assert 0.001 < stats.chi2(N - 1).sf(statistic) < 0.999


def test_reservoir_share_of_an_experience_is_hypergeometric():
    shares = np.array(
        [
            np.bincount(offered(Reservoir(100), *[200] * 5, seed=s) // 200, minlength=5)
            for s in range(500)
        ]
    )
    assert shares.mean(0) == pytest.approx(np.full(5, 20), abs=1)
    assert shares.var(0) == pytest.approx(np.full(5, 14.4144), rel=0.3)


@pytest.mark.parametrize("buffer", [Reservoir, Recent])
@pytest.mark.parametrize("sizes", [[300], [1, 299], [7] * 42 + [6], [150, 150]])
def test_chunks_do_not_matter(buffer, sizes):
    torch.testing.assert_close(offered(buffer(40), *sizes), offered(buffer(40), 300))


@pytest.mark.parametrize("make", [Reservoir, Balanced, Recent])
def test_two_buffers_merge_as_if_one_had_seen_all(make):
    rng = torch.Generator().manual_seed(0)
    parts = [torch.arange(k * 70, k * 70 + 70, dtype=torch.float64)[:, None] for k in range(4)]
    one, first, second = make(40), make(40), make(40)
    for k, X in enumerate(parts):
        (first if k < 2 else second).add(Rows(X, X), rng)
    rng.manual_seed(0)
    for X in parts:
        one.add(Rows(X, X), rng)
    first.merge(second)
    assert torch.equal(first.rows.X, one.rows.X)
    assert (first.seen, first.total) == (one.seen, one.total) == (280, 280.0)
    with pytest.raises(ValueError, match="other must be a"):
        first.merge(KCenter(40))


def test_kcenter_covers_within_twice_the_best_radius():
    buffer = KCenter(10)
    grid = offered(buffer, 150, 150)
    radius = (torch.arange(300)[:, None] - grid).abs().amin(1).max()
    assert radius <= 2 * 15
    assert len(grid.unique()) == 10


def test_strata_keep_the_tail_and_the_average():
    chance, rng = np.random.default_rng(0), torch.Generator().manual_seed(0)
    buffer, seen = TargetStratified(100), []
    for _ in range(8):
        y = torch.from_numpy(chance.exponential(size=(500, 1)))
        seen.append(y)
        buffer.add(Rows(y, y), rng)
    y, sample = torch.cat(seen), buffer.sample()
    weighted = (sample.weight * sample.y).mean()
    assert sample.weight.mean() == pytest.approx(1)
    assert buffer.notes["stands_for"].sum() == pytest.approx(4000)
    assert weighted == pytest.approx(float(y.mean()), rel=0.1)
    assert sample.y.mean() > 1.5 * y.mean()
    assert (sample.y > y.quantile(0.95)).float().mean() > 0.2


def test_a_buffer_object_is_copied_and_must_be_empty():
    policy = TargetStratified(n_bins=3)
    X = np.random.default_rng(0).normal(size=(50, 2))
    reg = ContinualMLPRegressor((4,), strategy=Replay(20, policy=policy), max_iter=2)
    buffer = reg.fit(X, X[:, 0]).strategy_.buffer_
    assert (buffer.n_bins, len(buffer), len(policy)) == (3, 20, 0)
    reg.set_params(strategy=Replay(20, policy=buffer))
    with pytest.raises(ValueError, match="policy must be an empty buffer; got one of 20 rows"):
        reg.fit(X, X[:, 0])


def test_recent_keeps_the_last():
    assert offered(Recent(5), 3, 9).tolist() == [7, 8, 9, 10, 11]


@pytest.mark.parametrize("capacity", [3, 10, 100, 101])
def test_balanced_counts_differ_by_one(capacity):
    for n in range(1, 8):
        kept = offered(Balanced(capacity), *[40] * n)
        counts = np.bincount(kept // 40, minlength=n)
        assert counts.sum() == min(capacity, 40 * n)
        assert np.ptp(counts) <= 1


def test_balanced_gives_room_of_small_experiences_to_others():
    kept = offered(Balanced(30), 100, 4, 100)
    assert np.histogram(kept, [0, 100, 104, 204])[0].tolist() == [13, 4, 13]


def test_memory_fills_up_before_it_drops():
    reg = ContinualMLPRegressor((4,), strategy=Replay(capacity=500), max_iter=1, random_state=0)
    chance = np.random.default_rng(0)
    kept = []
    for _ in range(10):
        X = chance.normal(size=(60, 3))
        kept.append(len(reg.partial_fit(X, X[:, 0]).strategy_.buffer_))
    assert kept == [60, 120, 180, 240, 300, 360, 420, 480, 500, 500]


def test_draws_differ_from_call_to_call():
    # Column 0 marks the position of a row in its experience, column 1 the experience.
    reg = ContinualMLPRegressor(
        (4,), strategy=Replay(capacity=40), max_iter=1, standardize=False, random_state=0
    )
    for k in range(4):
        X = np.column_stack([np.arange(200) / 200, np.full(200, k)])
        reg.partial_fit(X, X[:, 0])
    rows = reg.strategy_.buffer_.rows.X.numpy()
    kept = {k: frozenset(rows[rows[:, 1] == k, 0].tolist()) for k in range(4)}
    assert min(map(len, kept.values())) >= 3
    assert len(set(kept.values())) == 4


def test_reservoir_is_unbiased_for_weights():
    chance = np.random.default_rng(0)
    X, y, w = chance.normal(size=(400, 2)), chance.normal(size=400), chance.uniform(0, 3, 400)
    means = []
    for seed in range(300):
        buffer = Reservoir(50)
        tensors = [torch.from_numpy(a).reshape(400, -1) for a in (X, y, w)]
        buffer.add(Rows(*tensors), torch.Generator().manual_seed(seed))
        rows = buffer.sample()
        means.append(float((rows.weight * rows.y).mean()))
    assert np.mean(means) == pytest.approx(np.average(y, weights=w), abs=4 * np.std(means) / 17)


def test_replay_forgets_less_than_naive():
    def error(strategy):
        chance = np.random.default_rng(0)
        reg = ContinualMLPRegressor((32,), strategy=strategy, batch_size=32, random_state=0)
        X = chance.uniform(-1, 1, size=(300, 3))
        past = X - [4, 0, 0]
        reg.partial_fit(past, np.sin(3 * past[:, 1])).partial_fit(X, -np.sin(3 * X[:, 1]))
        return np.abs(reg.predict(past) - np.sin(3 * past[:, 1])).mean()

    assert error(Replay(capacity=100)) < 0.5 * error(Naive())


def test_policy_cannot_change_in_mid_stream(tiny):
    reg = ContinualMLPRegressor((4,), strategy=Replay(), max_iter=1).partial_fit(*tiny[0])
    reg.set_params(strategy__policy="recent")
    with pytest.raises(ValueError, match=r"policy must stay 'reservoir'.*got 'recent'"):
        reg.partial_fit(*tiny[1])
