"""Detection: exact cuts, known changes, nothing where nothing changed."""

from __future__ import annotations

import itertools

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression

from sklearn_cl import ContinualMLPRegressor, ContinualPipeline, DriftSplitter
from sklearn_cl.datasets import make_drift_stream
from sklearn_cl.drift import ExperienceDetector, detect_experiences
from sklearn_cl.drift._detect import _block_means, _clocks, _long_run_noise, _replaced
from sklearn_cl.drift._segments import changes, cumulative, gains, segment_cost
from sklearn_cl.model_selection import experience_labels

mpl.use("Agg")


def cost_of(values, cuts, penalty):
    edges = [0, *cuts, len(values)]
    parts = [values[a:b] for a, b in itertools.pairwise(edges)]
    return sum(((p - p.mean(0)) ** 2).sum() for p in parts) + penalty * len(cuts)


@pytest.mark.parametrize("penalty", [0.3, 2.0, 20.0])
@pytest.mark.parametrize("least", [1, 3])
def test_cuts_are_the_best_of_all(penalty, least):
    for seed in range(4):
        chance = np.random.default_rng(seed)
        values = chance.normal(size=(11, 2)) + 2 * (np.arange(11) > 5)[:, None]
        found = changes(values, penalty, least)
        every = [
            cuts
            for k in range(4)
            for cuts in itertools.combinations(range(1, 11), k)
            if min(np.diff([0, *cuts, 11])) >= least
        ]
        best = min(cost_of(values, cuts, penalty) for cuts in every)
        if len(found) <= 3:
            assert cost_of(values, found, penalty) == pytest.approx(best)
        else:
            assert cost_of(values, found, penalty) < best
        for k, gain in enumerate(gains(values, found)):
            without = cost_of(values, found[:k] + found[k + 1 :], 0)
            assert gain == pytest.approx(without - cost_of(values, found, 0))


@pytest.mark.parametrize("n", [40, 150])
@pytest.mark.parametrize("k", [1, 5])
def test_cuts_are_those_of_ruptures(n, k):
    ruptures = pytest.importorskip("ruptures")
    for seed in range(5):
        chance = np.random.default_rng(seed)
        places = chance.choice(n, size=3, replace=False)
        shift = chance.normal(size=(4, k)) * 2
        values = shift[np.searchsorted(np.sort(places), np.arange(n))]
        values = values + chance.normal(size=(n, k))
        for penalty in (3.0, 6.0, 15.0):
            *theirs, _ = ruptures.KernelCPD("linear", min_size=2).fit(values).predict(pen=penalty)
            ours = changes(values, penalty, 2)
            # With many short segments its pruning misses the best cuts by a little.
            assert ours == theirs or (
                penalty == 3.0 and cost_of(values, ours, penalty) < cost_of(values, theirs, penalty)
            )


def test_cost_of_segments():
    values = np.random.default_rng(0).normal(size=(20, 3)) + 1e6
    sums, squares = cumulative(values)
    found = segment_cost(sums, squares, np.array([0, 4]), np.array([4, 20]))
    expected = [values[:4].var(0).sum() * 4, values[4:].var(0).sum() * 16]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_noise_is_that_of_a_stream_with_memory():
    chance = np.random.default_rng(0)
    rows = chance.normal(size=(40_000, 2))
    for t in range(1, len(rows)):
        rows[t, 1] = 0.9 * rows[t - 1, 1] + np.sqrt(1 - 0.81) * rows[t, 1]
    blocks = _block_means(rows, 10)
    noise = _long_run_noise(blocks)
    # The variance of a mean of n values is (1 + 0.9) / (1 - 0.9) / n in the limit.
    assert noise[0] == pytest.approx(np.sqrt(1 / 10), rel=0.15)
    assert noise[1] == pytest.approx(np.sqrt(19 / 10), rel=0.2)
    # One change does not make it larger.
    blocks[2000:] += 50
    np.testing.assert_allclose(_long_run_noise(blocks), noise, rtol=0.02)


def test_blocks_have_all_rows():
    rows = np.arange(11.0)[:, None]
    assert _block_means(rows, 3)[:, 0].tolist() == [1, 4, 8]


def test_a_cut_is_moved_to_the_row():
    rows = np.r_[np.zeros(37), np.ones(43)][:, None] + 0.01
    for near in (30, 36, 37, 40, 44):
        assert _replaced(rows, np.zeros(1), np.ones(1), near, 10) == 37


@pytest.fixture(scope="module")
def stream():
    chance = np.random.default_rng(0)
    X = pd.DataFrame(chance.normal(size=(3000, 4)), columns=list("abcd"))
    X["kind"] = chance.choice(["x", "y"], size=3000)
    y = X["a"] + 2 * X["b"] + (X["kind"] == "x") + 0.3 * chance.standard_t(3, size=3000)
    return X, y.to_numpy(copy=True)


CHANGES = {
    "level": lambda X, y: y + 1.5,
    "spread": lambda X, y: y + 3 * np.random.default_rng(1).normal(size=len(y)),
    "effect of b": lambda X, y: y - 4 * X["b"],
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_is_found_and_named(stream, what):
    X, y = stream
    y = y.copy()
    y[1230:] = CHANGES[what](X[1230:], y[1230:])
    labels, report = detect_experiences(X, y, return_report=True)
    (boundary,) = report.boundaries
    assert abs(boundary - 1230) <= 60
    assert report.moved[0][0] == what
    assert report.evidence[0] > 1
    np.testing.assert_array_equal(labels, np.arange(3000) >= boundary)
    # The unit and the shape of the target do not matter.
    again = detect_experiences(X, np.exp(y / y.std()) * 1e9)
    assert abs(int((again == 0).sum()) - 1230) <= 60


def test_nothing_is_found_where_nothing_changes(stream):
    X, y = stream
    assert detect_experiences(X, y).max() == 0
    # Inputs that move, and one that tells the time, are no change of the system.
    moved = X.assign(a=X["a"] + 2 * (np.arange(3000) > 1000), clock=np.arange(3000.0))
    shifted = y + 2 * (np.arange(3000) > 1000)
    assert detect_experiences(moved, shifted).max() == 0
    labels = detect_experiences(moved, signal="data", max_experiences=2)
    assert abs(int((labels == 0).sum()) - 1001) < 600
    only = detect_experiences(X.assign(a=moved["a"])[list("abcd")], signal="data")
    assert abs(int((only == 0).sum()) - 1001) <= 60


@pytest.mark.parametrize("n", [2000, 20_000])
def test_a_clock_among_the_inputs_makes_no_ramp(n):
    chance = np.random.default_rng(0)
    X = chance.normal(size=(n, 3))
    y = X @ [1, 1, 0.5] + 0.1 * chance.normal(size=n)
    step = 4.0 * (np.arange(n) >= n // 2)
    for clock in (np.arange(n), pd.date_range("2024", periods=n, freq="h")):
        table = pd.DataFrame(X).assign(clock=clock)
        _, report = detect_experiences(table, y + step, return_report=True)
        assert len(report.boundaries) == 1
        assert abs(report.boundaries[0] - n // 2) <= 5
    assert detect_experiences(table, y).max() == 0
    # Two targets that move against each other.
    labels = detect_experiences(X, np.column_stack([y + step, y - step]))
    assert abs(int((labels == 0).sum()) - n // 2) <= 5


@pytest.mark.parametrize(("cycles", "size"), [(1.4, 1), (3, 1), (4.5, 2), (6, 3)])
def test_a_load_that_comes_and_goes_is_no_change(stream, cycles, size):
    X, y = stream
    load = size * np.sin(2 * np.pi * cycles * np.arange(3000) / 3000)
    # The effect of the first input is 1.
    X, y = X.assign(a=X["a"] + load), y + load
    assert detect_experiences(X, y).max() == 0
    labels = detect_experiences(X, y + 2 * (np.arange(3000) >= 1230))
    assert labels.max() == 1 and abs(int((labels == 0).sum()) - 1230) <= 60


def test_what_a_model_of_both_sides_explains_is_no_change():
    chance = np.random.default_rng(0)
    X = chance.normal(size=(6000, 4))
    X[:, 0] += np.sin(2 * np.pi * 2.5 * np.arange(6000) / 6000)
    slow = np.where((np.arange(6000) < 2000) | (np.arange(6000) >= 4500), 1.0, 1.5)
    # In each regime the error of a model of the average system follows the load.
    y = slow * (3 + X[:, 0] + X[:, 1] + 0.2 * chance.normal(size=6000))
    _, report = detect_experiences(X, y, return_report=True)
    assert np.abs(np.array(report.boundaries) - [2000, 4500]).max() <= 60
    # A model of the user is not asked again.
    expects = HistGradientBoostingRegressor(max_iter=60, max_leaf_nodes=15, random_state=0)
    _, report = detect_experiences(X, y, estimator=expects, return_report=True)
    assert len(report.boundaries) > 2


def test_clocks():
    time = np.arange(2000) / 2000
    jitter = 0.1 * np.random.default_rng(0).normal(size=2000)
    waves = [np.sin(2 * np.pi * cycles * time) + jitter for cycles in (1.5, 2.5, 5)]
    steps = [(time > 0.6) + jitter, ((time > 0.3) & (time < 0.7)) + jitter, np.floor(3 * time) % 2]
    clocks = [time, time**2 + jitter, *steps]
    assert _clocks(np.column_stack([*waves, *clocks])).tolist() == [False] * 3 + [True] * 5


def test_groups_that_move_against_each_other_are_seen():
    chance = np.random.default_rng(0)
    kind = chance.choice(["a", "b", "c", "d"], size=3000)
    table = pd.DataFrame({"x": chance.normal(size=3000), "kind": kind})
    sign = pd.Series({"a": 1.0, "b": -1.0, "c": -1.0, "d": 1.0})[kind].to_numpy()
    y = table["x"].to_numpy() + sign * (np.arange(3000) >= 1700) + 0.5 * chance.normal(size=3000)
    labels = detect_experiences(table, y)
    assert abs(int((labels == 0).sum()) - 1700) <= 60


def test_tables_of_every_kind(stream):
    X, y = stream
    y = y + 3.0 * (np.arange(3000) >= 1800)
    spotty = X.copy()
    spotty.loc[3:90:7, "a"] = np.nan
    spotty.loc[5, "kind"] = None
    spans = X.assign(span=pd.to_timedelta(np.arange(3000), unit="s"))
    twice = X.set_axis(["a", "a", "c", "d", "kind"], axis=1)
    for table in (spotty, spans, twice, X.to_numpy(dtype=object)):
        labels = detect_experiences(table, y)
        assert abs(int((labels == 0).sum()) - 1800) <= 60
    numbers = X[list("abcd")].to_numpy()
    np.testing.assert_array_equal(
        detect_experiences(csr_array(numbers), y), detect_experiences(numbers, y)
    )
    with pytest.raises(ValueError, match="detector must have fit_predict; got object"):
        detect_experiences(X, y, detector=object())


def test_limits_are_kept(stream):
    X, y = stream
    drifting = y + np.repeat([0, 2, 4, 1.5, 0, 3], 500)
    assert detect_experiences(X, drifting).max() == 5
    assert detect_experiences(X, drifting, max_experiences=3).max() == 2
    assert detect_experiences(X, drifting, penalty=1e9).max() == 0
    sizes = np.bincount(detect_experiences(X, drifting, min_experience_size=700))
    assert sizes.min() >= 700


def test_a_detector_and_a_model_of_the_user(stream):
    X, y = stream
    y = y + 2 * (np.arange(3000) >= 1800)
    numbers = X[list("abcd")]

    class Halves:
        def fit_predict(self, signals):
            assert signals.shape[0] in (428, 429)
            return np.arange(len(signals)) * 3000 // len(signals) >= 1800

    labels = detect_experiences(numbers, y, detector=Halves(), estimator=LinearRegression())
    assert abs(int((labels == 0).sum()) - 1800) <= 15
    ruptures = pytest.importorskip("ruptures")
    theirs = detect_experiences(X, y, detector=ruptures.KernelCPD("linear", min_size=9))
    np.testing.assert_array_equal(theirs, detect_experiences(X, y))


def test_as_an_object_where_boundaries_are_asked_for(stream):
    X, y, truth = make_drift_stream(n_experiences=2, n_samples=400, random_state=0)
    detector = clone(ExperienceDetector(max_experiences=3))
    np.testing.assert_array_equal(detector.fit_predict(X, y), detector.labels_)
    expected = detect_experiences(X, y)
    assert (expected == truth).mean() > 0.99
    for boundaries in ("auto", detector):
        np.testing.assert_array_equal(experience_labels(X, y, boundaries=boundaries), expected)
    splitter = DriftSplitter(boundaries="auto")
    assert splitter.get_n_splits(X, y) == 1
    with pytest.raises(ValueError, match="freeze"):
        splitter.get_n_splits()
    assert splitter.freeze(X, y).get_n_splits() == 1
    with pytest.raises(ValueError, match="boundaries must be one of 'auto'"):
        next(DriftSplitter(boundaries="always").split(X, y))
    reg = ContinualMLPRegressor((8,), max_iter=3, random_state=0)
    found = clone(reg).fit(X, y, experience="auto")
    told = clone(reg).fit(X, y, experience=expected)
    np.testing.assert_array_equal(found.predict(X), told.predict(X))
    assert found.n_experiences_ == 2
    pipe = ContinualPipeline([("reg", clone(reg))]).fit(X, y, experience="auto")
    np.testing.assert_array_equal(pipe.predict(X), told.predict(X))
    with pytest.raises(ValueError, match="experience must be one of 'auto'; got 'each'"):
        reg.fit(X, y, experience="each")


def test_the_report_is_drawn(stream):
    X, y = stream
    y = y + 2 * (np.arange(3000) >= 1800)
    times = pd.date_range("2024", periods=3000, freq="h")
    _, report = detect_experiences(X, y, timestamps=times, return_report=True)
    assert report.times[0] == times.to_numpy()[report.boundaries[0]]
    ax = report.plot()
    lines = {line.get_label(): line for line in ax.get_lines()}
    np.testing.assert_array_equal(
        lines["level"].get_ydata(), report.signals[:, report.names.index("level")]
    )
    drawn = [list(line.get_xdata()) for line in ax.get_lines()]
    assert all([boundary] * 2 in drawn for boundary in report.boundaries)
    mpl.pyplot.close("all")


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"signal": "inputs"}, "signal must be one of 'performance', 'data'"),
        ({"penalty": 0}, "penalty must be None or a finite number above 0"),
        ({"min_experience_size": 0}, "min_experience_size must be"),
        ({"max_experiences": 0}, "max_experiences must be"),
        ({"y": None}, "y must be given for signal='performance'"),
        ({"timestamps": [3, 2] * 10}, "timestamps must be sorted; row 1 has 2 after 3"),
    ],
)
def test_bad_parameters_are_named(params, message):
    X = np.random.default_rng(0).normal(size=(20, 2))
    with pytest.raises(ValueError, match=message):
        detect_experiences(X, **{"y": X[:, 0], **params})


@pytest.mark.parametrize("n", [1, 2, 7, 25])
def test_short_streams_are_one_experience(n):
    X = np.random.default_rng(0).normal(size=(n, 2))
    assert detect_experiences(X, X[:, 0]).tolist() == [0] * n
    assert detect_experiences(np.ones((n, 2)), np.ones(n)).tolist() == [0] * n


def test_real_upgrades_and_a_log_without_any(shared_data):
    def find(name):
        table = pd.read_csv(shared_data / f"{name}.csv.gz")
        X = table.drop(columns=["experience", "timestamp", "run_time_s", "target"])
        labels = detect_experiences(X, table["target"])
        return np.flatnonzero(np.diff(labels)) + 1, table["experience"].to_numpy()

    found, truth = find("tokio_cori")
    for upgrade in np.flatnonzero(np.diff(truth)) + 1:
        assert np.abs(found - upgrade).min() <= 0.03 * len(truth)
    assert len(found) <= 3
    assert len(find("tokio_mira")[0]) == 0
