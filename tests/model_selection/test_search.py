"""ContinualSearchCV against the loop written by hand."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone, is_regressor
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import LinearRegression, SGDRegressor
from sklearn.metrics import mean_absolute_error
from sklearn.preprocessing import StandardScaler

from sklearn_cl import ContinualMLPRegressor, ContinualPipeline
from sklearn_cl.datasets import make_drift_stream
from sklearn_cl.model_selection import ContinualSearchCV, score_matrix
from sklearn_cl.strategies import EWC, Naive, Replay

X, Y, LABELS = make_drift_stream(n_experiences=3, n_samples=100, random_state=0)
PARTS = [(X[k == LABELS], Y[k == LABELS]) for k in range(3)]
GRID = {"strategy": [Naive(), Replay(capacity=100)]}


def make(**params):
    defaults = {"max_iter": 20, "random_state": 0, "learning_rate_init": 0.01}
    return ContinualMLPRegressor((8,), **defaults | params)


def search(estimator=None, grid=GRID, **params):
    return ContinualSearchCV(estimator or make(), grid, **{"random_state": 0} | params)


@pytest.mark.parametrize("stability", [None, 0.0, 0.3, 1.0])
def test_equals_the_loop_by_hand(stability):
    found = search(stability=stability, test_size=0.2)
    chance = np.random.RandomState(0)
    models = [make(strategy=s) for s in GRID["strategy"]]
    held = []
    for X_k, y_k in PARTS:
        order = chance.permutation(100)
        aside, kept = order[:20], np.sort(order[20:])
        held.append((X_k[aside], y_k[aside]))
        for model in models:
            model.partial_fit(X_k[kept], y_k[kept])
        found.partial_fit(X_k, y_k)
        scores = np.array(
            [[-mean_absolute_error(b, m.predict(a)) for a, b in held] for m in models]
        )
        if stability is None or len(held) == 1:
            total = scores.mean(1)
        else:
            total = stability * scores[:, :-1].mean(1) + (1 - stability) * scores[:, -1]
        results = found.cv_results_
        np.testing.assert_allclose(results["mean_test_score"], total)
        np.testing.assert_allclose(results["present_test_score"], scores[:, -1])
        assert found.best_index_ == np.argmax(total)
        assert results["rank_test_score"][found.best_index_] == 1
        assert found.best_score_ == pytest.approx(total.max())
        np.testing.assert_array_equal(found.predict(X), models[found.best_index_].predict(X))
    assert len(found.choices_) == found.n_experiences_ == 3
    assert (found.cv_results_["fit_time"] > 0).all()
    whole = search(stability=stability, test_size=0.2).fit(X, Y, experience=LABELS)
    np.testing.assert_array_equal(whole.predict(X), found.predict(X))
    assert whole.choices_ == found.choices_


def test_the_choice_follows_what_counts():
    """A weight of the past of 1 wants memory; one of 0 does not care."""
    found = {s: search(stability=s).fit(X, Y, experience=LABELS) for s in (0.0, 1.0)}
    assert isinstance(found[1.0].best_params_["strategy"], Replay)
    past = {s: one.cv_results_["past_test_score"][one.best_index_] for s, one in found.items()}
    present = {
        s: one.cv_results_["present_test_score"][one.best_index_] for s, one in found.items()
    }
    assert past[1.0] >= past[0.0]
    assert present[0.0] >= present[1.0]


def test_recent_experiences_count_more():
    results = search(objective="recent").fit(X, Y, experience=LABELS).cv_results_
    parts = np.array([results[f"split{j}_test_score"] for j in range(3)])
    expected = np.average(parts, axis=0, weights=[1, 2, 4])
    np.testing.assert_allclose(results["mean_test_score"], expected)


def test_the_future_is_not_looked_at():
    """The choice after k experiences is the same whatever follows."""
    short = search().fit(X[LABELS < 2], Y[LABELS < 2], experience=LABELS[LABELS < 2])
    long = search().fit(X, -Y * 50 * (LABELS == 2) + Y, experience=LABELS)
    assert long.choices_[:2] == short.choices_


def test_a_bounded_number_of_rows_is_kept_aside():
    found = search(grid={"strategy": ["naive"]}, n_held=25).fit(X, Y, experience=LABELS)
    assert [len(b) for _, b in found._held] == [8, 8, 8]


def test_is_a_regressor():
    model = search()
    assert is_regressor(model)
    assert model.__sklearn_tags__().target_tags.multi_output
    grid = {"strategy": [Naive(), EWC()]}
    before = [repr(s) for s in grid["strategy"]]
    model = clone(search(grid=grid)).fit(X, Y, experience=LABELS)
    assert [repr(s) for s in grid["strategy"]] == before
    assert set(vars(grid["strategy"][1])) == set(EWC().get_params())
    assert model.n_features_in_ == X.shape[1]
    assert model.score(X, Y) == model.best_estimator_.score(X, Y)
    twin = pickle.loads(pickle.dumps(model)).partial_fit(*PARTS[0])
    np.testing.assert_array_equal(twin.predict(X), model.partial_fit(*PARTS[0]).predict(X))
    assert score_matrix(model, X, Y, np.arange(len(Y)) % 4)[0].shape == (4, 4)
    assert model.predict(X, after=0).shape == Y.shape
    with sklearn.config_context(enable_metadata_routing=True):
        assert "experience" in str(model.get_metadata_routing())


def test_serves_pipelines_and_other_estimators():
    pipe = ContinualPipeline([("scale", StandardScaler()), ("reg", make())])
    frame = pd.DataFrame(X).add_prefix("x")
    model = search(pipe, {"reg__strategy": ["naive", "replay"], "scale__with_mean": [True]})
    model.fit(frame, pd.Series(Y), experience=LABELS)
    assert model.feature_names_in_.tolist() == list(frame.columns)
    sgd = search(SGDRegressor(random_state=0), {"alpha": [1e-4, 1e-3]}, scoring="r2")
    assert sgd.fit(X, Y, experience=LABELS).best_score_ < 1
    # One row is learnt, and scored on the past.
    model.partial_fit(frame[:1], pd.Series(Y[:1]))
    assert np.isnan(model.cv_results_["present_test_score"]).all()
    assert np.isfinite(model.best_score_)


def test_candidates_that_fail_are_out():
    grid = [{"alpha": [-1.0]}, {"alpha": [1e-4]}]
    with pytest.warns(FitFailedWarning, match=r"(?s)1 of 2 candidates failed.*alpha must be"):
        model = search(grid=grid).fit(X, Y)
    assert model.best_params_ == {"alpha": 1e-4}
    with pytest.warns(FitFailedWarning):
        model.partial_fit(*PARTS[1])
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match=r"(?s)Every candidate failed.*NaN"):
        model.partial_fit(PARTS[1][0] * np.nan, PARTS[1][1])
    assert pickle.dumps(model) == before


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (search(LinearRegression()), "partial_fit; got LinearRegression.*ContinualPipeline"),
        (search(stability=1.5), "stability must be None or a finite number"),
        (search(objective="newest"), "objective must be one of 'all', 'recent'"),
        (search(test_size=0), "test_size must be"),
        (search(test_size=1.0), "test_size must be"),
        (search(n_held=0), "n_held must be"),
        (search(grid={"beta": [1]}), "beta"),
        (search(grid=[]), "param_grid must have a candidate"),
        (search(scoring="mae"), "mae"),
    ],
)
def test_bad_parameters_are_named(model, message):
    with pytest.raises(ValueError, match=f"(?s){message}"):
        model.fit(X, Y)
    assert not hasattr(model, "best_estimator_")


@pytest.mark.parametrize("stability", [None, 0.0, 0.5, 1.0])
def test_an_experience_without_rows_aside_does_not_count(stability):
    model = search(stability=stability).partial_fit(X[:1], Y[:1]).partial_fit(*PARTS[1])
    known = model.cv_results_["present_test_score"]
    np.testing.assert_allclose(model.cv_results_["mean_test_score"], known)
    assert model.best_index_ == np.argmax(known)
    assert search(test_size=0.6).partial_fit(X[:1], Y[:1]).n_experiences_ == 1


def score_or_nan(estimator, X, y):
    return np.nan if estimator.alpha == 10 else -1.0


def predict_or_fail(estimator, X, y):
    if estimator.alpha == 10:
        raise RuntimeError("cannot score")
    return -1.0


def test_what_has_no_score_is_not_chosen():
    grid = {"alpha": [10.0, 1e-4]}
    assert search(grid=grid, scoring=score_or_nan).fit(X, Y).best_params_ == {"alpha": 1e-4}
    with pytest.warns(FitFailedWarning, match="cannot score"):
        found = search(grid=grid, scoring=predict_or_fail).fit(X, Y)
    assert found.best_params_ == {"alpha": 1e-4}
    assert search(scoring=None).fit(X, Y).best_score_ < 1


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_jobs_do_not_change_the_choice(n_jobs):
    model = search(n_jobs=n_jobs).fit(X, Y, experience=LABELS)
    one = search().fit(X, Y, experience=LABELS)
    np.testing.assert_array_equal(model.predict(X), one.predict(X))
