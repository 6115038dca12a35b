"""Splitters against TimeSeriesSplit, KFold, and folds counted by hand."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import KMeans
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import KFold, TimeSeriesSplit, cross_val_score

from sklearn_cl import DriftSplitter, ExperienceKFold
from sklearn_cl.model_selection import experience_labels

DAYS = np.repeat(np.arange(6), [3, 5, 2, 7, 4, 3])


def folds(splitter, *args, **kwargs):
    return [(train.tolist(), test.tolist()) for train, test in splitter.split(*args, **kwargs)]


@pytest.mark.parametrize("n_rows", [24, 25, 31])
@pytest.mark.parametrize("n_splits", [2, 3, 5])
@pytest.mark.parametrize(("size", "gap", "limit"), [(4, 0, None), (2, 2, None), (3, 1, 2)])
def test_equals_time_series_split(n_rows, n_splits, size, gap, limit):
    X = np.zeros((n_rows, 1))
    ours = DriftSplitter(n_splits, experience_size=size, gap=gap, max_train_experiences=limit)
    theirs = TimeSeriesSplit(
        n_splits, test_size=size, gap=gap * size, max_train_size=limit and limit * size
    )
    assert folds(ours, X)[1:] == folds(theirs, X)[1:]
    # The first experience has the rest of the rows, which max_train_size may cut.
    assert [test for _, test in folds(ours, X)] == [test for _, test in folds(theirs, X)]
    if limit is None:
        assert folds(ours, X) == folds(theirs, X)
        assert folds(DriftSplitter(n_splits), X) == folds(TimeSeriesSplit(n_splits), X)


def test_whole_periods_of_unequal_size():
    X = np.zeros((24, 2))
    got = list(DriftSplitter(n_splits=5).split(X, groups=DAYS))
    assert [sorted(set(DAYS[test])) for _, test in got] == [[1], [2], [3], [4], [5]]
    assert [len(train) for train, _ in got] == [3, 8, 10, 17, 21]
    assert folds(DriftSplitter(), X, groups=DAYS) == folds(DriftSplitter(5), X, groups=DAYS)
    assert folds(DriftSplitter(2), X, groups=DAYS) == folds(DriftSplitter(), X, groups=DAYS)[-2:]
    gap = list(DriftSplitter(gap=1, max_train_experiences=2).split(X, groups=DAYS))
    assert [sorted(set(DAYS[test])) for _, test in gap] == [[2], [3], [4], [5]]
    assert [sorted(set(DAYS[train])) for train, _ in gap] == [[0], [0, 1], [1, 2], [2, 3]]
    with pytest.raises(ValueError, match=r"n_splits=6 needs 7 experiences.*got 6"):
        list(DriftSplitter(n_splits=6).split(X, groups=DAYS))


def test_labels_win_over_everything():
    splitter = DriftSplitter(experience_size=2)
    X = np.zeros((24, 2))
    assert folds(splitter, X, groups=DAYS) == folds(DriftSplitter(), X, groups=DAYS)


def test_every_way_to_say_where():
    expected = [0, 0, 0, 1, 1, 1, 1, 2, 2, 2]
    dates = pd.to_datetime(
        ["2024-01-03", "2024-01-04", "2024-01-31", "2024-02-01", "2024-02-02", "2024-02-10"]
        + ["2024-02-29", "2024-04-01", "2024-04-02", "2024-04-03"]
    )
    hours = np.array([5.0, 6, 14.9, 15, 16, 17, 24, 35, 36, 37])
    frame = pd.DataFrame({"x": 0.0, "when": dates, "hour": hours})
    texts = frame.assign(when=dates.astype(str))
    for tz in (None, "UTC", "Europe/Berlin"):
        zoned = frame.assign(when=dates.tz_localize(tz))
        for X, column in [
            (zoned, "when"),
            (zoned.set_index("when"), "when"),
            (zoned.set_index("when"), None),
        ]:
            found = experience_labels(X, period="MS", time_column=column)
            assert found.tolist() == expected
            begins = pd.to_datetime(["2024-02-01", "2024-03-01"]).tz_localize(tz)
            found = experience_labels(X, boundaries=begins, time_column=column)
            assert found.tolist() == expected
    assert experience_labels(texts, period="MS", time_column="when").tolist() == expected
    assert experience_labels(frame, period=10, time_column="hour").tolist() == [
        0, 0, 0, 1, 1, 1, 1, 2, 2, 2
    ]  # fmt: skip
    array = frame[["x", "hour"]].to_numpy()
    assert experience_labels(array, period=10, time_column=1).tolist() == expected
    assert experience_labels(array, boundaries=[15, 25], time_column=-1).tolist() == expected
    assert experience_labels(array, boundaries=[3, 7]).tolist() == expected
    assert experience_labels(array, n_experiences=3).tolist() == [0, 0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert experience_labels(array, experience_size=3).tolist() == [0, 0, 0, 0, 1, 1, 1, 2, 2, 2]


def test_an_object_that_finds_them():
    class Finder:
        calls = 0

        def fit_predict(self, X, y):
            self.calls += 1
            return (X[:, 0] > 4).astype(int) + (X[:, 0] > 6)

    X, finder = np.arange(10.0)[:, None], Finder()
    splitter = DriftSplitter(boundaries=finder)
    assert splitter.get_n_splits(X, X) == 2
    assert [test for _, test in folds(splitter, X, X)] == [[5, 6], [7, 8, 9]]
    assert finder.calls == 1
    pickle.loads(pickle.dumps(DriftSplitter(boundaries=[3])))
    frozen = splitter.freeze(X, X)
    assert frozen.get_n_splits() == 2
    assert folds(frozen, X) == folds(splitter, X, X)
    assert pickle.loads(pickle.dumps(frozen)).boundaries == [5, 7]
    assert finder.calls == 1
    # Any clusterer of scikit-learn has the method.
    X[5:] += 10
    blocks = DriftSplitter(boundaries=KMeans(2, n_init=1, random_state=0))
    assert [test for _, test in folds(blocks, X)] == [[5, 6, 7, 8, 9]]
    assert pickle.loads(pickle.dumps(copy.copy(DriftSplitter(2)))).n_splits == 2


def test_what_was_found_belongs_to_the_question():
    class Halves:
        def __init__(self, at):
            self.at = at

        def fit_predict(self, X, y=None):
            return np.arange(len(X)) // self.at

    X = np.zeros((30, 2))
    splitter = DriftSplitter(boundaries=Halves(10))
    assert splitter.get_n_splits(X) == 2
    splitter.boundaries = Halves(5)
    assert splitter.get_n_splits(X) == 5

    class ByTarget:
        def fit_predict(self, X, y):
            return y

    splitter = DriftSplitter(boundaries=ByTarget())
    y, other = np.repeat([0, 1], 15), np.repeat([0, 1, 2], 10)
    assert [splitter.get_n_splits(X, target) for target in (y, other, y)] == [1, 2, 1]


@pytest.mark.parametrize(
    "params", [{"n_experiences": 3}, {"n_splits": 2}, {"experience_size": 10}, {"boundaries": [9]}]
)
def test_unsorted_times_are_refused_however_the_stream_is_cut(params):
    order = np.random.default_rng(0).permutation(30)
    table = pd.DataFrame({"x": 0.0, "t": order.astype(float)})
    dated = pd.DataFrame({"x": np.zeros(30)}, index=pd.date_range("2024", periods=30)[order])
    for X, column in [(table, "t"), (dated, None)]:
        for rows, fails in [(X, True), (X.iloc[np.argsort(order)], False)]:
            splitter = DriftSplitter(**{"time_column": column, **params})
            if fails and "boundaries" not in params:
                with pytest.raises(ValueError, match="sorted by time"):
                    list(splitter.split(rows))
            elif not fails and "boundaries" not in params:
                assert list(splitter.split(rows))
    if "boundaries" in params:
        with pytest.raises(ValueError, match="sorted by time"):
            list(DriftSplitter(**params).split(dated))


def test_times_of_every_kind():
    tenths = pd.DataFrame({"t": np.arange(10) / 10})
    assert experience_labels(tenths, period=0.1, time_column="t").tolist() == list(range(10))
    small = pd.DataFrame({"t": np.arange(-100, 100, 10, dtype=np.int8)})
    assert experience_labels(small, period=50, time_column="t").max() == 3
    whole = pd.DataFrame({"t": np.arange(30)})
    for table in (whole, whole.astype("Int64"), whole.astype(object)):
        found = experience_labels(table, boundaries=[10.5], time_column="t")
        assert (found == 0).sum() == 11
    days = pd.date_range("2024", periods=30)
    expected = np.repeat([0, 1, 2], 10).tolist()
    for period in ("10D", np.timedelta64(10, "D"), pd.Timedelta(days=10)):
        dated = pd.DataFrame({"x": np.zeros(30)}, index=days)
        assert experience_labels(dated, period=period).tolist() == expected
    periods = pd.DataFrame({"x": np.zeros(30)}, index=days.to_period("D"))
    assert experience_labels(periods, period="10D").tolist() == expected
    spans = pd.DataFrame({"x": np.zeros(30)}, index=days - days[0])
    assert experience_labels(spans, period=10 * 86400).tolist() == expected


def test_number_of_folds_without_data():
    assert DriftSplitter(3).get_n_splits() == 3
    assert len(list(DriftSplitter(3, gap=1).split(np.zeros((24, 1))))) == 3
    assert DriftSplitter(n_experiences=6, gap=1).get_n_splits() == 4
    assert DriftSplitter(boundaries=[3, 6]).get_n_splits() == 2
    with pytest.raises(ValueError, match="freeze"):
        DriftSplitter(experience_size=6).get_n_splits()
    assert DriftSplitter(experience_size=6).get_n_splits(np.zeros((24, 1))) == 3
    assert repr(DriftSplitter(3, gap=1)).startswith("DriftSplitter(boundaries=None")


FRAME = pd.DataFrame({"x": np.zeros(6), "t": pd.date_range("2024", periods=6)})
MIXED = FRAME.assign(t=["2024-01-01T00:00:00+01:00", "2024-01-02T00:00:00+02:00"] * 3)


@pytest.mark.parametrize(
    ("params", "X", "groups", "message"),
    [
        ({}, FRAME, None, "must be told where experiences begin.*groups=labels"),
        ({}, FRAME, [0, 0, 1, 1, 0, 1], "sorted by time.*row 4 has 0 after 1.*Sort"),
        ({}, FRAME, ["v9", "v9", "v10", "v10", "v11", "v11"], "ordered pandas Categorical"),
        ({}, FRAME, [0, 0, 1], "6, 3|one label for each of the 6 rows"),
        ({}, FRAME, [0] * 6, "at least 2 experiences.*got 1"),
        ({"gap": 1}, FRAME, [0, 0, 0, 1, 1, 1], "at least 3 experiences.*gap=1; got 2"),
        ({"n_experiences": 2, "period": 3}, FRAME, None, "Only one of"),
        ({"n_experiences": 7}, FRAME, None, "got 6 rows for 7"),
        ({"n_experiences": 1}, FRAME, None, "n_experiences must be"),
        ({"experience_size": 4}, FRAME, None, "room for two.*got 4 with 6"),
        ({"n_splits": 0}, FRAME, None, "n_splits must be"),
        ({"gap": -1}, FRAME, None, "gap must be"),
        ({"period": "2D"}, FRAME, None, "period needs times"),
        ({"period": "2D", "time_column": "when"}, FRAME, None, "must name a column.*'when'"),
        ({"period": "2 fortnights", "time_column": "t"}, FRAME, None, "period must be"),
        ({"period": 3, "time_column": "t"}, FRAME, None, "pandas offset"),
        ({"period": 0, "time_column": "x"}, FRAME, None, "period must be a finite number above 0"),
        ({"period": "2D", "time_column": 7}, FRAME.to_numpy(), None, "one of the 2 columns"),
        ({"period": "2D", "time_column": "t"}, FRAME[::-1], None, "sorted by time; row 1"),
        ({"period": "2D", "time_column": "t"}, MIXED, None, "one time zone.*utc=True"),
        (
            {"period": "2D", "time_column": "t"},
            FRAME.assign(t=FRAME["t"].where(FRAME["x"] > 0)),
            None,
            "lacks 6, the first in row 0",
        ),
        ({"boundaries": [4, 2]}, FRAME, None, "must ascend"),
        ({"boundaries": [0]}, FRAME, None, "must ascend and lie between"),
        ({"boundaries": [6]}, FRAME, None, "between the first and the last of the 6 rows"),
        ({"boundaries": [2.5]}, FRAME, None, "numbers of rows"),
        ({"boundaries": 3}, FRAME, None, "a list of rows or times.*got 3"),
        ({"boundaries": [True]}, FRAME, None, "numbers of rows"),
        ({}, FRAME, pd.array(["a", "a", pd.NA, "b", "b", "b"]), "missing values"),
        ({}, FRAME, [1, 1, 2, 2, "3", "3"], "mix of texts"),
        (
            {"boundaries": [pd.Timestamp("2024-01-03", tz="UTC")], "time_column": "t"},
            FRAME,
            None,
            "no time zone",
        ),
    ],
)
def test_refusals_state_the_numbers(params, X, groups, message):
    with pytest.raises(ValueError, match=message):
        list(DriftSplitter(**params).split(X, groups=groups))


def test_ordered_categories_are_taken_in_their_order():
    names = ["v9", "v9", "v10", "v10", "v11", "v11"]
    labels = pd.Series(pd.Categorical(names, ["v9", "v10", "v11"], ordered=True))
    assert folds(DriftSplitter(), FRAME, groups=labels) == [
        ([0, 1], [2, 3]),
        ([0, 1, 2, 3], [4, 5]),
    ]


@pytest.mark.parametrize("shuffle", [False, True])
def test_folds_of_experiences_cover_each_row_once(shuffle):
    labels = np.random.default_rng(0).permutation(np.repeat(["c", "a", "b"], [10, 17, 24]))
    splitter = ExperienceKFold(4, shuffle=shuffle, random_state=1 if shuffle else None)
    tested = []
    for train, test in splitter.split(np.zeros((51, 1)), groups=labels):
        assert not set(train) & set(test)
        assert len(train) + len(test) == 51
        tested += test.tolist()
        for label, n in [("c", 10), ("a", 17), ("b", 24)]:
            assert n // 4 <= (labels[test] == label).sum() <= n // 4 + 1
    assert sorted(tested) == list(range(51))
    assert splitter.get_n_splits() == 4


def test_folds_of_an_experience_are_consecutive_as_in_kfold():
    labels = np.repeat([0, 1], 20)
    expected = [test.tolist() for _, test in KFold(4).split(np.zeros((20, 1)))]
    for (_, test), block in zip(
        folds(ExperienceKFold(4), np.zeros((40, 1)), groups=labels), expected
    ):
        assert test == block + [20 + row for row in block]


@pytest.mark.parametrize(
    ("n_splits", "groups", "message"),
    [
        (3, None, "must know the experiences.*groups=labels"),
        (3, [0] * 9, "at least two experiences; got 1.*KFold"),
        (3, [0] * 7 + [1] * 2, "n_splits=3.*got 2 in 1"),
        (1, [0] * 5 + [1] * 4, "n_splits must be an integer at least 2"),
    ],
)
def test_experience_kfold_refuses(n_splits, groups, message):
    with pytest.raises(ValueError, match=message):
        list(ExperienceKFold(n_splits).split(np.zeros((9, 1)), groups=groups))


def test_any_estimator_of_scikit_learn_is_served():
    chance = np.random.default_rng(0)
    X = chance.normal(size=(24, 2))
    score = cross_val_score(LinearRegression(), X, X[:, 0], groups=DAYS, cv=DriftSplitter(4))
    np.testing.assert_allclose(score, 1)
