"""What is chosen by the net's derivatives, against explicit ones and the papers' rules."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from sklearn_cl import ContinualMLPRegressor
from sklearn_cl._engine import AutogradEngine
from sklearn_cl._learner import Learner
from sklearn_cl._rows import Rows
from sklearn_cl._units import Units
from sklearn_cl.strategies import GSS, MIR, GDumb, Replay
from sklearn_cl.strategies._select import greedy, interference


def learner_of(module, n_features, learning_rate=0.1):
    asleep = torch.zeros(n_features, dtype=torch.bool)
    units = Units.of(asleep, torch.zeros(1, dtype=torch.bool), torch.float64)
    engine = AutogradEngine(module.double(), units)
    return Learner(engine, torch.Generator(), 8, learning_rate, lambda: None)


def linear_at(*theta):
    module = nn.Linear(len(theta), 1, bias=False)
    nn.init.zeros_(module.weight)
    learner = learner_of(module, len(theta))
    learner.theta.copy_(torch.tensor(theta))
    return learner


def test_interference_of_a_linear_model(tiny):
    X, y = (torch.tensor(a) for a in tiny[0])
    learner = linear_at(1.0, 1.0)
    found = interference(Rows(X, y[:, None]), torch.tensor([4.0, 2.0]).double(), learner)
    torch.testing.assert_close(found, torch.tensor([0.16, 0.44, 0.36]).double())
    assert learner.theta.tolist() == [1.0, 1.0]


def test_the_sign_of_the_residual_turns_the_loss_gradient():
    X = torch.tensor([[1.0, 2, 1], [2, 1, 1]]).double()
    rows = Rows(X, -torch.tensor([[0.5], [-3.0]]).double())
    learner = linear_at(0.0, 0.0, 0.0)
    for of, cosine in [("outputs", 5 / 6), ("loss", -5 / 6)]:
        found = learner.cosines(rows, rows, of=of)
        assert float(found[0, 1]) == pytest.approx(cosine)
        assert found.diagonal().tolist() == pytest.approx([1, 1])


ANGLES = np.deg2rad([0, 25, 90, 130, 250])
COSINES = np.cos(ANGLES[:, None] - ANGLES)


@pytest.mark.parametrize(
    ("item", "cosine"), [(1, 0.906307787), (3, 0.766044443), (4, -0.342020143)]
)
def test_scores_are_the_largest_cosine_with_the_references(item, cosine):
    row = np.append(COSINES[item, [0, 2]], 1.0)[None]
    chance = np.random.default_rng(0)
    places, score = greedy(row, np.array([0.9, 0.9]), 3, 50, 0.5, chance)
    assert places.tolist() == [0, 1, 2]
    assert 2 * score[2] - 1 == pytest.approx(cosine)


def test_a_kept_row_is_replaced_as_often_as_the_paper_says():
    row, replaced = np.array([[-0.6, -0.6, 1.0]]), 0
    for seed in range(3000):
        places, _ = greedy(row, np.full(2, 0.9), 2, 5, 0.5, np.random.default_rng(seed))
        replaced += 2 in places
    assert replaced / 3000 == pytest.approx(0.9 / 1.1, abs=0.025)
    unchanged, _ = greedy(-row, np.full(2, 0.9), 2, 5, 0.5, np.random.default_rng(0))
    assert unchanged.tolist() == [0, 1]


def test_gdumb_is_a_fresh_fit_on_its_buffer():
    chance = np.random.default_rng(0)
    params = {"max_iter": 6, "random_state": 3, "standardize": False, "batch_size": 16}
    reg = ContinualMLPRegressor((8,), strategy=GDumb(capacity=40), **params)
    for k in range(3):
        X = chance.normal(size=(60, 3))
        reg.partial_fit(X, X[:, k])
    rows = reg.strategy_.buffer_.rows
    fresh = ContinualMLPRegressor((8,), strategy="naive", **params)
    fresh.fit(rows.X.double().numpy(), rows.y[:, 0].double().numpy())
    np.testing.assert_array_equal(reg.predict(X), fresh.predict(X))


def test_mir_without_choice_is_replay():
    def learn(strategy):
        chance = np.random.default_rng(0)
        reg = ContinualMLPRegressor((8,), strategy=strategy, max_iter=4, random_state=0)
        for k in range(3):
            X = chance.normal(size=(60, 3))
            reg.partial_fit(X, X[:, k])
        return reg.predict(X)

    # As many candidates as rows to rehearse: the order differs, the step does not.
    np.testing.assert_allclose(
        learn(MIR(capacity=30, n_candidates=1)), learn(Replay(capacity=30)), rtol=1e-3, atol=1e-3
    )
    assert np.abs(learn(MIR(capacity=90)) - learn(Replay(capacity=90))).max() > 1e-2


@pytest.mark.parametrize("direction", ["jacobian", "loss"])
def test_gss_fills_its_memory_and_takes_from_every_experience(direction):
    chance = np.random.default_rng(0)
    reg = ContinualMLPRegressor(
        (8,), strategy=GSS(capacity=60, direction=direction), max_iter=4, random_state=0
    )
    for k in range(3):
        X = chance.normal(k, size=(300, 3))
        reg.partial_fit(X, X[:, 0] * (-1) ** k)
    buffer = reg.strategy_.buffer_
    assert (len(buffer), buffer.seen, buffer.total) == (60, 900, 900.0)
    score = buffer.notes["score"]
    assert score.min() >= 0
    assert score.max() <= 1 + 1e-6
    middle = buffer.rows.X.mean(1)
    assert (middle > middle.min() + 0.5 * (middle.max() - middle.min())).sum() >= 5
