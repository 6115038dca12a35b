"""Displays: what is drawn is what was measured."""

from __future__ import annotations

import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

from sklearn_cl import ContinualMLPRegressor, continual_validate
from sklearn_cl.datasets import make_drift_stream
from sklearn_cl.inspection import (
    ForgettingDisplay,
    ScoreMatrixDisplay,
    StrategyComparisonDisplay,
)
from sklearn_cl.metrics import final_score, forgetting

mpl.use("Agg")
import matplotlib.pyplot as plt

MAE = "neg_mean_absolute_error"
X, Y, LABELS = make_drift_stream(n_experiences=3, n_samples=60, random_state=0)


def make(strategy="naive"):
    return ContinualMLPRegressor((8,), strategy=strategy, max_iter=5, random_state=0)


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def results():
    return {
        name: continual_validate(make(name), X, Y, experience=LABELS, cv=2, scoring=["r2", MAE])
        for name in ("naive", "replay")
    }


def matrix(n, seed=0):
    return np.random.default_rng(seed).uniform(0.1, 9, size=(n, n))


@pytest.mark.parametrize("n", [2, 12])
@pytest.mark.parametrize("unit", [1, 300, 1e6, 1e-5])
def test_score_matrix(n, unit):
    R, labels = unit * matrix(n), [f"release 1.{k}" for k in range(n)]
    display = ScoreMatrixDisplay(R, labels=labels, score_name="error", greater_is_better=False)
    assert display.plot() is display
    np.testing.assert_array_equal(display.im_.get_array(), R)
    texts = [[text.get_text() for text in row] for row in display.text_]
    np.testing.assert_allclose(
        np.array(texts, dtype=float), R, atol=0.05 * unit if unit in (1e6, 1e-5) else 0.006 * unit
    )
    display.figure_.canvas.draw()
    boxes = [text.get_window_extent() for text in display.text_.ravel()]
    cell = display.ax_.get_window_extent().width / n
    assert max(box.width for box in boxes) < cell
    ticks = display.ax_.get_xticklabels()
    assert [tick.get_text() for tick in ticks] == labels
    assert display.ax_.get_xlabel() == "tested on"
    # An annotation is legible: light on dark and dark on light.
    for (i, j), text in np.ndenumerate(display.text_):
        shade = np.dot(display.im_.cmap(display.im_.norm(R[i, j]))[:3], [0.299, 0.587, 0.114])
        assert text.get_color() == ("white" if shade < 0.5 else "black")


@pytest.mark.parametrize("n", [2, 12])
def test_forgetting(n):
    R = matrix(n)
    display = ForgettingDisplay(R, score_name="error", greater_is_better=False).plot()
    assert len(display.lines_) == n + 1
    for j, line in enumerate(display.lines_[:-1]):
        np.testing.assert_array_equal(line.get_xdata(), range(j, n))
        np.testing.assert_array_equal(line.get_ydata(), R[j:, j])
    expected = [R[i, : i + 1].mean() for i in range(n)]
    np.testing.assert_allclose(display.lines_[-1].get_ydata(), expected)
    assert display.ax_.get_ylabel() == "error (lower is better)"
    assert (
        len(
            {
                line.get_color() if isinstance(line.get_color(), str) else tuple(line.get_color())
                for line in display.lines_
            }
        )
        == n + 1
    )


@pytest.mark.parametrize("cls", [ScoreMatrixDisplay, ForgettingDisplay])
def test_made_from_results_and_from_estimators(cls, results):
    _, ax = plt.subplots()
    display = cls.from_validation(results["naive"], scoring=MAE, ax=ax)
    assert display.ax_ is ax
    np.testing.assert_allclose(display.R, -results["naive"][f"R_{MAE}"].mean(0))
    assert display.score_name == "mean absolute error"
    assert not display.greater_is_better
    assert cls.from_validation(results["naive"], scoring="r2").greater_is_better
    reg = make().fit(X, Y, experience=LABELS)
    display = cls.from_estimator(reg, X, Y, LABELS)
    assert display.R[0, 0] == pytest.approx(np.abs(Y - reg.predict(X, after=0))[LABELS == 0].mean())
    with pytest.raises(ValueError, match=r"scoring must be one of.*'r2'.*got 'mae'"):
        cls.from_validation(results["naive"], scoring="mae")
    with pytest.raises(ValueError, match="R must be a square matrix"):
        cls(np.zeros((2, 3))).plot()
    with pytest.raises(ValueError, match=r"labels must name each of the 2 experiences.*got 1"):
        cls(np.zeros((2, 2)), labels=["a"]).plot()


def test_compared_on_one_scale(results):
    displays = ScoreMatrixDisplay.compare(results, scoring=MAE)
    limits = {display.im_.get_clim() for display in displays}
    every = np.stack([display.R for display in displays])
    assert limits == {(every.min(), every.max())}
    assert [display.ax_.get_title() for display in displays] == ["naive", "replay"]


@pytest.mark.parametrize("against", ["forgetting", "fit_time", "state_bytes"])
def test_strategies_compared(results, against):
    display = StrategyComparisonDisplay.from_validation(results, against=against, scoring=MAE)
    R = np.stack([result[f"R_{MAE}"].mean(0) for result in results.values()])
    np.testing.assert_allclose(display.final, -final_score(R))
    if against == "forgetting":
        np.testing.assert_allclose(display.against, forgetting(R))
    elif against == "state_bytes":
        assert display.against[0] == 0 < display.against[1]
    else:
        expected = [result["fit_time"].sum(1).mean() for result in results.values()]
        np.testing.assert_allclose(display.against, expected)
    points = {one.get_label(): tuple(one.get_offsets()[0]) for one in display.ax_.collections}
    for name, x, y in zip(results, display.against, display.final):
        assert points[name] == (x, y)


def test_what_failed_is_left_out(results):
    failed = {**results["naive"], f"R_{MAE}": np.full((2, 3, 3), np.nan)}
    display = StrategyComparisonDisplay.from_validation({"broken": failed, **results}, scoring=MAE)
    assert display.names == ["naive", "replay"]
    with pytest.raises(ValueError, match=r"did not fail; got \['broken'"):
        StrategyComparisonDisplay.from_validation({"broken": failed}, scoring=MAE)
    ScoreMatrixDisplay(np.full((2, 2), np.nan)).plot()


def test_labels_stay_apart():
    names = [f"experience_number_{k:02d}" for k in range(3)]
    times = np.array(["2020-01-01T00:00:01", "2020-01-01T00:07", "2020-02-01"], "M8[s]")
    for labels in (names, list(times), pd.to_datetime(times), ["_a", "_b", "c"]):
        display = ForgettingDisplay(matrix(3), labels=labels).plot()
        shown = [tick.get_text() for tick in display.ax_.get_xticklabels()]
        assert len(set(shown)) == 3
        assert len(display.ax_.get_legend().get_texts()) == 4


def test_limits_hold_every_curve():
    R = -matrix(3)
    display = ForgettingDisplay(R, greater_is_better=False).plot()
    low, high = display.ax_.get_ylim()
    assert low < R[np.tril_indices(3)].min() < R[np.tril_indices(3)].max() < high
    with pytest.raises(ValueError, match="some of one stream"):
        ScoreMatrixDisplay.compare({k: {"R": matrix(k), "labels": range(k)} for k in (2, 3)})


def test_strategies_are_refused_in_words(results):
    with pytest.raises(ValueError, match="against must be one of"):
        StrategyComparisonDisplay.from_validation(results, against="price", scoring=MAE)
    with pytest.raises(ValueError, match="got 1, 2 and 2"):
        StrategyComparisonDisplay(["a"], [1, 2], [1, 2]).plot()


def test_matplotlib_is_imported_when_something_is_drawn():
    code = "import sys, sklearn_cl.inspection; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
