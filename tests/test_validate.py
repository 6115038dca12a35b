"""The score matrix of our estimators, of scikit-learn's, and of pipelines."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import LinearRegression, SGDRegressor
from sklearn.metrics import mean_absolute_error
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from sklearn_cl import (
    ContinualMLPRegressor,
    ContinualPipeline,
    DriftSplitter,
    ExperienceKFold,
    continual_validate,
)
from sklearn_cl.datasets import make_drift_stream
from sklearn_cl.metrics import forgetting

X, Y, EXPERIENCE = make_drift_stream(3, 60, random_state=0)


def test_incremental_by_hand():
    result = continual_validate(
        SGDRegressor(random_state=0),
        X,
        Y,
        experience=EXPERIENCE,
        scoring="neg_mean_absolute_error",
        random_state=3,
    )
    parts = [
        train_test_split(np.flatnonzero(k == EXPERIENCE), test_size=0.3, random_state=3)
        for k in range(3)
    ]
    model = SGDRegressor(random_state=0)
    for i in range(3):
        rows = np.sort(parts[i][0])
        model.partial_fit(X[rows], Y[rows])
        for j in range(3):
            held = parts[j][1]
            error = mean_absolute_error(Y[held], model.predict(X[held]))
            assert result["R"][i, j] == pytest.approx(-error)
    assert result.labels == [0, 1, 2]
    assert result.fit_time.shape == (3,)
    assert (result.fit_time > 0).all()
    assert result.state_bytes.tolist() == [0, 0, 0]


def test_refits_what_cannot_go_on():
    result = continual_validate(
        LinearRegression(), X, Y, experience=EXPERIENCE, return_estimator=True, random_state=0
    )
    seen = continual_validate(
        LinearRegression(),
        X[EXPERIENCE < 2],
        Y[EXPERIENCE < 2],
        experience=EXPERIENCE[EXPERIENCE < 2],
        random_state=0,
    )
    np.testing.assert_allclose(result["R"][:2, :2], seen["R"])
    assert result["estimator"].score(X, Y) > 0.3


def test_data_frames_and_labels_of_any_kind():
    frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(8)])
    frame["site"] = np.where(X[:, 0] > 0.5, "a", "b")
    names = pd.Categorical.from_codes(EXPERIENCE, ["zeta", "beta", "alpha"], ordered=True)
    encode = make_column_transformer((OneHotEncoder(), ["site"]), remainder=StandardScaler())
    reg = ContinualMLPRegressor((8,), max_iter=3, random_state=0)
    pipe = ContinualPipeline([("encode", encode), ("reg", reg)])
    result = continual_validate(pipe, frame, pd.Series(Y), experience=names, random_state=0)
    assert result.labels == ["zeta", "beta", "alpha"]
    assert np.isfinite(result["R"]).all()
    times = pd.to_datetime(EXPERIENCE, unit="D", origin="2017-03-24")
    assert len(continual_validate(pipe, frame, Y, experience=times, random_state=0).labels) == 3


def test_joint_fits_in_disguise_are_told():
    """A plain pipeline cannot go on, so it would seem to forget nothing."""
    reg = ContinualMLPRegressor((8,), max_iter=3, strategy="replay", random_state=0)
    for plain in (make_pipeline(StandardScaler(), reg), TransformedTargetRegressor(reg)):
        with pytest.warns(UserWarning, match="no partial_fit.*ContinualPipeline"):
            continual_validate(plain, X, Y, experience=EXPERIENCE)
    pipe = ContinualPipeline([("scale", StandardScaler()), ("reg", reg)])
    alone, inside = (
        continual_validate(model, X, Y, experience=EXPERIENCE, random_state=0)
        for model in (reg, pipe)
    )
    assert inside["state_bytes"].tolist() == alone["state_bytes"].tolist()
    assert inside["state_bytes"][-1] > 0


def test_folds_are_those_of_the_splitter():
    folds = ExperienceKFold(3, shuffle=True, random_state=0)
    scoring = {"r2": "r2", "mae": "neg_mean_absolute_error"}
    result = continual_validate(
        SGDRegressor(random_state=0), X, Y, experience=EXPERIENCE, cv=folds, scoring=scoring
    )
    assert result["R_r2"].shape == result["R_mae"].shape == (3, 3, 3)
    assert result["fit_time"].shape == result["score_time"].shape == (3, 3)
    assert forgetting(result["R_mae"]).shape == (3,)
    for k, (train, test) in enumerate(folds.split(X, groups=EXPERIENCE)):
        model = SGDRegressor(random_state=0)
        for i in range(3):
            rows = train[EXPERIENCE[train] == i]
            model.partial_fit(X[rows], Y[rows])
            for j in range(3):
                held = test[EXPERIENCE[test] == j]
                error = mean_absolute_error(Y[held], model.predict(X[held]))
                assert result["R_mae"][k, i, j] == pytest.approx(-error)
                assert result["R_r2"][k, i, j] == pytest.approx(model.score(X[held], Y[held]))
    number = continual_validate(
        SGDRegressor(random_state=0), X, Y, experience=EXPERIENCE, cv=3, scoring="r2", n_jobs=2
    )
    plain = continual_validate(
        SGDRegressor(random_state=0),
        X,
        Y,
        experience=EXPERIENCE,
        cv=ExperienceKFold(3),
        scoring=["r2"],
        return_estimator=True,
    )
    np.testing.assert_allclose(number["R"], plain["R_r2"])
    assert "estimator" not in number
    assert [one.t_ for one in plain["estimator"]] == [121.0] * 3


class Fails(SGDRegressor):
    """Refuses its second experience."""

    def partial_fit(self, X, y):
        if hasattr(self, "t_"):
            raise RuntimeError("no more")
        return super().partial_fit(X, y)


def test_a_failure_is_told_and_scored():
    with pytest.warns(FitFailedWarning, match=r"(?s)2 of 2 folds failed.*number 1.*no more"):
        result = continual_validate(
            Fails(), X, Y, experience=EXPERIENCE, cv=2, error_score=-9.0, scoring="r2"
        )
    assert (result["R"][:, 1:] == -9).all()
    assert (result["R"][:, 0] != -9).all()
    assert np.isnan(result["fit_time"][:, 1:]).all()
    with pytest.warns(FitFailedWarning):
        assert np.isnan(continual_validate(Fails(), X, Y, experience=EXPERIENCE)["R"][1:]).all()
    with pytest.raises(RuntimeError, match="no more"):
        continual_validate(Fails(), X, Y, experience=EXPERIENCE, error_score="raise")
    with pytest.raises(ValueError, match="error_score must be"):
        continual_validate(Fails(), X, Y, experience=EXPERIENCE, error_score="ignore")


def test_folds_without_an_experience_are_refused():
    with pytest.raises(ValueError, match=r"fold 0 has 60 and 0 of experience 0.*|ExperienceKFold"):
        continual_validate(LinearRegression(), X, Y, experience=EXPERIENCE, cv=DriftSplitter())


def test_progress_is_shown_when_asked_for(capsys):
    continual_validate(LinearRegression(), X, Y, experience=EXPERIENCE, cv=2)
    assert capsys.readouterr().err == ""
    continual_validate(LinearRegression(), X, Y, experience=EXPERIENCE, cv=2, verbose=True)
    assert "2/2" in capsys.readouterr().err


def test_our_state_is_counted():
    # 40 rows of 8 inputs and a target in float32, each with a key in float64.
    result = continual_validate(
        ContinualMLPRegressor((8,), max_iter=2), X, Y, experience=EXPERIENCE, test_size=20
    )
    assert result.state_bytes.tolist() == [k * 40 * (9 * 4 + 8) for k in (1, 2, 3)]


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.zeros(180), "at least two experiences; got 1"),
        (np.arange(180) == 0, "experience True must have at least 2 rows"),
        (np.where(EXPERIENCE == 0, np.nan, 1), "experience must label every row"),
        (["a", 1, None] * 60, "experience must label every row"),
        (["a", 1.5] * 90, "experience must"),
        (np.c_[EXPERIENCE, EXPERIENCE], "one label for each of the 180 rows"),
    ],
)
def test_bad_labels(labels, message):
    labels = np.array(labels, dtype=object) if isinstance(labels, list) else labels
    with pytest.raises(ValueError, match=message):
        continual_validate(LinearRegression(), X, Y, experience=labels)


def test_stream_is_what_its_equations_say():
    X, y, experience = make_drift_stream(4, 50, noise=0.0, random_state=1)
    surface = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2
    surface += 10 * X[:, 3] + 5 * X[:, 4]
    np.testing.assert_allclose(y / surface, np.array([1.5, 0.75, 0.75, 1.5])[experience])
    assert np.floor(4 * X[:, -1]).tolist() == experience.tolist()
    low, high = [0.0, 0.2, 0.4, 0.6], [0.4, 0.6, 0.8, 1.0]
    for k in range(4):
        column = X[experience == k, 2]
        assert low[k] <= column.min() < column.max() <= high[k]
    again = make_drift_stream(4, 50, noise=0.0, random_state=1)
    np.testing.assert_array_equal(again[0], X)
    noisy = make_drift_stream(4, 5000, noise=0.5, random_state=2)
    clean = make_drift_stream(4, 5000, noise=0.0, random_state=2)
    assert np.std(noisy[1] - clean[1]) == pytest.approx(0.5, rel=0.02)
    with pytest.raises(ValueError, match="n_features must be an integer at least 6; got 5"):
        make_drift_stream(n_features=5)
