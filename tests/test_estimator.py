"""The estimators' own semantics."""

from __future__ import annotations

import copy
import io
import pickle
from typing import ClassVar

import joblib
import numpy as np
import pandas as pd
import pytest
import skops.io
import torch
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from skorch.callbacks import Callback, EarlyStopping
from torch import nn

from sklearn_cl import ContinualMLPRegressor, ContinualRegressor
from sklearn_cl.datasets import make_drift_stream
from sklearn_cl.strategies import EWC, KroneckerEWC, Replay, Strategy, chain

X, Y, EXPERIENCE = make_drift_stream(3, 60, random_state=0)


def make(strategy="replay", **params):
    settings = {"max_iter": 5, "batch_size": 16, "random_state": 0} | params
    return ContinualMLPRegressor((16,), strategy=strategy, **settings)


def part(k):
    return X[k == EXPERIENCE], Y[k == EXPERIENCE]


class Net(nn.Module):
    """Batch normalisation, dropout, a frozen and a shared parameter."""

    def __init__(self, n_features, n_outputs, width=8, p=0.2):
        super().__init__()
        self.first, self.norm = nn.Linear(n_features, width), nn.BatchNorm1d(width)
        self.drop, self.head = nn.Dropout(p), nn.Linear(width, n_outputs)
        self.scale = nn.Parameter(torch.tensor(2.0), requires_grad=False)
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, X):
        if self.training and len(X) == 1:
            return self.head(torch.tanh(self.first(X)))
        return self.scale * self.head(self.drop(torch.tanh(self.norm(self.first(X)))))


# --- learning ------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0.0, 3.0])
def test_linear_model_is_ridge(alpha, make_linear):
    X, y = np.random.default_rng(0).normal(size=(2, 50, 3))[0], np.arange(50.0)
    reg = make_linear("naive", alpha=alpha).fit(X, y)
    ridge = Ridge(alpha=alpha, fit_intercept=False).fit(X, y)
    np.testing.assert_allclose(reg.predict(X), ridge.predict(X), atol=1e-6)
    weight = np.random.default_rng(1).integers(0, 3, size=50).astype(float)
    reg = make_linear("naive", alpha=alpha).fit(X, y, sample_weight=weight)
    ridge = Ridge(alpha=alpha, fit_intercept=False).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(reg.predict(X), ridge.predict(X), atol=1e-6)


def test_biases_are_spared_by_weight_decay():
    reg = ContinualMLPRegressor(
        (),
        solver="sgd",
        momentum=0,
        learning_rate_init=0.1,
        alpha=1e3,
        max_iter=500,
        tol=0,
        standardize=False,
        dtype="float64",
        batch_size=60,
    )
    chance = np.random.default_rng(0)
    X = chance.normal(size=(60, 2))
    reg.set_params(learning_rate_init=0.02).fit(X, X[:, 0] + 7)
    ridge = Ridge(alpha=1e3).fit(X, X[:, 0] + 7)
    np.testing.assert_allclose(reg.predict(X), ridge.predict(X), atol=1e-3)


def test_bit_equal_to_a_bare_loop():
    """The whole machinery against the plain PyTorch that it stands for."""
    x, y = part(0)
    params = {"standardize": False, "alpha": 0.0, "shuffle": False, "max_iter": 7}
    reg = ContinualRegressor(Net, module__p=0.0, strategy="naive", random_state=0, **params)
    reg.fit(x, y)
    start = reg.net_.initial_
    module = Net(8, 1, p=0.0)
    trainable = [p for p in module.parameters() if p.requires_grad]
    nn.utils.vector_to_parameters(start.theta, trainable)
    optimizer = torch.optim.Adam(trainable, lr=1e-3, foreach=False)
    inputs, target = torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)
    module.train()
    for _ in range(7):
        optimizer.zero_grad()
        nn.functional.mse_loss(module(inputs), target[:, None]).backward()
        optimizer.step()
    learnt = nn.utils.parameters_to_vector(trainable)
    torch.testing.assert_close(reg.net_.engine_.flat.theta, learnt, rtol=0, atol=0)


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error", "huber"])
@pytest.mark.parametrize("solver", ["adam", "adamw", "sgd"])
def test_losses_and_solvers_learn(loss, solver):
    rate = {"learning_rate_init": 0.05} if solver == "sgd" else {"learning_rate_init": 5e-3}
    reg = make(loss=loss, solver=solver, max_iter=100, **rate).fit(*part(0))
    assert reg.score(*part(0)) > 0.8


def test_absolute_error_finds_the_median_and_squared_error_the_mean():
    y = np.array([0.0, 0, 0, 0, 0, 0, 10, 10, 10] * 20)
    X = np.zeros((180, 1))
    params = {"solver": "sgd", "momentum": 0.0, "max_iter": 3000, "tol": 0, "batch_size": 180}
    for loss, expected, atol in [("squared_error", 10 / 3, 1e-2), ("absolute_error", 0, 0.2)]:
        reg = ContinualMLPRegressor((), loss=loss, learning_rate_init=0.01, **params).fit(X, y)
        assert reg.predict([[0.0]])[0] == pytest.approx(expected, abs=atol)


def test_optimizer_is_new_in_each_experience():
    x, y = part(0)
    once = make("naive", max_iter=1, batch_size=60, shuffle=False)
    for _ in range(4):
        once.partial_fit(x, y)
    params = {"max_iter": 4, "batch_size": 60, "shuffle": False}
    at_once = make("naive", **params).fit(x, y)
    assert not np.allclose(once.predict(x), at_once.predict(x), rtol=1e-4)
    # Without moments there is nothing to renew.
    sgd = {"solver": "sgd", "momentum": 0.0, "learning_rate_init": 0.05}
    one_by_one = make("naive", max_iter=1, batch_size=60, shuffle=False, **sgd)
    for _ in range(4):
        one_by_one.partial_fit(x, y)
    all_four = make("naive", **params, **sgd).fit(x, y)
    np.testing.assert_allclose(one_by_one.predict(x), all_four.predict(x), rtol=1e-6)


def test_labels_are_learnt_in_ascending_order():
    x = np.concatenate([part(2)[0], part(0)[0], part(1)[0]])
    y = np.concatenate([part(2)[1], part(0)[1], part(1)[1]])
    reg = make().fit(x, y, experience=["z"] * 60 + ["a"] * 60 + ["m"] * 60)
    assert [record.label for record in reg.experiences_] == ["a", "m", "z"]
    np.testing.assert_array_equal(
        reg.predict(X), make().fit(X, Y, experience=EXPERIENCE).predict(X)
    )


def test_tol_ends_an_experience():
    reg = make("naive", max_iter=1000, tol=1e9, n_iter_no_change=3).fit(*part(0))
    assert reg.n_iter_ == len(reg.loss_curve_) == 5
    assert reg.experiences_[0].n_epochs == 5


def test_early_stopping_returns_to_the_best_epoch():
    chance = np.random.default_rng(0)
    X, y = chance.normal(size=(60, 20)), chance.normal(size=60)  # noise: it must overfit
    reg = ContinualMLPRegressor(
        (64,),
        early_stopping=True,
        max_iter=300,
        learning_rate_init=0.02,
        random_state=0,
        validation_fraction=0.3,
        n_iter_no_change=20,
    ).fit(X, y)
    assert reg.n_iter_ < 300
    assert reg.experiences_[0].n_validation == 18
    best = int(np.argmin(reg.validation_losses_))
    assert best < reg.n_iter_ - 1
    again = clone(reg).set_params(max_iter=best + 1).fit(X, y)
    np.testing.assert_array_equal(again.predict(X), reg.predict(X))


def test_records_tell_what_happened():
    reg = make("replay", early_stopping=True).fit(X, Y, experience=EXPERIENCE)
    reg.partial_fit(X[:3], Y[:3], sample_weight=[1, 0, 2])
    records = reg.experiences_
    assert [r.label for r in records] == [0, 1, 2, 3]
    assert [r.n_rows for r in records] == [60, 60, 60, 2]
    assert [r.n_validation for r in records] == [6, 6, 6, 0]
    assert all(r.seconds > 0 and np.isfinite(r.loss) for r in records)
    assert np.diff([r.state_bytes for r in records]).tolist() == [
        60 * 44,
        60 * 44,
        2 * 48 + 180 * 4,
    ]
    assert pd.DataFrame(records).columns[0] == "label"


# --- chance --------------------------------------------------------------------------------


def test_a_module_that_draws_follows_random_state_alone():
    before = torch.get_rng_state(), np.random.get_state(legacy=False)
    a, b = (
        ContinualRegressor(Net, max_iter=4, random_state=seed).fit(X, Y, experience=EXPERIENCE)
        for seed in (0, 0)
    )
    other = ContinualRegressor(Net, max_iter=4, random_state=1).fit(X, Y, experience=EXPERIENCE)
    np.testing.assert_array_equal(a.predict(X), b.predict(X))
    assert not np.array_equal(a.predict(X), other.predict(X))
    assert torch.equal(torch.get_rng_state(), before[0])
    np.testing.assert_equal(np.random.get_state(legacy=False), before[1])


def test_threads_do_not_share_chance():
    def fit(seed):
        reg = ContinualRegressor(Net, max_iter=4, random_state=seed)
        return reg.fit(X, Y, experience=EXPERIENCE).predict(X)

    alone = [fit(seed) for seed in range(4)]
    together = joblib.Parallel(n_jobs=4, prefer="threads")(joblib.delayed(fit)(s) for s in range(4))
    np.testing.assert_array_equal(alone, together)


def test_orders_differ_from_experience_to_experience():
    class Watch(Strategy):
        orders: ClassVar = []

        def rehearse(self, batch, learner):
            Watch.orders.append(tuple(batch.X[:, 0].tolist()))
            return batch

    reg = make(Watch(), batch_size=60, max_iter=2)
    for _ in range(3):
        reg.partial_fit(*part(0))
    assert len(set(Watch.orders)) == 6
    reg = make(Watch(), batch_size=60, max_iter=2, shuffle=False).fit(*part(0))
    assert len(set(Watch.orders)) == 7


# --- predict(after=) -----------------------------------------------------------------------


@pytest.mark.parametrize("module", [None, Net])
def test_after_answers_as_the_model_stood(module):
    reg = make() if module is None else ContinualRegressor(Net, max_iter=4, random_state=0)
    stood = [reg.partial_fit(*part(k)).predict(X) for k in range(3)]
    for k in range(3):
        np.testing.assert_array_equal(reg.predict(X, after=k), stood[k])
        np.testing.assert_array_equal(reg.predict(X, after=k - 3), stood[k])
    np.testing.assert_array_equal(reg.predict(X), stood[2])


def test_after_passes_through_pipelines():
    pipe = make_pipeline(StandardScaler(), make())
    pipe.fit(X, Y, continualmlpregressor__experience=EXPERIENCE)
    bare = make().fit(StandardScaler().fit_transform(X), Y, experience=EXPERIENCE)
    for after in (0, 2):
        np.testing.assert_array_equal(
            pipe.predict(X, after=after), bare.predict(pipe[0].transform(X), after=after)
        )
    whole = TransformedTargetRegressor(make(), func=np.log1p, inverse_func=np.expm1)
    whole.fit(X, np.abs(Y), experience=EXPERIENCE)
    inside = np.expm1(whole.regressor_.predict(X, after=0))
    np.testing.assert_allclose(whole.predict(X, after=0), inside, rtol=1e-6)


def test_snapshots_are_bounded():
    reg = make("naive", max_iter=1, max_snapshots=3)
    for k in range(6):
        reg.partial_fit(*part(k % 3))
    assert reg.predict(X, after=3).shape == reg.predict(X, after=-3).shape
    for after in (2, -4):
        with pytest.raises(ValueError, match=r"one of the last 3 of 6.*Raise max_snapshots"):
            reg.predict(X, after=after)
    for after in (6, -7, 1.0, "0", True):
        with pytest.raises(ValueError, match="after must be an integer at least -6 and at most 5"):
            reg.predict(X, after=after)


# --- the border ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"strategy": "lfw"}, r"strategy must be a Strategy object or one of .*'naive'.*got 'lfw'"),
        ({"strategy": Replay}, "strategy must be a Strategy object"),
        ({"strategy": Replay(capacity=0)}, "capacity must be None or an integer at least 1; got 0"),
        ({"strategy": EWC(strength=-1.0)}, "strength must be a finite number at least 0; got -1"),
        ({"loss": "mse"}, "loss must be one of 'squared_error'.*got 'mse'"),
        ({"solver": "lbfgs"}, "solver must be one of .*got 'lbfgs'"),
        ({"learning_rate_init": 0}, "learning_rate_init must be a finite number above 0; got 0"),
        ({"alpha": -1}, "alpha must be a finite number at least 0; got -1"),
        ({"batch_size": 0}, "batch_size must be 'auto' or an integer at least 1; got 0"),
        ({"max_iter": 0}, "max_iter must be an integer at least 1; got 0"),
        ({"tol": None}, "tol must be a finite number at least 0; got None"),
        ({"validation_fraction": 1.0}, "validation_fraction must be .* below 1; got 1.0"),
        ({"beta_1": 1.0}, "beta_1 must be .* below 1; got 1.0"),
        ({"max_snapshots": 0}, "max_snapshots must be None or an integer at least 1; got 0"),
        ({"dtype": "float16"}, "dtype must be one of 'float32', 'float64'; got 'float16'"),
        ({"device": "gpu"}, "device must be a device that torch knows.*got 'gpu'"),
        ({"standardize": "yes"}, "standardize must be one of True, False, 'running'; got 'yes'"),
        ({"activation": "swish"}, "activation must be one of .*got 'swish'"),
        ({"hidden_layer_sizes": (8, 0)}, "hidden_layer_sizes must be an integer at least 1; got 0"),
    ],
)
def test_bad_parameters_are_named(change, message):
    with pytest.raises(ValueError, match=message):
        make().set_params(**change).fit(*part(0))
    reg = make().fit(*part(0))
    before = reg.predict(X)
    reg.set_params(**change)
    with pytest.raises(ValueError, match="must"):
        reg.partial_fit(*part(1))
    np.testing.assert_array_equal(reg.predict(X), before)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (lambda x, y: (x[:, :7], y), "7 features"),
        (lambda x, y: (x, y[1:]), "inconsistent numbers of samples"),
        (lambda x, y: (x[:0], y[:0]), "0 sample"),
        (lambda x, y: (np.where(x > 0.9, np.inf, x), y), "infinity"),
        (lambda x, y: (x, np.where(y > 9, np.nan, y)), "y contains NaN"),
        (lambda x, y: (x, np.c_[y, y]), "y must have 1 column.*got 2"),
        (lambda x, y: (x, y, np.ones(3)), r"sample_weight must have shape \(60,\).*got \(3,\)"),
        (lambda x, y: (x, y, -np.ones(60)), "sample_weight must be at least 0; got -1"),
        (lambda x, y: (x, y, np.zeros(60)), "sample_weight must not be zero"),
        (lambda x, y: (x, y, np.full(60, np.nan)), "sample_weight contains NaN"),
    ],
)
@pytest.mark.parametrize("fitted", [True, False])
def test_bad_input_changes_nothing(bad, message, fitted):
    reg = make(chain(Replay(), EWC()))
    if not fitted:
        if "features" in message or "column" in message:
            pytest.skip("the first call decides the width")
        with pytest.raises(ValueError, match=message):
            reg.partial_fit(*bad(*part(0)))
        with pytest.raises(NotFittedError):
            reg.predict(X)
        return
    reg.partial_fit(*part(0)).partial_fit(*part(1))
    twin, known = copy.deepcopy(reg), sorted(vars(reg))
    for call in (reg.partial_fit, reg.fit):
        if call == reg.fit and ("features" in message or "column" in message):
            continue
        with pytest.raises(ValueError, match=message):
            call(*bad(*part(2)))
    assert sorted(vars(reg)) == known
    np.testing.assert_array_equal(reg.predict(X), twin.predict(X))
    np.testing.assert_array_equal(
        reg.partial_fit(*part(2)).predict(X), twin.partial_fit(*part(2)).predict(X)
    )


def test_names_of_columns_are_kept_and_checked():
    names = list("abcdefgh")
    frames = [pd.DataFrame(part(k)[0], columns=names) for k in range(2)]
    reg = make().partial_fit(frames[0], part(0)[1])
    assert reg.feature_names_in_.tolist() == names
    before = reg.predict(frames[0])
    with pytest.raises(ValueError, match="feature names should match"):
        reg.partial_fit(frames[1][names[::-1]], part(1)[1])
    np.testing.assert_array_equal(reg.predict(frames[0]), before)


def test_divergence_is_told_and_undone():
    reg = make("replay").partial_fit(*part(0))
    twin = copy.deepcopy(reg)
    reg.set_params(solver="sgd", learning_rate_init=1e6, max_iter=50)
    with pytest.raises(ValueError, match=r"not finite.*Lower\s+learning_rate_init \(got 1000000.0"):
        reg.partial_fit(*part(1))
    np.testing.assert_array_equal(reg.predict(X), twin.predict(X))
    reg.set_params(**make().get_params())
    np.testing.assert_array_equal(
        reg.partial_fit(*part(1)).predict(X), twin.partial_fit(*part(1)).predict(X)
    )
    with pytest.warns(ConvergenceWarning, match="as good as diverged"):
        make("naive", learning_rate_init=1e3, max_iter=2).fit(*part(0))


def test_interrupt_reaches_the_caller():
    class Interrupt(Callback):
        def on_epoch_end(self, net, **kwargs):
            if len(net.history) == 3:
                raise_in_a_frame_of_its_own()

    def raise_in_a_frame_of_its_own():
        raise KeyboardInterrupt

    reg = make().fit(*part(0))
    before = reg.predict(X)
    reg.set_params(callbacks=[Interrupt()])
    reg.net_ = copy.deepcopy(reg.net_)
    reg.net_.callbacks_ = [("interrupt", Interrupt())]
    with pytest.raises(KeyboardInterrupt):
        reg.partial_fit(*part(1))
    np.testing.assert_array_equal(reg.predict(X), before)
    assert reg.n_experiences_ == 1
    unfitted = make(callbacks=[Interrupt()])
    with pytest.raises(KeyboardInterrupt):
        unfitted.fit(*part(0))
    with pytest.raises(NotFittedError):
        unfitted.predict(X)


def test_callbacks_of_skorch_work():
    stop = EarlyStopping("train_loss", patience=2, threshold=1e9, threshold_mode="abs", sink=str)
    reg = make(callbacks=[stop], max_iter=50).fit(*part(0))
    assert reg.n_iter_ < 6
    assert reg.net_.history[:, "train_loss"] == reg.loss_curve_


def test_structure_cannot_change_in_mid_stream():
    for change in (
        {"hidden_layer_sizes": (8,)},
        {"activation": "tanh"},
        {"dtype": "float64"},
        {"standardize": False},
        {"strategy": "naive"},
    ):
        reg = make().partial_fit(*part(0))
        before = reg.predict(X)
        reg.set_params(**change)
        np.testing.assert_array_equal(reg.predict(X), before)
        with pytest.raises(ValueError, match=r"must stay what it was.*Call fit to start anew"):
            reg.partial_fit(*part(1))
        np.testing.assert_array_equal(reg.predict(X), before)
        reg.fit(*part(1))


def test_new_values_act_from_the_next_call():
    reg = make(Replay(capacity=30)).partial_fit(*part(0))
    reg.set_params(strategy__capacity=10, max_iter=2).partial_fit(*part(1))
    assert (len(reg.strategy_.buffer_), reg.n_iter_) == (10, 2)


def test_a_name_has_no_parameters():
    with pytest.raises(ValueError, match=r"strategy must be an object.*strategy=EWC\(\)"):
        make("ewc").set_params(strategy__strength=3.0)
    reg = make("ewc").set_params(strategy=EWC(), strategy__strength=3.0)
    assert reg.strategy.strength == 3.0


def test_score_by_experience():
    reg = make(max_iter=50).fit(X, Y, experience=EXPERIENCE)
    parts = [reg.score(*part(k)) for k in range(3)]
    assert reg.score(X, Y, experience=EXPERIENCE) == pytest.approx(np.mean(parts))
    assert reg.score(X, Y) != pytest.approx(np.mean(parts))


# --- scale ---------------------------------------------------------------------------------


def test_unit_of_the_target_does_not_matter():
    a = make("ewc", dtype="float64").fit(X, Y, experience=EXPERIENCE)
    b = make("ewc", dtype="float64").fit(X * 1e6 + 3e8, 1e9 * Y + 5e9, experience=EXPERIENCE)
    np.testing.assert_allclose(b.predict(X * 1e6 + 3e8), 1e9 * a.predict(X) + 5e9, rtol=1e-5)


def stream_with_column(values):
    return [(np.c_[part(k)[0], np.full(60, v)], part(k)[1]) for k, v in enumerate(values)]


def test_a_sleeping_column_is_ignored():
    (x0, y0), (x1, _) = stream_with_column([20.0, 950.0])
    reg = make().partial_fit(x0, y0)
    np.testing.assert_array_equal(reg.predict(np.c_[part(1)[0], x0[:, -1]]), reg.predict(x1))


@pytest.mark.parametrize("constant", [0.0, 0.1, 20.0, -1e9])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_column_that_marks_the_regime_wakes(constant, dtype):
    # Constant in every experience, and another constant in each: the new machine.
    chance = np.random.default_rng(0)
    reg = make(Replay(capacity=None), max_iter=100, learning_rate_init=5e-3)
    data = []
    for k in range(2):
        mark = constant + k * max(1, abs(constant))
        x = np.c_[chance.uniform(-1, 1, size=(100, 1)), np.full(100, mark)].astype(dtype)
        data.append((x, (1 - 2 * k) * x[:, 0]))
        reg.partial_fit(*data[k])
    for x, y in data:
        assert np.abs(reg.predict(x) - y).mean() < 0.15


def test_old_predictions_stay_when_a_category_appears():
    # One-hot columns of an application that runs only later.
    reg = make("naive", max_iter=1, learning_rate_init=1e-12)
    x, y = part(0)
    reg.partial_fit(np.c_[x, np.zeros(60)], y)
    before = reg.predict(np.c_[x, np.zeros(60)])
    reg.partial_fit(np.c_[x, np.arange(60) % 2], y)
    np.testing.assert_allclose(reg.predict(np.c_[x, np.zeros(60)]), before, rtol=1e-6)
    asleep_then = reg.predict(np.c_[x, np.ones(60)], after=0)
    np.testing.assert_array_equal(asleep_then, before)
    assert not np.allclose(reg.predict(np.c_[x, np.ones(60)]), before)


def test_a_constant_target_wakes():
    reg = make("naive", max_iter=100, learning_rate_init=5e-3)
    reg.partial_fit(part(0)[0], np.full(60, 3.0))
    np.testing.assert_allclose(reg.predict(part(0)[0]), 3.0, atol=0.5)
    reg.partial_fit(part(1)[0], 1e6 * part(1)[1])
    assert reg.score(part(1)[0], 1e6 * part(1)[1]) > 0.8


# --- saving --------------------------------------------------------------------------------


STRATEGIES = ["naive", Replay(policy="balanced"), "cumulative", chain(Replay(), KroneckerEWC())]


@pytest.mark.parametrize("strategy", STRATEGIES, ids=repr)
def test_saved_models_go_on_bit_for_bit(strategy):
    reg = make(strategy).partial_fit(*part(0)).partial_fit(*part(1))
    file = io.BytesIO()
    joblib.dump(reg, file)
    file.seek(0)
    saved = skops.io.dumps(reg)
    trusted = skops.io.get_untrusted_types(data=saved)
    assert not [name for name in trusted if name.startswith("torch")]
    twins = [
        pickle.loads(pickle.dumps(reg)),
        copy.deepcopy(reg),
        joblib.load(file),
        skops.io.loads(saved, trusted=trusted),
    ]
    reg.partial_fit(*part(2))
    for twin in twins:
        twin.partial_fit(*part(2))
        for after in range(3):
            np.testing.assert_array_equal(twin.predict(X, after), reg.predict(X, after))


def test_pickles_hold_no_torch():
    dumped = pickle.dumps(make(chain(Replay(), EWC())).fit(X, Y, experience=EXPERIENCE))
    assert b"torch" not in dumped.replace(b"torch generator", b"").replace(b"_torch", b"")


def test_own_module_with_buffers_goes_on():
    reg = ContinualRegressor(Net, module__width=4, max_iter=4, random_state=0)
    reg.partial_fit(*part(0)).partial_fit(*part(1))
    twin = pickle.loads(pickle.dumps(reg))
    np.testing.assert_array_equal(
        twin.partial_fit(*part(2)).predict(X), reg.partial_fit(*part(2)).predict(X)
    )


def test_size_does_not_grow_with_the_stream():
    reg, sizes = make("ewc", max_iter=1), []
    for k in range(120):
        reg.partial_fit(*part(k % 3))
        sizes.append(len(pickle.dumps(reg)))
    assert sizes[119] < 1.5 * sizes[19]


def test_moving_to_another_device_changes_nothing():
    # "cpu:0" is the CPU under another name, so the move can be tested everywhere.
    reg = make(chain(Replay(), EWC())).partial_fit(*part(0)).partial_fit(*part(1))
    twin = copy.deepcopy(reg).set_params(device="cpu:0")
    np.testing.assert_array_equal(
        twin.partial_fit(*part(2)).predict(X), reg.partial_fit(*part(2)).predict(X)
    )
    assert twin.net_.device == "cpu:0"
    np.testing.assert_array_equal(twin.predict(X, after=0), reg.predict(X, after=0))


# --- own modules ---------------------------------------------------------------------------


def test_class_instance_and_function_are_alike():
    torch.manual_seed(0)
    instance = nn.Sequential(nn.Linear(8, 4), nn.GELU(), nn.Linear(4, 1))
    state = copy.deepcopy(instance.state_dict())
    reg = ContinualRegressor(instance, max_iter=3, random_state=0).fit(*part(0))
    for name, tensor in instance.state_dict().items():
        assert torch.equal(tensor, state[name]), "the user's object was written to"
    by_function = ContinualRegressor(
        lambda: copy.deepcopy(instance), max_iter=3, random_state=0
    ).fit(*part(0))
    assert np.isfinite(by_function.predict(X)).all()
    twin = clone(reg)
    assert not hasattr(twin, "net_")
    np.testing.assert_array_equal(twin.fit(*part(0)).predict(X), reg.predict(X))
    lazy = ContinualRegressor(lambda: nn.Sequential(nn.LazyLinear(1)), max_iter=2).fit(*part(0))
    assert lazy.predict(X).shape == (180,)


def test_module_parameters_are_parameters():
    reg = ContinualRegressor(Net, module__width=4, max_iter=2)
    assert clone(reg).set_params(module__width=6).get_params()["module__width"] == 6
    reg.fit(*part(0)).set_params(module__width=5)
    with pytest.raises(ValueError, match="module must stay what it was"):
        reg.partial_fit(*part(1))
    with pytest.raises(ValueError, match=r"widht is not a parameter.*module__name"):
        ContinualRegressor(Net, widht=3).fit(*part(0))


class Swaps(nn.Module):
    def __init__(self, n_features):
        super().__init__()
        self.layer = nn.Linear(n_features, 1)

    def forward(self, X):
        if self.training:
            self.layer.weight = nn.Parameter(self.layer.weight.detach().clone())
        return self.layer(X)


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (lambda: "net", "module must give a torch.nn.Module; got 'net'"),
        (lambda: nn.Identity(), "module must have at least one trainable parameter"),
        (lambda: nn.Linear(8, 2), r"shape \(n_rows, n_outputs\) = \(60, 1\); got \(60, 2\)"),
        (Swaps, "module must keep its parameter objects"),
        (3, "module must be a torch.nn.Module, or a class or function"),
    ],
)
def test_bad_modules_are_named(module, message):
    with pytest.raises(ValueError, match=message):
        ContinualRegressor(module, max_iter=2).fit(*part(0))


def test_layer_factors_need_linear_layers():
    reg = ContinualRegressor(Net, strategy="kfac", max_iter=2)
    with pytest.raises(ValueError, match=r"module must keep all its parameters in torch.nn.Linear"):
        reg.fit(*part(0))


def test_one_dimensional_output_is_no_broadcast():
    class Flat(nn.Module):
        def __init__(self, n_features):
            super().__init__()
            self.layer = nn.Linear(n_features, 1)

        def forward(self, X):
            return self.layer(X).squeeze(1)

    params = {"max_iter": 60, "learning_rate_init": 0.05, "random_state": 0}
    flat = ContinualRegressor(Flat, **params).fit(*part(0))
    assert flat.score(*part(0)) > 0.5


def test_progress_bar_is_silent_by_default(capsys):
    make().fit(*part(0))
    assert capsys.readouterr() == ("", "")
    make(verbose=True).fit(X, Y, experience=EXPERIENCE)
    assert capsys.readouterr().err.count("5/5") >= 3


@pytest.mark.parametrize("params", [{"averaging": 0.5}, {"learning_rate": "cosine"}])
def test_averaging_and_cosine_take_the_noise_out(params, make_linear):
    """The end of stochastic descent on a noisy linear problem, against least squares."""
    chance = np.random.default_rng(0)
    X = chance.normal(size=(400, 5))
    y = X @ np.ones(5) + chance.normal(size=400)
    best = np.linalg.lstsq(X, y)[0]
    settings = {"batch_size": 5, "learning_rate_init": 0.05, "max_iter": 10}

    def distance(**more):
        reg = make_linear("naive", **(settings | more)).fit(X, y)
        return np.linalg.norm(reg.predict(np.eye(5)) - best)

    assert distance(**{"averaging": 0.0} | params) < 0.4 * distance(averaging=0.0)


def test_early_stopping_judges_the_average():
    X, y = part(0)
    params = {"averaging": 0.5, "early_stopping": True, "batch_size": 10, "random_state": 0}
    reg = ContinualMLPRegressor((16,), learning_rate_init=0.03, **params).fit(X, y)
    plain = ContinualMLPRegressor((16,), learning_rate_init=0.03, **params | {"averaging": 0.0})
    assert reg.validation_losses_ != plain.fit(X, y).validation_losses_
    assert np.std(np.diff(reg.validation_losses_[2:])) < np.std(
        np.diff(plain.validation_losses_[2:])
    )
