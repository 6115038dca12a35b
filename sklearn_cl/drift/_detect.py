"""Find the experiences of a stream that has no labels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from inspect import signature
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse
from scipy.stats import norm, rankdata
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import KFold
from sklearn.utils import check_array, indexable

from sklearn_cl._checks import check_number, check_option
from sklearn_cl._experiences import take
from sklearn_cl.drift._segments import changes, gains

Floats = npt.NDArray[np.float64]
_BLOCKS = 400
_TWINS = 0.02
# An input of which so much lies between twentieths of the stream moves; it is a clock unless it
# comes and goes in steps that are smaller than this part of its range.
_CLOCK, _PERIODS, _JUMP = 0.5, 20, 1 / 3
# Folds of the reference model, and how many rows a fold learns at most; then for a part.
_WHOLE, _PART = (5, 20_000), (2, 5_000)
_FEW_VALUES, _USUAL_GROUP = 10, 0.1
# In spreads of a signal over rows. With many rows the faults of the reference model show too,
# where the inputs move to where it is worse.
_LEAST_EFFECT = 0.1
_SCALES = (1, 4, 8)
# Of the penalty, what a model of both sides must leave of a boundary.
_CONFIRMED = 0.5
# Of the median of a squared standard normal variable.
_MEDIAN_SQUARE = float(norm.ppf(0.75) ** 2)


@dataclass(frozen=True)
class DriftReport:
    """What `detect_experiences` found.

    Parameters
    ----------
    labels : ndarray of shape (n_samples,)
        The number of the experience of each row.
    boundaries : list of int
        First rows of all experiences but the first.
    evidence : list of float
        For each boundary, how much more it explains than the penalty asks for; above 1.
    moved : list of list of str
        For each boundary what moved there, the strongest first: "level" and "spread" of the
        error of the reference model, "effect of <input>" on it, and, for ``signal="data"``,
        the inputs themselves.
    times : sequence or None
        The timestamps at the boundaries, if there were any.
    signals : ndarray of shape (n_blocks, n_signals)
        What was cut, in units of its own noise; the mean over blocks of rows.
    names : list of str
        Of the signals.
    """

    labels: npt.NDArray[np.intp]
    boundaries: list[int]
    evidence: list[float]
    moved: list[list[str]]
    times: Any
    signals: Floats
    names: list[str]

    def plot(self, ax: Any = None) -> Any:
        """Draw the signals that moved, and the boundaries.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        matplotlib Axes
            Where it was drawn.
        """
        if ax is None:
            import matplotlib.pyplot as plt

            ax = plt.subplots(figsize=(8, 3.5), layout="constrained")[1]
        shown = list(dict.fromkeys(["level", *(m[0] for m in self.moved if m)]))
        row = np.linspace(0, len(self.labels), len(self.signals), endpoint=False)
        colours = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00"]
        known = [name for name in shown if name in self.names][: len(colours)]
        for name, colour in zip(known or self.names[:1], colours, strict=False):
            ax.plot(row, self.signals[:, self.names.index(name)], color=colour, lw=0.8, label=name)
        for boundary, what in zip(self.boundaries, self.moved, strict=True):
            ax.axvline(boundary, color="black", linestyle="--")
            ax.annotate(
                f" {', '.join(what[:2])}",
                (boundary, 1),
                xycoords=("data", "axes fraction"),
                va="top",
                fontsize=8,
            )
        ax.set(xlabel="row", ylabel="signal, in units of its noise")
        ax.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.01, 1), borderaxespad=0)
        return ax


class ExperienceDetector(BaseEstimator):
    """Find where a stream changes; `detect_experiences` as an object with parameters.

    It goes where an object with ``fit_predict`` is asked for, as ``boundaries`` of
    `sklearn_cl.model_selection.DriftSplitter`.

    Parameters
    ----------
    signal : {"performance", "data"}, default="performance"
        Whether to look at the errors of the reference model, or at the inputs alone.
    estimator : estimator object, default=None
        The reference model; None as for `detect_experiences`.
    penalty : float, default=None
        What a cut must explain; None as for `detect_experiences`.
    min_experience_size : int, default=None
        Rows of an experience at least; None is 2 % of all, and at least 20.
    max_experiences : int, default=None
        Experiences at most.
    detector : object with ``fit_predict``, default=None
        Cuts the signals instead of exact least squares; see `detect_experiences`.

    Attributes
    ----------
    report_ : DriftReport
        What was found, and why.
    labels_ : ndarray of shape (n_samples,)
        The number of the experience of each row.

    Examples
    --------
    >>> from sklearn_cl.datasets import make_drift_stream
    >>> from sklearn_cl.drift import ExperienceDetector
    >>> X, y, _ = make_drift_stream(n_experiences=2, n_samples=400, random_state=0)
    >>> bool(ExperienceDetector().fit_predict(X, y).max() == 1)
    True
    """

    def __init__(
        self,
        *,
        signal: str = "performance",
        estimator: Any = None,
        penalty: float | None = None,
        min_experience_size: int | None = None,
        max_experiences: int | None = None,
        detector: Any = None,
    ) -> None:
        self.signal = signal
        self.estimator = estimator
        self.penalty = penalty
        self.min_experience_size = min_experience_size
        self.max_experiences = max_experiences
        self.detector = detector

    def fit_predict(self, X: Any, y: Any = None) -> npt.NDArray[np.intp]:
        """The number of the experience of each row.

        Parameters
        ----------
        X : {array-like, DataFrame} of shape (n_samples, n_features)
            Inputs, in the order of time.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
            Targets.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels from 0 on.
        """
        labels: npt.NDArray[np.intp]
        labels, self.report_ = detect_experiences(
            X, y, return_report=True, **self.get_params(deep=False)
        )
        self.labels_ = labels
        return labels


def detect_experiences(
    X: Any,
    y: Any = None,
    *,
    timestamps: Any = None,
    signal: str = "performance",
    estimator: Any = None,
    penalty: float | None = None,
    min_experience_size: int | None = None,
    max_experiences: int | None = None,
    detector: Any = None,
    return_report: bool = False,
) -> Any:
    r"""Number the experiences of a stream that has no labels.

    A reference model learns the whole stream, and where its errors change, the system has.
    (What the inputs do alone says little: on real logs they always move, since a file system
    fills up. For the same reason the reference model does not see inputs that tell the time.)
    Looked at are the level and the spread of the out-of-fold residual, and its
    product with each input, which sees an effect that turns round while the level stays. All are
    ranks, so that heavy tails do not matter, and are averaged over some 400 blocks of rows.
    Each is divided by its long-run noise, estimated from differences of neighbouring blocks at 1,
    4 and 8 times that length, of which the largest counts, so that a stream with memory is not cut
    to pieces. The cuts are those of exact penalised least squares, and are then moved to the
    row. What moves no signal by a tenth of its spread over rows is no change; nor is what a
    reference model of the two experiences beside it can explain. (One of the whole stream is wrong
    wherever the system is not an average one, and there its errors follow the workload.)

    Parameters
    ----------
    X : {array-like, DataFrame} of shape (n_samples, n_features)
        Inputs, in the order of time; columns of a DataFrame that are no numbers are taken as
        categories.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
        Targets; needed unless ``signal="data"``.
    timestamps : array-like of shape (n_samples,), default=None
        Times of the rows, for the report; they must be sorted.
    signal : {"performance", "data"}, default="performance"
        Whether to look at the errors of the reference model, or at the inputs alone.
    estimator : estimator object, default=None
        The reference model, which sees all inputs. None is gradient boosting on those that do
        not tell the time; with it, each boundary is confirmed.
    penalty : float, default=None
        What a cut must explain, in squares of noise. None is ``2 (k + 1) log(blocks)`` for k
        signals. More finds fewer.
    min_experience_size : int, default=None
        Rows of an experience at least; None is 2 % of all, and at least 20.
    max_experiences : int, default=None
        Experiences at most; the cuts with the least evidence go first.
    detector : object with ``fit_predict``, default=None
        Cuts the signals, an array of shape (n_blocks, n_signals) in units of their noise, instead
        of exact least squares. It answers with a label for each block, or with where
        segments end, as those of ruptures do, which get ``pen=penalty`` too.
    return_report : bool, default=False
        Whether to return a `DriftReport` too.

    Returns
    -------
    labels : ndarray of shape (n_samples,)
        Numbers from 0 on, for ``fit(X, y, experience=labels)``.
    report : DriftReport
        With ``return_report``.

    Raises
    ------
    ValueError
        If a parameter or an input is not what it must be.

    References
    ----------
    R. Killick, P. Fearnhead, I. Eckley, "Optimal detection of changepoints with a linear
    computational cost", JASA 107, 2012, arXiv:1101.1438.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_cl.datasets import make_drift_stream
    >>> from sklearn_cl.drift import detect_experiences
    >>> X, y, truth = make_drift_stream(n_experiences=2, n_samples=400, random_state=0)
    >>> labels = detect_experiences(X, y)
    >>> bool((labels == truth).mean() > 0.99)
    True
    """
    check_option("signal", signal, ["performance", "data"])
    check_number("penalty", penalty, low=0, open_low=True, also=[None])
    check_number("min_experience_size", min_experience_size, low=1, integer=True, also=[None])
    check_number("max_experiences", max_experiences, low=1, integer=True, also=[None])
    X, y, timestamps = indexable(X, y, timestamps)
    columns = [str(name) for name in getattr(X, "columns", [])]
    Z = _ranked_inputs(X)
    columns = columns or [f"x{k}" for k in range(Z.shape[1])]
    n = len(Z)
    _check_sorted(timestamps)
    least = max(20, round(_TWINS * n)) if min_experience_size is None else min_experience_size
    if signal == "performance" and y is None:
        raise ValueError("y must be given for signal='performance'; got None.")
    size = max(1, n // _BLOCKS)
    found: dict[int, tuple[float, list[str]]] = {}
    passes: Iterable[tuple[Floats, list[str]]] = [(Z, columns)]
    if n < 2 * least:
        passes = []
    elif signal == "performance":
        y = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y").reshape(n, -1)
        passes = _performance(Z, y, X, columns, estimator, found, _clocks(Z))
    drawn = []
    for rows, names in passes:
        signals = _Signals.of(rows, names, size, penalty)
        if signals is None:
            continue
        blocks, cost = signals.blocks, signals.cost
        if detector is None:
            cuts = changes(blocks, cost, max(1, -(-least // size)))
        else:
            cuts = _cuts_of(detector, blocks, cost)
        edges = [0, *cuts, len(blocks)]
        for k, (cut, gain) in enumerate(zip(cuts, gains(blocks, cuts), strict=True)):
            left, right = blocks[edges[k] : cut], blocks[cut : edges[k + 2]]
            if signals.effect(left, right) < _LEAST_EFFECT:
                continue
            in_noise = signals.rows / signals.noise
            row = _replaced(in_noise, left.mean(0), right.mean(0), cut * size, size)
            movers = _movers(left, right, signals.names)
            found[row] = max(found.get(row, (0.0, [])), (gain / cost, movers))
        drawn.append((blocks, signals.names))
    cuts = _without_twins(found, max(least, round(_TWINS * n)), least, n)
    if signal == "performance" and estimator is None:
        cuts = _confirmed(cuts, found, Z, y, columns, size, penalty)
    if max_experiences is not None:
        cuts = sorted(sorted(cuts, key=lambda row: -found[row][0])[: max_experiences - 1])
    labels = np.searchsorted(np.array(cuts, dtype=np.intp), np.arange(n), side="right")
    if not return_report:
        return labels
    names = list(dict.fromkeys(name for _, some in drawn for name in some))
    curves = {m: s[:, k] for s, some in drawn for k, m in enumerate(some)}
    report = DriftReport(
        labels,
        cuts,
        [found[row][0] for row in cuts],
        [found[row][1] for row in cuts],
        None if timestamps is None else [np.asarray(timestamps)[row] for row in cuts],
        np.column_stack([curves[name] for name in names]) if names else np.empty((0, 0)),
        names,
    )
    return labels, report


class _Signals(NamedTuple):
    """What is looked at, row by row and in blocks."""

    rows: Floats
    names: list[str]
    # Of a block's mean.
    noise: Floats
    # Means of blocks, in units of their noise.
    blocks: Floats
    # Of a cut.
    cost: float

    @classmethod
    def of(
        cls, rows: Floats, names: list[str], size: int, penalty: float | None
    ) -> _Signals | None:
        """Those that vary, or None if there is nothing to cut."""
        varying = rows.std(0) > 0
        rows, names = rows[:, varying], [m for m, keep in zip(names, varying, strict=True) if keep]
        blocks = _block_means(rows, size)
        if len(blocks) < 2 or not names:
            return None
        noise = _long_run_noise(blocks)
        cost = 2 * (len(names) + 1) * np.log(len(blocks)) if penalty is None else penalty
        return cls(rows, names, noise, blocks / noise, cost)

    def effect(self, left: Floats, right: Floats) -> float:
        """The largest difference between two runs of blocks, in spreads over rows."""
        apart = np.abs(left.mean(0) - right.mean(0)) * self.noise / self.rows.std(0)
        return float(apart.max())


def _confirmed(
    cuts: list[int],
    found: Mapping[int, tuple[float, list[str]]],
    Z: Floats,
    y: Floats,
    columns: list[str],
    size: int,
    penalty: float | None,
) -> list[int]:
    """Boundaries that a reference model of both sides does not explain, the weakest tried first."""
    clocks, kept = _clocks(Z), list(cuts)
    for row in sorted(cuts, key=lambda row: found[row][0]):
        k = kept.index(row)
        start, end = ([0, *kept][k], [*kept, len(Z)][k + 1])
        part = slice(start, end)
        evidence = 0.0
        # What tells the time in this part may not do so in the whole.
        timeless = clocks | _clocks(Z[part])
        for rows, names in _performance(
            Z[part], y[part], None, columns, None, [row - start], timeless, _PART
        ):
            signals = _Signals.of(rows, names, size, penalty)
            if signals is None:
                continue
            blocks = signals.blocks
            at = min(max(1, round((row - start) / size)), len(blocks) - 1)
            if signals.effect(blocks[:at], blocks[at:]) >= _LEAST_EFFECT:
                evidence = gains(blocks, [at])[0] / signals.cost
            if evidence >= _CONFIRMED:
                break
        else:
            kept.remove(row)
    return kept


def _performance(
    Z: Floats,
    y: Floats,
    X: Any,
    columns: list[str],
    estimator: Any,
    found: Iterable[int],
    clocks: npt.NDArray[np.bool_],
    effort: tuple[int, int] = _WHOLE,
) -> Iterator[tuple[Floats, list[str]]]:
    """Signals of the out-of-fold error of the reference model: two sets, cut one by one.

    ``found`` grows in between: the second set looks beyond what the first has shown.
    """
    if estimator is None:
        target = _normal_scores(y)
        timeless = Z[:, ~clocks]
        known = timeless if timeless.shape[1] else np.zeros((len(Z), 1))
        parts = [_expected(_reference(), known, column, *effort) for column in target.T]
        expected = np.column_stack(parts)
    else:
        target = y
        expected = _expected(estimator, X, y[:, 0] if y.shape[1] == 1 else y, *effort)
    residual = _normal_scores(target - expected.reshape(target.shape))
    of = [""] if residual.shape[1] == 1 else [f" of y{k}" for k in range(residual.shape[1])]
    level, spread = [f"level{k}" for k in of], [f"spread{k}" for k in of]
    yield np.hstack([residual, np.log(np.abs(residual) + 0.1)]), level + spread
    inputs, names = _with_groups(Z, columns)
    products = [column[:, None] * inputs for column in _within(residual, list(found)).T]
    effects = [f"effect of {c}{k and ' on' + k[3:]}" for k in of for c in names]
    yield np.hstack([residual, *products]), level + effects


def _reference() -> HistGradientBoostingRegressor:
    return HistGradientBoostingRegressor(max_iter=60, max_leaf_nodes=15, random_state=0)


def _expected(estimator: Any, X: Any, target: Floats, n_folds: int, learnt: int) -> Floats:
    """Out-of-fold predictions, by folds drawn at random: the model knows all regimes alike."""
    answer = np.empty_like(target)
    folds = KFold(min(n_folds, len(target)), shuffle=True, random_state=0)
    for train, test in folds.split(target):
        some = train[:: max(1, len(train) // learnt)]
        model = clone(estimator).fit(take(X, some), target[some])
        answer[test] = model.predict(take(X, test))
    return answer


def _clocks(Z: Floats) -> npt.NDArray[np.bool_]:
    """Inputs that tell the time: the model could explain by them whatever changes with it."""
    clocks = _moving(Z)
    for k in np.flatnonzero(clocks):
        clocks[k] = not _is_wave(Z[:, k])
    return clocks


def _moving(Z: Floats) -> npt.NDArray[np.bool_]:
    """Inputs that differ more between periods than within them."""
    parts = np.array_split(Z, _PERIODS)
    between = sum(len(part) * (part.mean(0) - Z.mean(0)) ** 2 for part in parts if len(part))
    total = np.maximum(Z.var(0) * len(Z), 1e-300)
    moving: npt.NDArray[np.bool_] = between / total > _CLOCK
    return moving


def _is_wave(values: Floats) -> bool:
    """Whether an input that moves comes back to its values without jumps, as a load does.

    Such a value does not tell when it was, and what it does to the target shows in each regime.
    """
    n = len(values)
    bins = np.searchsorted(np.quantile(values, np.linspace(0, 1, _PERIODS + 1)[1:-1]), values)
    count = np.bincount(bins)
    when = np.bincount(bins, np.linspace(-1, 1, n)) / np.maximum(count, 1)
    # The mean square of the time is a third.
    told = 3 * (count * when**2).sum() / n
    level = np.array([part.mean() for part in np.array_split(values, min(n, 5 * _PERIODS))])
    return bool(told < _CLOCK and np.abs(np.diff(level)).max() < _JUMP * np.ptp(level))


def _with_groups(Z: Floats, columns: list[str]) -> tuple[Floats, list[str]]:
    """Inputs, and each value of those that have few: groups may move against each other."""
    parts, names = [Z], list(columns)
    for k, column in enumerate(columns):
        values, count = np.unique(Z[:, k], return_counts=True)
        if 2 < len(values) <= _FEW_VALUES:
            groups = (Z[:, [k]] == values) - count / len(Z)
            # A rare one, or one that comes and goes, says more about time than about itself.
            usual = (count >= _USUAL_GROUP * len(Z)) & ~_moving(groups)
            parts.append(groups[:, usual])
            names += [f"{column}, value {j}" for j in np.flatnonzero(usual)]
    return np.hstack(parts), names


def _within(residual: Floats, cuts: list[int]) -> Floats:
    """The residual about its mean between cuts.

    A level that jumps, times an input that tells the time, is a ramp, and ramps get cut.
    """
    parts = np.split(residual, sorted(cuts))
    return np.vstack([part - part.mean(0) for part in parts])


def _ranked_inputs(X: Any) -> Floats:
    """Columns as ranks from -1 to 1; what is no number as a number for each category."""
    if issparse(X):
        X = X.toarray()
    if hasattr(X, "iloc"):
        columns = [X.iloc[:, k].to_numpy() for k in range(X.shape[1])]
    else:
        X = check_array(X, dtype=None, input_name="X", ensure_all_finite=False)
        columns = list(X.T)
    Z = np.column_stack([_numbers(column) for column in columns])
    check_array(Z, input_name="X", ensure_all_finite="allow-nan")
    ranks: Floats = 2 * (rankdata(Z, axis=0) - 0.5) / len(Z) - 1
    return ranks


def _numbers(column: npt.NDArray[Any]) -> Floats:
    """A column as numbers; what is missing comes before all others."""
    if column.dtype.kind in "mM":
        missing, values = np.isnat(column), column.astype(np.int64).astype(np.float64)
    else:
        try:
            values = column.astype(np.float64)
            missing = np.isnan(values)
        except (TypeError, ValueError):
            values = np.unique(column.astype(str), return_inverse=True)[1].astype(np.float64)
            missing = np.zeros(len(values), dtype=bool)
    if missing.any() and not missing.all():
        values = np.where(missing, values[~missing].min() - 1, values)
    return np.where(missing, values[~missing].min(initial=0) - 1, values)


def _normal_scores(values: Floats) -> Floats:
    scores: Floats = norm.ppf((rankdata(values, axis=0) - 0.5) / len(values))
    return scores


def _block_means(rows: Floats, size: int) -> Floats:
    """Means of blocks of ``size`` rows; the last block has the rest too."""
    starts = np.arange(0, len(rows) - size + 1, size)
    sums = np.add.reduceat(rows, starts, axis=0)
    means: Floats = sums / np.diff(np.append(starts, len(rows)))[:, None]
    return means


def _long_run_noise(blocks: Floats) -> Floats:
    """Standard deviation of each signal's block means, as if blocks were independent."""
    found = []
    for scale in _SCALES:
        means = _block_means(blocks, scale) if len(blocks) >= 8 * scale else None
        if means is not None:
            # Half the squared difference of neighbours has the variance as its mean; the median
            # does not see the few that lie across a change.
            squares = np.diff(means, axis=0) ** 2
            typical = np.median(squares, axis=0) / _MEDIAN_SQUARE
            # Where most blocks are alike, the median knows nothing of the others; the highest
            # twentieth may lie across a change.
            usual = np.sort(squares, axis=0)[: -max(1, len(squares) // 20)].mean(0)
            found.append(np.maximum(typical, usual / 4) / 2 * scale)
    if not found:
        found = [blocks.var(axis=0)]
    noise: Floats = np.sqrt(np.max(found, axis=0))
    return np.where(noise > 0, noise, np.where(blocks.std(0) > 0, blocks.std(0), 1.0))


def _replaced(rows: Floats, left: Floats, right: Floats, near: int, size: int) -> int:
    """The row near a cut between blocks at which the means change best."""
    start, end = max(1, near - 2 * size), min(len(rows) - 1, near + 2 * size)
    piece = rows[start:end]
    lead = ((piece - left) ** 2).sum(1) - ((piece - right) ** 2).sum(1)
    # Rows before the cut belong to the left: the sum of what that costs, from none to all.
    return start + int(np.append(0.0, lead.cumsum()).argmin())


def _movers(left: Floats, right: Floats, names: list[str]) -> list[str]:
    """Signals whose mean differs on both sides, the strongest first."""
    z = np.abs(left.mean(0) - right.mean(0)) / np.sqrt(1 / len(left) + 1 / len(right))
    threshold = norm.isf(0.005 / len(names))
    order = np.argsort(-z)
    return [names[k] for k in order if z[k] > threshold] or [names[order[0]]]


def _without_twins(
    found: dict[int, tuple[float, list[str]]], apart: int, least: int, n: int
) -> list[int]:
    """Of boundaries that are too close together, those with the best evidence."""
    kept: list[int] = []
    for row in sorted(found, key=lambda row: -found[row][0]):
        if least <= row <= n - least and all(abs(row - other) >= apart for other in kept):
            kept.append(row)
    return sorted(kept)


def _cuts_of(detector: Any, signals: Floats, penalty: float) -> list[int]:
    """Where the segments of the user's own detector begin."""
    if not hasattr(detector, "fit_predict"):
        raise ValueError(f"detector must have fit_predict; got {type(detector).__name__}.")
    asks = signature(detector.fit_predict).parameters
    answer = np.asarray(
        detector.fit_predict(signals, **({"pen": penalty} if "pen" in asks else {}))
    )
    if answer.shape == (len(signals),) and "pen" not in asks:
        return [int(k) for k in np.flatnonzero(answer[1:] != answer[:-1]) + 1]
    return [int(k) for k in answer if 0 < k < len(signals)]


def _check_sorted(timestamps: Any) -> None:
    if timestamps is None:
        return
    times = np.asarray(timestamps)
    falls = np.flatnonzero(times[1:] < times[:-1])
    if len(falls):
        row = int(falls[0]) + 1
        raise ValueError(
            f"timestamps must be sorted; row {row} has {times[row]} after {times[row - 1]}. Sort "
            "the table by time first."
        )
