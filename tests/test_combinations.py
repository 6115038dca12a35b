"""Every way in which a user of scikit-learn would put the pieces together, on real data."""

from __future__ import annotations

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    RandomizedSearchCV,
    cross_val_score,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from sklearn_cl import (
    ContinualMLPRegressor,
    ContinualPipeline,
    DriftSplitter,
    ExperienceKFold,
    continual_validate,
    forgetting_scorer,
)
from sklearn_cl.model_selection import ContinualSearchCV, make_continual_scorer, score_matrix
from sklearn_cl.strategies import EWC, Naive, Replay

ROUTING = [pytest.param(True, id="routed"), pytest.param(False, id="not routed")]
GRID = [
    {"strategy": [Naive()]},
    {"strategy": [Replay()], "strategy__capacity": [50, 200]},
    {"strategy": [EWC()], "strategy__strength": [1.0]},
]
SCORING = {"final": make_continual_scorer("final"), "forgetting": forgetting_scorer}


@pytest.fixture(scope="module")
def io(shared_data):
    """Application I/O through two upgrades: a frame with categories, y in MiB/s, and labels."""
    table = pd.read_csv(shared_data / "tokio_cori.csv.gz")
    table = table.sample(frac=1, random_state=0).groupby("experience").head(120).sort_index()
    X = table[["app", "file_mode", "volume_gib", "n_procs"]].copy()
    X[["volume_gib", "n_procs"]] = np.log1p(X[["volume_gib", "n_procs"]])
    return X, table["target"].to_numpy(), table["experience"].to_numpy()


@pytest.fixture(scope="module")
def numbers(io):
    X, y, labels = io
    return pd.get_dummies(X, dtype=float).to_numpy(), np.log(y), labels


def make(strategy="naive"):
    return ContinualMLPRegressor(
        (16,), strategy=strategy, max_iter=8, learning_rate_init=0.01, random_state=0
    )


def encoder():
    return make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), ["app", "file_mode"]),
        remainder=StandardScaler(),
        verbose_feature_names_out=False,
    )


def labelled(routing, labels, step=""):
    """What fit of a search takes so that both the folds and the model know the labels."""
    name = f"{step}__experience" if step and not routing else "experience"
    return {name: labels} if routing else {"groups": labels, name: labels}


def whole(estimator, parameters, labels):
    """Any search learnt the stream with each of its candidates."""
    assert len(estimator.cv_results_["params"]) == parameters
    inner = estimator.best_estimator_
    while not hasattr(inner, "n_experiences_"):
        inner = inner.regressor_ if hasattr(inner, "regressor_") else inner[-1]
    assert inner.n_experiences_ == len(np.unique(labels))
    return inner


@pytest.mark.parametrize("routing", ROUTING)
def test_grid_search_over_strategies(numbers, routing):
    X, y, labels = numbers
    with sklearn.config_context(enable_metadata_routing=routing):
        search = GridSearchCV(
            make(), GRID, cv=ExperienceKFold(3), scoring="neg_mean_absolute_error"
        ).fit(X, y, **labelled(routing, labels))
    whole(search, 4, labels)
    error = -search.cv_results_["mean_test_score"]
    naive, *memory = error[:3]
    assert min(memory) < naive
    search.best_estimator_.partial_fit(X[:20], y[:20])
    assert np.isfinite(search.predict(X)).all()


@pytest.mark.parametrize("routing", ROUTING)
def test_randomized_search(numbers, routing):
    X, y, labels = numbers
    with sklearn.config_context(enable_metadata_routing=routing):
        search = RandomizedSearchCV(
            make(Replay()),
            {"strategy__capacity": range(10, 300), "alpha": [0.0, 1e-4]},
            n_iter=3,
            cv=ExperienceKFold(2),
            scoring="neg_mean_absolute_error",
            random_state=0,
        ).fit(X, y, **labelled(routing, labels))
    whole(search, 3, labels)


@pytest.mark.parametrize("routing", ROUTING)
def test_halving_search_over_epochs(numbers, routing):
    """By epochs: with rows as the resource, it would draw them without regard to experiences."""
    X, y, labels = numbers
    with sklearn.config_context(enable_metadata_routing=routing):
        search = HalvingGridSearchCV(
            make(),
            GRID,
            resource="max_iter",
            min_resources=4,
            max_resources=8,
            factor=2,
            cv=ExperienceKFold(2),
            scoring="neg_mean_absolute_error",
        ).fit(X, y, **labelled(routing, labels))
    whole(search, 4 + 2, labels)
    assert search.n_resources_ == [4, 8]


def test_nested_cross_validation(numbers):
    X, y, labels = numbers
    with sklearn.config_context(enable_metadata_routing=True):
        inner = GridSearchCV(make(), GRID[:2], cv=ExperienceKFold(2), scoring=SCORING["final"])
        found = cross_validate(
            inner,
            X,
            y,
            cv=ExperienceKFold(2),
            scoring=SCORING,
            params={"experience": labels},
            return_estimator=True,
            error_score="raise",
        )
    assert all(np.isfinite(found["test_final"]))
    for search in found["estimator"]:
        whole(search, 3, labels)


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_several_scores_and_workers(numbers, n_jobs, backend):
    X, y, labels = numbers
    with sklearn.config_context(enable_metadata_routing=True), joblib.parallel_config(backend):
        search = GridSearchCV(
            make(), GRID[:2], cv=ExperienceKFold(2), scoring=SCORING, refit="final", n_jobs=n_jobs
        ).fit(X, y, experience=labels)
    whole(search, 3, labels)
    results = search.cv_results_
    assert search.best_index_ == np.argmax(results["mean_test_final"])
    # Naive forgets most, and less forgetting is a greater score.
    assert results["mean_test_forgetting"][0] == min(results["mean_test_forgetting"])
    expected = test_several_scores_and_workers.__dict__.setdefault("seen", {})
    for name in ("mean_test_final", "mean_test_forgetting"):
        np.testing.assert_allclose(results[name], expected.setdefault(name, results[name]))


@pytest.mark.parametrize("routing", ROUTING)
@pytest.mark.parametrize("kind", ["Pipeline", "ContinualPipeline"])
def test_pipeline_on_a_table_with_categories(io, routing, kind):
    X, y, labels = io
    steps = [("encode", encoder()), ("reg", make())]
    pipe = make_pipeline(encoder(), make()) if kind == "Pipeline" else ContinualPipeline(steps)
    step = pipe.steps[-1][0]
    with sklearn.config_context(enable_metadata_routing=routing):
        search = GridSearchCV(
            pipe,
            {f"{step}__strategy": ["naive", Replay(capacity=100)]},
            cv=ExperienceKFold(2),
            scoring=SCORING["final"] if routing else None,
        ).fit(X, np.log(y), **labelled(routing, labels, step))
        whole(search, 2, labels)
        assert "ContinualMLPRegressor" in search._repr_html_()
        assert score_matrix(search, X, np.log(y), labels)[0].shape == (3, 3)
    best = clone(search.best_estimator_).set_output(transform="pandas")
    best.fit(X, np.log(y))
    frame = best[:-1].transform(X)
    assert "volume_gib" in frame.columns
    assert best[-1].feature_names_in_.tolist() == list(frame.columns)


@pytest.mark.parametrize("routing", ROUTING)
def test_transformed_target(io, routing):
    X, y, labels = io
    pipe = ContinualPipeline([("encode", encoder()), ("reg", make("replay"))])
    model = TransformedTargetRegressor(pipe, func=np.log1p, inverse_func=np.expm1)
    with sklearn.config_context(enable_metadata_routing=routing):
        search = GridSearchCV(
            model,
            {"regressor__reg__alpha": [1e-4, 1e-2]},
            cv=ExperienceKFold(2),
            scoring=SCORING["final"] if routing else "neg_mean_absolute_error",
        )
        # This one passes all that it does not know on to the fit of its regressor.
        extra = {"experience": labels} if routing else {"groups": labels, "experience": labels}
        search.fit(X, y, **extra)
        whole(search, 2, labels)
        then = search.best_estimator_.predict(X, after=0)
    assert (then > -1).all()
    assert (then != search.predict(X)).any()


@pytest.mark.parametrize("routing", ROUTING)
def test_cross_validate_the_next_experience(numbers, routing):
    X, y, labels = numbers
    with sklearn.config_context(enable_metadata_routing=routing):
        extra = {"params": {"experience": labels}}
        if not routing:
            extra["groups"] = labels
        found = cross_validate(
            make("replay"), X, y, cv=DriftSplitter(), return_estimator=True, **extra
        )
    assert [one.n_experiences_ for one in found["estimator"]] == [1, 2]
    rows = labels < 2
    ours = make("replay").fit(X[rows], y[rows], experience=labels[rows])
    assert found["test_score"][1] == pytest.approx(ours.score(X[~rows], y[~rows]))
    plain = cross_val_score(make("replay"), X, y, cv=DriftSplitter(n_experiences=4))
    assert plain.shape == (3,)


def test_continual_search_in_a_pipeline_of_the_user(io):
    X, y, labels = io
    model = ContinualSearchCV(
        ContinualPipeline([("encode", encoder()), ("reg", make())]),
        {"reg__strategy": [Naive(), Replay(capacity=100)]},
        random_state=0,
    )
    with sklearn.config_context(enable_metadata_routing=True):
        found = cross_validate(
            model,
            X,
            np.log(y),
            cv=ExperienceKFold(2),
            scoring=SCORING,
            params={"experience": labels},
            error_score="raise",
            return_estimator=True,
        )
    assert all(one.n_experiences_ == 3 for one in found["estimator"])


@pytest.mark.slow
def test_a_cluster_validates(numbers):
    """Two worker processes of dask, by joblib's backend."""
    distributed = pytest.importorskip("distributed")
    X, y, labels = numbers
    here = continual_validate(make(), X, y, experience=labels, cv=4)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster),
        joblib.parallel_config("dask"),
    ):
        there = continual_validate(make(), X, y, experience=labels, cv=4, n_jobs=2)
    np.testing.assert_allclose(there["R"], here["R"])
