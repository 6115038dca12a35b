"""Scorers of the whole stream, against the score matrix made by hand."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import BaggingRegressor
from sklearn.linear_model import LinearRegression
from sklearn.metrics import mean_absolute_error
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_cl import ContinualMLPRegressor, ExperienceKFold, forgetting_scorer, metrics
from sklearn_cl.datasets import make_drift_stream
from sklearn_cl.model_selection import continual_report, make_continual_scorer, score_matrix

X, Y, LABELS = make_drift_stream(n_experiences=3, n_samples=60, random_state=0)


def make(**params):
    defaults = {"strategy": "naive", "max_iter": 30, "random_state": 0, "learning_rate_init": 0.02}
    return ContinualMLPRegressor((8,), **defaults | params)


@pytest.fixture(scope="module")
def fitted():
    return make().fit(X, Y, experience=LABELS)


@pytest.fixture(scope="module")
def by_hand(fitted):
    rows = [k == LABELS for k in range(3)]
    return np.array(
        [
            [-mean_absolute_error(Y[r], fitted.predict(X[r], after=i)) for r in rows]
            for i in range(3)
        ]
    )


def test_score_matrix_is_that_made_by_hand(fitted, by_hand):
    R, labels = score_matrix(fitted, X, Y, LABELS)
    np.testing.assert_allclose(R, by_hand)
    assert labels == [0, 1, 2]


def test_numbers_are_those_of_the_metrics(fitted, by_hand):
    expected = {
        "final": metrics.final_score(by_hand),
        "forgetting": -metrics.forgetting(by_hand),
        "backward_transfer": metrics.backward_transfer(by_hand),
        "learning": metrics.learning_score(by_hand),
        "anytime": metrics.anytime_score(by_hand),
    }
    for name, value in expected.items():
        scorer = pickle.loads(pickle.dumps(make_continual_scorer(name)))
        assert scorer(fitted, X, Y, experience=LABELS) == pytest.approx(value)
    assert forgetting_scorer(fitted, X, Y, LABELS) == pytest.approx(expected["forgetting"])
    assert expected["forgetting"] < 0
    assert repr(forgetting_scorer) == (
        "make_continual_scorer('forgetting', 'neg_mean_absolute_error')"
    )


def test_report_has_every_number_at_once(fitted, by_hand):
    table = pd.DataFrame(continual_report(fitted, X, Y, LABELS)).set_index("experience")
    np.testing.assert_allclose(table["final"][:3], by_hand[-1])
    np.testing.assert_allclose(table["learning"][:3], by_hand.diagonal())
    mean = table.loc["mean"]
    assert mean["final"] == pytest.approx(metrics.final_score(by_hand))
    assert mean["forgetting"] == pytest.approx(metrics.forgetting(by_hand))
    assert mean["transfer"] == pytest.approx(metrics.backward_transfer(by_hand))
    assert table.loc[2, ["forgetting", "transfer"]].isna().all()


def test_labels_are_read_from_the_table(fitted, by_hand):
    names = [f"x{k}" for k in range(X.shape[1])]
    frame = pd.DataFrame(X, columns=names, index=pd.Index(LABELS, name="experience"))
    reg = make().fit(frame, Y, experience=LABELS)
    expected = -metrics.forgetting(by_hand)
    assert forgetting_scorer(reg, frame, Y) == pytest.approx(expected)
    other = make_continual_scorer("forgetting", experience="release")
    assert other(reg, frame.rename_axis("release"), Y) == pytest.approx(expected)
    inside = frame.assign(release=LABELS.astype(float))
    reg = make().fit(inside, Y, experience=LABELS)
    assert other(reg, inside, Y) == pytest.approx(forgetting_scorer(reg, inside, Y, LABELS))
    with pytest.raises(ValueError, match=r"(?s)set_config\(enable_metadata_routing=True\).*fit\("):
        forgetting_scorer(fitted, X, Y)


@pytest.mark.parametrize("routing", [False, True])
def test_inside_pipelines_targets_and_searches(routing, by_hand):
    with sklearn.config_context(enable_metadata_routing=routing):
        pipe = make_pipeline(StandardScaler(with_mean=False, with_std=False), make())
        if routing:
            pipe.fit(X, Y, experience=LABELS)
        else:
            pipe.fit(X, Y, continualmlpregressor__experience=LABELS)
        target = TransformedTargetRegressor(make()).fit(X, Y, experience=LABELS)
        both = TransformedTargetRegressor(
            make_pipeline(StandardScaler(with_mean=False, with_std=False), make())
        )
        if routing:
            both.fit(X, Y, experience=LABELS)
        else:
            both.fit(X, Y, continualmlpregressor__experience=LABELS)
        search = GridSearchCV(make(), {"alpha": [1e-4]}, cv=ExperienceKFold(3))
        if routing:
            search.fit(X, Y, experience=LABELS)
        else:
            search.fit(X, Y, groups=LABELS, experience=LABELS)
        for model in (pipe, target, both, search, search.best_estimator_):
            R, _ = score_matrix(model, X, Y, LABELS)
            np.testing.assert_allclose(R, by_hand)
            scored = forgetting_scorer(model, X, Y, experience=LABELS)
            assert scored == pytest.approx(-metrics.forgetting(by_hand))


@pytest.mark.skipif(
    tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 8),
    reason="bagging passes no parameters to predict before scikit-learn 1.8",
)
def test_bagging_passes_it_on():
    with sklearn.config_context(enable_metadata_routing=True):
        bag = BaggingRegressor(make(), n_estimators=2, bootstrap=False, random_state=0)
        bag.fit(X, Y, experience=LABELS)
        R, _ = score_matrix(bag, X, Y, LABELS)
        for i in range(3):
            each = [one.predict(X, after=i) for one in bag.estimators_]
            error = mean_absolute_error(Y[LABELS == 0], np.mean(each, 0)[LABELS == 0])
            assert R[i, 0] == pytest.approx(-error)


def test_multi_metric_with_ordinary_scorers():
    scoring = {
        "final": make_continual_scorer("final"),
        "forgetting": forgetting_scorer,
        "mae": "neg_mean_absolute_error",
    }
    with sklearn.config_context(enable_metadata_routing=True):
        found = cross_validate(
            make(),
            X,
            Y,
            cv=ExperienceKFold(3),
            scoring=scoring,
            params={"experience": LABELS},
            error_score="raise",
        )
    assert (found["test_forgetting"] < 0).all()
    # Folds of one size in each experience, so both are means over the same rows.
    np.testing.assert_allclose(found["test_final"], found["test_mae"])


@pytest.mark.parametrize(
    ("model", "rows", "message"),
    [
        (make().fit(X, Y), slice(None), "at least two experiences; got one"),
        (LinearRegression().fit(X, Y), slice(None), r"predict\(X, after=i\).*continual_validate"),
        (make().fit(X, Y, experience=LABELS), LABELS < 2, "each of the 3 experiences.*got 2"),
        (
            MultiOutputRegressor(make()).fit(X, np.c_[Y, Y]),
            slice(None),
            r"predict\(X, after=i\).*MultiOutputRegressor",
        ),
        (make(), slice(None), "not fitted"),
        (
            make(max_snapshots=2).fit(X, Y, experience=LABELS),
            slice(None),
            "Raise max_snapshots",
        ),
    ],
)
def test_what_cannot_be_scored_says_why(model, rows, message):
    with pytest.raises(ValueError, match=f"(?s){message}"):
        forgetting_scorer(model, X[rows], Y[rows], LABELS[rows])


def test_unknown_metrics_and_scores_are_refused():
    with pytest.raises(ValueError, match="metric must be one of 'final'"):
        make_continual_scorer("plasticity")
    with pytest.raises(ValueError, match="mae"):
        make_continual_scorer("final", "mae")
