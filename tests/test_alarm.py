"""Alarms, task-free streams, carried rows and statistics that follow."""

from __future__ import annotations

import copy
import itertools
import pickle

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array
from scipy.stats import t
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.preprocessing import StandardScaler
from torch import nn

from sklearn_cl import ContinualMLPRegressor, ContinualPipeline, ContinualRegressor
from sklearn_cl._dense import DenseEngine
from sklearn_cl._rows import Rows
from sklearn_cl._units import Units
from sklearn_cl.datasets import make_drift_stream
from sklearn_cl.drift import BayesianChangePoint, DriftAlarm, MomentMatching, PageHinkley
from sklearn_cl.strategies import EWC, Replay, available, chain


def errors(kind, seed, n=5000):
    chance = np.random.default_rng(seed)
    error = chance.standard_t(3, size=n) if kind == "heavy" else chance.normal(size=n)
    if kind == "memory":
        for t in range(1, n):
            error[t] = 0.7 * error[t - 1] + 0.714 * error[t]
    return chance.normal(size=(n, 4)), error


def test_page_hinkley_of_a_step():
    test = PageHinkley(delta=0.005, threshold=5)
    alarms = [k for k in range(1, 57) if test.update(float(k > 50)).drift_detected]
    assert alarms == [56]
    assert not any(PageHinkley().update(3.0).drift_detected for _ in range(100))
    # By its definition, on values of any kind.
    values = np.random.default_rng(0).normal(size=300).cumsum() / 10
    test, m = PageHinkley(0.1, 1e9), []
    for k, x in enumerate(values):
        test.update(x)
        m.append((m[-1] if m else 0) + x - values[: k + 1].mean() - 0.1)
        assert test._sum == pytest.approx(m[-1])
        assert test._least == pytest.approx(min(0, *m) if m else 0)


def test_run_lengths_are_those_of_all_histories():
    """The sum over every way in which a short sequence can have been cut."""
    hazard, values = 0.2, np.array([0.3, -0.5, 2.0, 2.5, 1.8])

    def evidence(part):
        mean, weight, shape, scale = 0.0, 0.1, 1.0, 1.0
        total = 0.0
        for x in part:
            total += t.logpdf(x, 2 * shape, mean, np.sqrt(scale * (weight + 1) / (shape * weight)))
            scale += weight * (x - mean) ** 2 / (2 * (weight + 1))
            mean, weight, shape = (weight * mean + x) / (weight + 1), weight + 1, shape + 0.5
        return total

    n = len(values)
    run = np.zeros(n + 1)
    for cuts in itertools.product([False, True], repeat=n):
        # A cut at k ends a segment with value k.
        edges = [0, *(k + 1 for k in range(n) if cuts[k])]
        parts = [values[a:b] for a, b in itertools.pairwise([*edges, n])]
        changes = sum(cuts)
        prior = hazard**changes * (1 - hazard) ** (n - changes)
        run[n - edges[-1]] += prior * np.exp(sum(map(evidence, parts)))
    test = BayesianChangePoint(hazard)
    for x in values:
        test.update(x)
    np.testing.assert_allclose(np.exp(test.log_run_), run / run.sum(), rtol=1e-9)


def test_bayesian_alarm():
    chance = np.random.default_rng(0)
    values = chance.normal(size=1500)
    test = BayesianChangePoint(max_run=300)
    assert not any(test.update(x).drift_detected for x in values)
    assert len(test.log_run_) == 300
    alarms = [k for k in range(100) if test.update(chance.normal(3)).drift_detected]
    assert len(alarms) == 1
    assert alarms[0] < 15
    X, error = errors("normal", 3)
    error[3000:] *= 4
    assert any(3000 <= a.row < 3100 for a in DriftAlarm(BayesianChangePoint()).update(X, error))


@pytest.mark.parametrize("kind", ["normal", "heavy", "memory"])
def test_no_alarm_on_what_does_not_change_and_a_quick_one_on_what_does(kind):
    delays = []
    for seed in range(8):
        X, error = errors(kind, seed)
        assert DriftAlarm().update(X, error) == []
        # A model that learns: errors fall, and nothing is wrong.
        assert DriftAlarm().update(X, error * np.linspace(5, 1, len(error))) == []
        error[3000:] *= 2.5
        alarm = DriftAlarm().update(X, error)[0]
        delays.append(alarm.row - 3000)
        assert abs(alarm.since - 3000) <= 120
    assert 0 < np.median(delays) <= 100


def test_the_kind_of_a_change_is_told():
    kinds = []
    for what in ("inputs", "level", "slope", "noise"):
        X, error = errors("normal", 0)
        if what == "inputs":
            X[3000:, 1] += 2
            error[3000:] *= 3
        elif what == "level":
            error[3000:] += 4
        elif what == "slope":
            error[3000:] += 4 * X[3000:, 2]
        else:
            error[3000:] *= 4
        kinds.append(DriftAlarm().update(X, error)[0].kind)
    assert kinds == ["inputs", "target given inputs", "target given inputs", "noise"]


def test_pieces_are_watched_as_a_whole():
    X, error = errors("normal", 1)
    error[3000:] *= 3
    whole, pieces = DriftAlarm(), DriftAlarm()
    whole.update(X, error)
    for k in range(0, 5000, 70):
        pieces.update(X[k : k + 70], error[k : k + 70])
    assert whole.alarms_ == pieces.alarms_
    assert whole.n_rows_ == 5000


def test_detectors_of_river_serve():
    drift = pytest.importorskip("river.drift")
    X, error = errors("normal", 2)
    error[3000:] *= 3
    for detector in (drift.ADWIN(), drift.PageHinkley(delta=0.3, threshold=50)):
        rows = [alarm.row for alarm in DriftAlarm(detector).update(X, error)]
        assert any(3000 < row < 3300 for row in rows)
    reg = ContinualMLPRegressor((8,), max_iter=2, alarm=drift.ADWIN(), random_state=0)
    assert clone(reg).fit(X, X[:, 0]).partial_fit(X, X[:, 0]).alarm_ is None


def make(**params):
    defaults = {"max_iter": 40, "batch_size": 32, "learning_rate_init": 0.01, "random_state": 0}
    return ContinualMLPRegressor((16,), **defaults | params)


def streams():
    X, y, labels = make_drift_stream(2, 600, noise=0.3, random_state=0)
    y = y + 12 * labels
    return X, y, labels


@pytest.mark.parametrize("strategy", ["replay", "pseudo", "ewc"])
def test_a_stream_in_pieces_is_that_with_the_boundaries_of_the_alarm(strategy):
    X, y, _ = streams()
    reg, starts = make(strategy=strategy), [0]
    for k in range(0, 1200, 100):
        before = getattr(reg, "n_experiences_", 1)
        reg.partial_fit(X[k : k + 100], y[k : k + 100], experience="auto")
        if reg.n_experiences_ > before:
            starts.append(k)
    assert len(starts) == 2
    assert 600 <= starts[1] <= 700
    told = make(strategy=strategy)
    for piece in np.split(np.arange(1200), starts[1:]):
        told.partial_fit(X[piece], y[piece])
    np.testing.assert_array_equal(reg.predict(X), told.predict(X))
    np.testing.assert_array_equal(reg.predict(X, after=0), told.predict(X, after=0))
    assert reg.alarm_.kind in ("inputs", "target given inputs")
    assert reg.alarm_.strength > 1.5
    assert [record.n_rows for record in reg.experiences_] == [starts[1], 1200 - starts[1]]
    # Goes on after a pickle, and after a call that is an experience of its own.
    twin = pickle.loads(pickle.dumps(reg))
    for one in (reg, twin):
        one.partial_fit(X[:50], y[:50], experience="auto").partial_fit(X[:50], y[:50])
        one.partial_fit(X[:50], y[:50], experience="auto")
    np.testing.assert_array_equal(reg.predict(X), twin.predict(X))
    with pytest.raises(ValueError, match="experience must be one of 'auto'"):
        reg.partial_fit(X, y, experience="new")


def test_a_refused_piece_changes_nothing():
    X, y, _ = streams()
    pieces = [(X[k : k + 100], y[k : k + 100]) for k in range(0, 400, 100)]
    one, two = make().partial_fit(*pieces[0]), make().partial_fit(*pieces[0])
    for reg in (one, two):
        reg.partial_fit(*pieces[1], experience="auto")
    before = pickle.dumps(one)
    one.set_params(learning_rate_init=1e30)
    with pytest.raises(ValueError, match="diverged"):
        one.partial_fit(*pieces[2], experience="auto")
    one.set_params(learning_rate_init=0.01)
    assert pickle.dumps(one) == before
    for reg in (one, two):
        reg.partial_fit(*pieces[3])
    np.testing.assert_array_equal(one.predict(X), two.predict(X))


@pytest.mark.parametrize("seed", [0, np.random.RandomState(0)], ids=["int", "state"])
def test_pieces_belong_to_the_estimator(seed):
    """The caller may use the same arrays again, and draw from the same generator."""
    X, y, _ = streams()
    reg = make(random_state=copy.deepcopy(seed))
    own_X, own_y = np.empty((50, X.shape[1])), np.empty(50)
    for k in range(0, 200, 50):
        own_X[:], own_y[:] = X[k : k + 50], y[k : k + 50]
        reg.partial_fit(own_X, own_y, experience="auto")
    told = make(random_state=copy.deepcopy(seed)).fit(X[:200], y[:200])
    np.testing.assert_array_equal(reg.predict(X), told.predict(X))
    mixed = make(random_state=copy.deepcopy(seed))
    for k, kind in zip(range(0, 200, 50), (csr_array, np.asarray, csr_array, np.asarray)):
        mixed.partial_fit(kind(X[k : k + 50]), y[k : k + 50], experience="auto")
    np.testing.assert_allclose(mixed.predict(X), told.predict(X))


def test_skops_keeps_the_window_of_the_alarm():
    sio = pytest.importorskip("skops.io")
    X, y, labels = streams()
    reg = make().fit(X[labels == 0], y[labels == 0])
    reg.monitor(X[:200], y[:200])
    data = sio.dumps(reg)
    twin = sio.loads(data, trusted=sio.get_untrusted_types(data=data))
    for one in (reg, twin):
        assert one.monitor(X[labels == 1][:200], y[labels == 1][:200])
    assert one.alarm_ == reg.alarm_


def test_a_pipeline_counts_experiences_and_not_pieces():
    X, y, _ = streams()
    pipe = ContinualPipeline([("scale", StandardScaler()), ("reg", make(max_snapshots=3))])
    for k in range(0, 500, 100):
        pipe.partial_fit(X[k : k + 100], y[k : k + 100], experience="auto")
    assert pipe["reg"].n_experiences_ == 1
    np.testing.assert_array_equal(pipe.predict(X, after=0), pipe.predict(X))
    pipe.set_params(transformers="partial_fit")
    with pytest.raises(ValueError, match="transformers must be 'first'"):
        pipe.partial_fit(X, y, experience="auto")


def test_rows_without_weight_are_not_looked_at():
    X, y, _ = streams()
    y = y + 30.0 * (np.arange(1200) >= 800)
    weight = (np.arange(1200) < 800).astype(float)
    seen = make(max_iter=2).fit(X[:800], y[:800], experience="auto")
    both = make(max_iter=2).fit(X, y, sample_weight=weight, experience="auto")
    np.testing.assert_array_equal(both.predict(X), seen.predict(X))


def test_monitoring_learns_nothing():
    X, y, labels = streams()
    reg = make().fit(X[labels == 0], y[labels == 0])
    before = reg.predict(X)
    assert reg.alarm_ is None
    assert not reg.monitor(X[labels == 0], y[labels == 0])
    assert reg.monitor(X[labels == 1], y[labels == 1])
    assert 600 <= reg.alarm_.row <= 700
    np.testing.assert_array_equal(reg.predict(X), before)
    state = pickle.dumps(reg)
    with pytest.raises(ValueError, match="NaN"):
        reg.monitor(X[:5], y[:5] * np.nan)
    assert pickle.dumps(reg) == state
    watched = make(alarm="page-hinkley")
    for _ in range(2):
        watched.partial_fit(X[labels == 0], y[labels == 0])
    assert watched.alarm_ is None
    assert watched.partial_fit(X[labels == 1], y[labels == 1]).alarm_ is not None
    for wrong in ("adwin", 3, PageHinkley):
        with pytest.raises(ValueError, match="alarm must be"):
            make(alarm=wrong).fit(X, y)


def test_marginal_moments():
    X, y = np.zeros((4, 1)), np.array([1.0, 2, 3, 4])
    match = MomentMatching("marginal").fit(X, [10, 14, 18, 22], X, y)
    np.testing.assert_allclose(match.carry(X, y)[1], [10, 14, 18, 22])


def test_joint_moments():
    chance = np.random.default_rng(0)
    old, new = chance.normal(size=(200, 4)) @ chance.normal(size=(4, 4)), None
    new = chance.normal(size=(90, 4)) @ chance.normal(size=(4, 4)) + 7
    match = MomentMatching("joint").fit(new[:, :3], new[:, 3], old[:, :3], old[:, 3])
    carried = np.column_stack(match.carry(old[:, :3], old[:, 3]))
    np.testing.assert_allclose(carried.mean(0), new.mean(0))
    np.testing.assert_allclose(np.cov(carried.T), np.cov(new.T, bias=True) * 200 / 199, rtol=1e-6)
    same = MomentMatching("joint").fit(old[:, :3], old[:, 3], old[:, :3], old[:, 3])
    np.testing.assert_allclose(np.column_stack(same.carry(old[:, :3], old[:, 3])), old, atol=1e-8)


def test_anchored_is_right_where_inputs_move_too():
    """y = 3x before and 6x + 1 after, and today only large x are run."""
    chance = np.random.default_rng(0)
    X_old, X_new = chance.normal(size=(500, 1)), chance.normal(5, 1, size=(40, 1))
    y_old, y_new = 3 * X_old[:, 0], 6 * X_new[:, 0] + 1
    model = LinearRegression().fit(X_old, y_old)
    truth = 6 * X_old[:, 0] + 1
    error = {}
    for kind in ("anchored", "marginal"):
        match = MomentMatching(kind, model).fit(X_new, y_new, X_old, y_old)
        error[kind] = np.abs(match.carry(X_old, y_old)[1] - truth).mean()
    assert error["anchored"] < 0.5
    assert error["marginal"] > 20
    still = MomentMatching("anchored", model).fit(X_old[:30], y_old[:30])
    np.testing.assert_allclose(still.carry(X_old, y_old)[1], y_old, atol=1e-6)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"kind": "mean"}, "kind must be one of 'anchored'"),
        ({}, "model must be the fitted old model.*NoneType"),
        ({"kind": "joint"}, "X_old and y_old must be given for kind='joint'"),
    ],
)
def test_moments_are_refused_in_words(params, message):
    with pytest.raises(ValueError, match=message):
        MomentMatching(**params).fit(np.zeros((3, 1)), np.zeros(3))
    match = MomentMatching("anchored", LinearRegression().fit(np.eye(2), [1, 2]))
    with pytest.raises(ValueError, match=r"X_old must have 2 columns.*got 3"):
        match.fit(np.eye(2), [1, 2]).carry(np.eye(3), [1, 2, 3])
    for kind, least in (("marginal", 3), ("joint", 4)):
        with pytest.raises(ValueError, match=f"at least {least} new rows.*got 1"):
            MomentMatching(kind).fit(np.ones((1, 2)), [1.0], np.eye(2), [1.0, 2.0])
    with pytest.raises(ValueError, match=r"X_old must have 2 columns.*got 3"):
        MomentMatching("joint").fit(np.ones((5, 2)), np.ones(5), np.ones((5, 3)), np.ones(5))


def test_changing_units_changes_no_answer():
    rng = torch.Generator().manual_seed(0)
    for widths in ([4, 3], [4, 8, 3], [4, 8, 8, 3]):
        layers = []
        for k in range(len(widths) - 1):
            layers += [nn.Linear(widths[k], widths[k + 1]), nn.Tanh()]
        module = nn.Sequential(*layers[:-1]).double()
        none = torch.zeros(4, dtype=torch.bool), torch.zeros(3, dtype=torch.bool)
        engine = DenseEngine(module, Units.of(*none, torch.float64))
        X = torch.randn(50, 4, generator=rng, dtype=torch.float64)
        for scale in (3.0, 1e4):
            rows = Rows(
                X * scale + 7, torch.randn(50, 3, generator=rng, dtype=torch.float64) * scale - 2
            )
            units = engine.units.follow(Rows(X, X[:, :3])).follow(rows)
            before = engine.units.outputs(engine.forward(X))
            engine.change_units(units)
            after = engine.units.outputs(engine.forward(X))
            torch.testing.assert_close(after, before, rtol=1e-9, atol=1e-9)


def test_statistics_are_those_of_all_rows():
    chance = np.random.default_rng(0)
    parts = [chance.normal(3 * k, k + 1.0, size=(40 * (k + 1), 2)) for k in range(3)]
    reg = make(standardize="running", strategy="replay", dtype="float64", max_iter=1)
    for part in parts:
        reg.partial_fit(part, part.sum(1) * 100)
    rows, units = np.concatenate(parts), reg.net_.engine_.units
    first, y = parts[0], rows.sum(1) * 100
    mean, spread = (rows.mean(0) - first.mean(0)) / first.std(0), rows.std(0) / first.std(0)
    np.testing.assert_allclose(units.gain, 1 / spread)
    np.testing.assert_allclose(units.shift, -mean / spread)
    target = first.sum(1) * 100
    np.testing.assert_allclose(units.target_gain, [target.std() / y.std()])
    assert units.count == 240


def test_no_prediction_moves_when_statistics_do():
    X, y, labels = streams()
    params = {"strategy": "naive", "dtype": "float64", "alpha": 0.0, "averaging": False}
    reg = make(standardize="running", **params).fit(X[labels == 0], y[labels == 0])
    before = reg.predict(X)
    reg.set_params(solver="sgd", learning_rate_init=1e-300, max_iter=1)
    after = copy.deepcopy(reg).partial_fit(X[labels == 1] * 50, y[labels == 1] * 1e6)
    assert after.net_.engine_.units.gain[0] < 0.1
    np.testing.assert_allclose(after.predict(X), before, rtol=1e-7)
    first = make(**params).fit(X[labels == 0], y[labels == 0])
    np.testing.assert_array_equal(first.predict(X), before)


def test_a_column_that_woke_follows_too():
    chance = np.random.default_rng(0)
    reg = make(standardize="running", strategy="naive", dtype="float64")
    X = chance.normal(size=(200, 2))
    reg.partial_fit(np.column_stack([np.ones(200), X]), X[:, 0])
    reg.partial_fit(np.column_stack([1 + X[:, 1], X]), X[:, 0] + X[:, 1])
    for _ in range(3):
        big = 1000 * chance.normal(size=200)
        reg.partial_fit(np.column_stack([big, X]), X[:, 0] + big)
    assert reg.score(np.column_stack([big, X]), X[:, 0] + big) > 0.95


def test_what_cannot_follow_is_refused():
    X, y, _ = streams()
    holding = [name for name, cls in available().items() if make_named(name).holds_parameters]
    assert holding == ["ewc", "kfac", "mas", "ogd", "si"]
    for strategy in [*holding, chain(Replay(), EWC())]:
        with pytest.raises(ValueError, match=r"standardize='running'.*holds on to weights"):
            make(standardize="running", strategy=strategy).fit(X, y)
    module = ContinualRegressor(
        lambda n_features: nn.Sequential(nn.Linear(n_features, 1), nn.Softplus())
    )
    with pytest.raises(ValueError, match="standardize='running' needs a module of linear layers"):
        module.set_params(standardize="running").fit(X, y)


def make_named(name):
    return ContinualMLPRegressor(strategy=name)._check_params()[1]
