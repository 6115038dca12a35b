"""ContinualPipeline against the loop written by hand, and against scikit-learn's Pipeline."""

from __future__ import annotations

import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.linear_model import SGDRegressor
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler

from sklearn_cl import ContinualMLPRegressor, ContinualPipeline, ExperienceKFold
from sklearn_cl.datasets import make_drift_stream

X, Y, LABELS = make_drift_stream(n_experiences=3, n_samples=50, random_state=0)
PARTS = [(X[k == LABELS] * (k + 1), Y[k == LABELS]) for k in range(3)]


def make(**params):
    return ContinualMLPRegressor((8,), **{"max_iter": 5, "random_state": 0} | params)


def pipeline(last=None, **params):
    return ContinualPipeline([("scale", StandardScaler()), ("reg", last or make())], **params)


@pytest.mark.parametrize("transformers", ["first", "partial_fit"])
@pytest.mark.parametrize("last", [make(), SGDRegressor(random_state=0)], ids=["ours", "sgd"])
def test_equals_the_loop_by_hand(transformers, last):
    pipe = pipeline(clone(last), transformers=transformers)
    scaler, reg, expected = StandardScaler(), clone(last), []
    for k, part in enumerate(PARTS):
        assert pipe.partial_fit(*part) is pipe
        if k == 0 or transformers == "partial_fit":
            scaler.partial_fit(part[0])
        reg.partial_fit(scaler.transform(part[0]), part[1])
        expected.append(reg.predict(scaler.transform(X)))
        np.testing.assert_allclose(pipe.predict(X), expected[-1])
    if isinstance(last, ContinualMLPRegressor):
        for k in range(-3, 3):
            np.testing.assert_allclose(pipe.predict(X, after=k), expected[k])
    whole = pipeline(clone(last), transformers=transformers)
    whole.fit(*map(np.concatenate, zip(*PARTS)), experience=np.repeat(range(3), 50))
    np.testing.assert_allclose(whole.predict(X), expected[-1])
    twin = pickle.loads(pickle.dumps(pipe))
    np.testing.assert_array_equal(twin.predict(X), pipe.predict(X))


def test_the_future_does_not_reach_the_past():
    pipe = pipeline().fit(*map(np.concatenate, zip(*PARTS)), experience=np.repeat(range(3), 50))
    np.testing.assert_allclose(pipe["scale"].mean_, PARTS[0][0].mean(0))
    plain = Pipeline(pipe.steps).fit(X, Y)
    assert isinstance(plain["reg"], ContinualMLPRegressor)
    with pytest.raises(AttributeError):
        plain.partial_fit  # noqa: B018


def test_is_a_pipeline_in_everything_else(tmp_path):
    pipe = pipeline(memory=joblib.Memory(tmp_path, verbose=0))
    assert isinstance(pipe, Pipeline)
    plain = Pipeline([("scale", StandardScaler()), ("reg", make())])
    np.testing.assert_array_equal(pipe.fit(X, Y).predict(X), plain.fit(X, Y).predict(X))
    assert pipe.score(X, Y) == plain.score(X, Y)
    assert list(pipe.named_steps) == ["scale", "reg"]
    assert isinstance(pipe[:-1], ContinualPipeline)
    np.testing.assert_array_equal(pipe[:-1].transform(X), plain[:-1].transform(X))
    assert pipe[-1] is pipe["reg"]
    assert pipe.set_params(reg__alpha=0.5)["reg"].alpha == 0.5
    assert "ContinualPipeline" in pipe._repr_html_()
    assert not hasattr(pipe[:-1], "predict")
    # Cached: what the scaler learns of the same rows is read from the disk.
    twin = pipeline(memory=joblib.Memory(tmp_path, verbose=0)).partial_fit(X, Y)
    np.testing.assert_array_equal(twin["scale"].mean_, pipe["scale"].mean_)
    assert list(tmp_path.rglob("*.pkl"))
    # And goes on after a plain fit.
    pipe.set_params(reg__alpha=1e-4).fit(*PARTS[0]).partial_fit(*PARTS[1])
    loop = pipeline().partial_fit(*PARTS[0]).partial_fit(*PARTS[1])
    np.testing.assert_allclose(pipe.predict(X), loop.predict(X))
    np.testing.assert_allclose(pipe.predict(X, after=0), loop.predict(X, after=0))
    only = ContinualPipeline([("reg", make())]).partial_fit(*PARTS[0])
    np.testing.assert_array_equal(only.predict(X), make().partial_fit(*PARTS[0]).predict(X))


def test_fitted_steps_and_steps_that_learnt_by_themselves():
    pipe = pipeline().partial_fit(*PARTS[0])
    by_hand = pickle.loads(pickle.dumps(pipe))
    by_hand[-1].partial_fit(by_hand[:-1].transform(PARTS[1][0]), PARTS[1][1])
    pipe.partial_fit(*PARTS[1])
    for k in (0, 1, -1):
        np.testing.assert_array_equal(by_hand.predict(X, after=k), pipe.predict(X, after=k))
    joined = ContinualPipeline(by_hand.steps)
    np.testing.assert_array_equal(joined.predict(X, after=0), pipe.predict(X, after=0))
    joined.partial_fit(*PARTS[2])
    pipe.partial_fit(*PARTS[2])
    for k in range(3):
        np.testing.assert_array_equal(joined.predict(X, after=k), pipe.predict(X, after=k))
    np.testing.assert_array_equal(pipe[:].predict(X), pipe.predict(X))


def test_a_refused_fit_leaves_the_past_alone():
    pipe = pipeline().fit(*PARTS[0])
    before = pipe.predict(X), pipe.predict(X, after=0)
    bad = PARTS[1][1].copy()
    bad[0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        pipe.fit(PARTS[1][0], bad)
    np.testing.assert_array_equal(pipe.predict(X), before[0])
    np.testing.assert_array_equal(pipe.predict(X, after=0), before[1])


def test_passthrough_and_output_as_data_frames():
    pipe = ContinualPipeline(
        [("nothing", "passthrough"), ("scale", MinMaxScaler()), ("pca", PCA(2)), ("reg", make())],
        transformers="partial_fit",
    ).set_output(transform="pandas")
    for part in PARTS:
        pipe.partial_fit(*part)
    frame = pipe[:-1].transform(X)
    assert list(frame.columns) == ["pca0", "pca1"]
    assert pipe.predict(X, after=1).shape == (150,)
    assert pipe["scale"].n_samples_seen_ == 150
    assert pipe["pca"].n_samples_ == 50


def test_snapshots_are_kept_as_long_as_those_of_the_last_step():
    pipe = pipeline(make(max_snapshots=2), transformers="partial_fit")
    for part in PARTS:
        pipe.partial_fit(*part)
    assert pipe.predict(X, after=1).shape == (150,)
    with pytest.raises(ValueError, match=r"last 2 of 3 experiences.*got 0"):
        pipe.predict(X, after=0)
    with pytest.raises(ValueError, match="after must be an integer"):
        pipe.predict(X, after=3)


def frame(k, city):
    return pd.DataFrame({"x": X[k == LABELS, 0], "city": [city, "b"] * 25})


def test_a_refused_experience_changes_nothing():
    encode = ColumnTransformer(
        [("one", OneHotEncoder(sparse_output=False), ["city"])], remainder="passthrough"
    )
    pipe = ContinualPipeline(
        [("encode", encode), ("scale", StandardScaler()), ("reg", make())],
        transformers="partial_fit",
    )
    pipe.partial_fit(frame(0, "a"), PARTS[0][1])
    before = pickle.dumps(pipe)
    wrong = [
        (frame(1, "c"), "unknown categories"),
        (frame(1, "a").drop(columns="city"), "columns are missing"),
    ]
    for table, message in wrong:
        with pytest.raises(ValueError, match=message):
            pipe.partial_fit(table, PARTS[1][1])
    bad = PARTS[1][1].copy()
    bad[3] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        pipe.partial_fit(frame(1, "a"), bad)
    assert pickle.dumps(pipe) == before
    # A column transformer finds its columns by name, as it does in scikit-learn.
    reordered = frame(1, "a")[["city", "x"]]
    extended = frame(1, "a").assign(more=1.0)
    expected = clone(pipe).partial_fit(frame(0, "a"), PARTS[0][1])
    expected.partial_fit(frame(1, "a"), PARTS[1][1])
    for table in (reordered, extended):
        twin = pickle.loads(before).partial_fit(table, PARTS[1][1])
        np.testing.assert_allclose(twin.predict(frame(2, "a")), expected.predict(frame(2, "a")))


def test_parameters_of_the_last_step():
    weight = np.random.default_rng(0).uniform(size=50)
    bare = pipeline().partial_fit(*PARTS[0], sample_weight=weight)
    named = pipeline().partial_fit(*PARTS[0], reg__sample_weight=weight)
    np.testing.assert_array_equal(bare.predict(X), named.predict(X))
    assert (bare.predict(X) != pipeline().partial_fit(*PARTS[0]).predict(X)).any()
    both = [np.concatenate([a, b]) for a, b in zip(PARTS[0], PARTS[1])]
    whole = pipeline().fit(
        *both, experience=np.repeat([0, 1], 50), sample_weight=np.tile(weight, 2)
    )
    loop = bare.partial_fit(*PARTS[1], sample_weight=weight)
    np.testing.assert_array_equal(whole.predict(X), loop.predict(X))
    with pytest.raises(ValueError, match="transformers must be one of 'first', 'partial_fit'"):
        pipeline(transformers="all").partial_fit(*PARTS[0])


@pytest.mark.parametrize("routing", [False, True])
def test_in_a_search(routing):
    with sklearn.config_context(enable_metadata_routing=routing):
        search = GridSearchCV(
            pipeline(), {"reg__strategy": ["naive", "replay"]}, cv=ExperienceKFold(3)
        )
        extra = {"experience": LABELS} if routing else {"groups": LABELS, "reg__experience": LABELS}
        search.fit(X, Y, **extra)
    assert search.best_estimator_["reg"].n_experiences_ == 3
    np.testing.assert_allclose(
        search.best_estimator_["scale"].mean_, X[LABELS == 0].mean(0), atol=1e-12
    )
