"""An alarm on the errors of a model that is in use."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp
from scipy.stats import t

from sklearn_cl._checks import check_detector, check_number

Floats = npt.NDArray[np.float64]
# Rows that tell what is usual, at least and at most.
_USUAL, _LATEST = 100, 300
_CLIP = 6.0
_SIGNIFICANT, _MOVED = 4.0, 0.5


class Alarm(NamedTuple):
    """What an alarm says.

    Parameters
    ----------
    row : int
        Number of the row at which it was raised, of all that were watched, from 0.
    since : int
        Where the change seems to have begun.
    strength : float
        Mean absolute error since then over the usual one.
    kind : {"inputs", "target given inputs", "noise"}
        Whether the inputs have moved, the answers to the same inputs, or neither, so that there
        is more noise. Where both inputs and answers moved it is "inputs".
    """

    row: int
    since: int
    strength: float
    kind: str


class PageHinkley:
    r"""Page and Hinkley's test for an increase of a mean.

    It raises an alarm when :math:`m_t - \min_{s \le t} m_s > \lambda`, with
    :math:`m_t = \sum_{s \le t} (x_s - \bar x_s - \delta)`.

    Parameters
    ----------
    delta : float, default=0.005
        Increase that is no change, in the unit of the values.
    threshold : float, default=5.0
        :math:`\lambda`.

    References
    ----------
    E. S. Page, "Continuous inspection schemes", Biometrika 41, 1954.

    Examples
    --------
    >>> from sklearn_cl.drift import PageHinkley
    >>> test = PageHinkley(delta=0.005, threshold=5)
    >>> [item for item in range(1, 61) if test.update(float(item > 50)).drift_detected][0]
    56
    """

    _mean: float
    _sum: float
    _least: float

    def __init__(self, delta: float = 0.005, threshold: float = 5.0) -> None:
        check_number("delta", delta, low=0)
        check_number("threshold", threshold, low=0, open_low=True)
        self.delta = delta
        self.threshold = threshold
        self.drift_detected = False
        self._reset()

    def update(self, x: float) -> PageHinkley:
        """Take one value.

        Parameters
        ----------
        x : float
            The value.

        Returns
        -------
        self : PageHinkley
            With ``drift_detected``; after an alarm it starts anew.
        """
        if self.drift_detected:
            self._reset()
        self._n += 1
        self._mean += (x - self._mean) / self._n
        self._sum += x - self._mean - self.delta
        if self._sum <= self._least:
            self._least, self.n_since_least = self._sum, 0
        else:
            self.n_since_least += 1
        self.drift_detected = self._sum - self._least > self.threshold
        return self

    def _reset(self) -> None:
        self._n = 0
        self._mean = self._sum = self._least = 0.0
        self.n_since_least = 0
        self.drift_detected = False


class BayesianChangePoint:
    r"""Bayesian online change-point detection of a mean and a variance.

    It keeps the distribution of the time since the last change, given values that are normal
    with a mean and a variance that a change draws anew (from a normal-inverse-gamma law), and
    raises an alarm when a recent change has become almost certain.

    Parameters
    ----------
    hazard : float, default=1/1000
        Probability of a change at each value, above 0 and below 1.
    n_after : int, default=20
        A change counts as recent within so many values, at least 1.
    threshold : float, default=0.95
        How certain, above 0 and below 1.
    max_run : int, default=1000
        Run lengths to keep; longer ones share the last.

    References
    ----------
    R. P. Adams, D. J. C. MacKay, "Bayesian online changepoint detection", 2007,
    arXiv:0710.3742.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_cl.drift import BayesianChangePoint
    >>> values = np.random.default_rng(0).normal(size=200) + 4 * (np.arange(200) >= 100)
    >>> test = BayesianChangePoint()
    >>> 100 <= [k for k, x in enumerate(values) if test.update(x).drift_detected][0] <= 110
    True
    """

    def __init__(
        self,
        hazard: float = 1e-3,
        n_after: int = 20,
        threshold: float = 0.95,
        max_run: int = 1000,
    ) -> None:
        check_number("threshold", threshold, low=0, high=1, open_low=True, open_high=True)
        check_number("hazard", hazard, low=0, high=1, open_low=True, open_high=True)
        check_number("n_after", n_after, low=1, integer=True)
        check_number("max_run", max_run, low=2, integer=True)
        self.hazard = hazard
        self.n_after = n_after
        self.threshold = threshold
        self.max_run = max_run
        self.drift_detected = False
        self._n = 0
        self.n_since_least = 0
        # Of each run length: log probability, and mean, weight, shape and scale of the law.
        self.log_run_ = np.zeros(1)
        self._law = np.array([[0.0, 0.1, 1.0, 1.0]])

    def update(self, x: float) -> BayesianChangePoint:
        """Take one value.

        Parameters
        ----------
        x : float
            The value.

        Returns
        -------
        self : BayesianChangePoint
            With ``drift_detected``, and ``log_run_``, the log probability of each run length.
        """
        self._n += 1
        mean, weight, shape, scale = self._law.T
        spread = np.sqrt(scale * (weight + 1) / (shape * weight))
        grown = self.log_run_ + t.logpdf(x, 2 * shape, mean, spread)
        change = logsumexp(grown) + np.log(self.hazard)
        log_run = np.append(change, grown + np.log1p(-self.hazard))
        updated = np.column_stack(
            [
                (weight * mean + x) / (weight + 1),
                weight + 1,
                shape + 0.5,
                scale + weight * (x - mean) ** 2 / (2 * (weight + 1)),
            ]
        )
        law = np.vstack([[0.0, 0.1, 1.0, 1.0], updated])
        if len(log_run) > self.max_run:
            log_run[-2] = np.logaddexp(log_run[-2], log_run[-1])
            log_run, law = log_run[:-1], law[:-1]
        self.log_run_, self._law = log_run - logsumexp(log_run), law
        recent = logsumexp(self.log_run_[: self.n_after + 1])
        likely = self._n > self.n_after + 1 and recent > np.log(self.threshold)
        # One change, one alarm.
        self.drift_detected = bool(likely and not self._raised)
        self._raised = bool(likely)
        self.n_since_least = int(self.log_run_.argmax())
        return self

    _raised = False


_Seen = list[tuple[Floats, Floats, float]]


class DriftAlarm:
    """Watches the errors of a model on rows that it has not learnt yet.

    A detector sees the absolute error of each row in units of what has been usual in the latest 300
    rows, at most 6 of them, because one outlier is no drift. Errors that become smaller while
    a model learns raise no alarm. After an alarm, and at first, 100 rows tell what is usual.

    Parameters
    ----------
    detector : object with ``update``, default=None
        Takes one number at a time, and has ``drift_detected`` after it, as the detectors of
        ``river.drift`` do (ADWIN, PageHinkley, KSWIN ...). None is `PageHinkley` with
        ``delta=0.3, threshold=50``.

    Attributes
    ----------
    alarms_ : list of Alarm
        All so far, the latest 1 000.
    n_rows_ : int
        Rows watched.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_cl.drift import DriftAlarm
    >>> chance = np.random.default_rng(0)
    >>> X, error = chance.normal(size=(1000, 2)), chance.normal(size=1000)
    >>> error[600:] += 4
    >>> alarm = DriftAlarm().update(X, error)[0]
    >>> 600 < alarm.row < 640, alarm.kind
    (True, 'target given inputs')
    """

    _seen: _Seen

    def __init__(self, detector: Any = None) -> None:
        check_detector("detector", detector)
        self.detector = detector
        self.alarms_: list[Alarm] = []
        self.n_rows_ = 0
        self._begin()

    def update(self, X: Any, error: Any) -> list[Alarm]:
        """Watch some more rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Their inputs.
        error : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Target minus prediction, before they were learnt.

        Returns
        -------
        list of Alarm
            Those that these rows raised.
        """
        X = np.asarray(X, dtype=np.float64)
        error = np.asarray(error, dtype=np.float64).reshape(len(X), -1)
        raised = []
        for x, e in zip(X, error, strict=True):
            self.n_rows_ += 1
            if len(self._seen) >= _USUAL:
                usual = float(np.mean([size for _, _, size in self._seen])) or 1.0
                self._test.update(min(float(np.abs(e).mean()) / usual, _CLIP))
            self._seen = [*self._seen[1 - _LATEST :], (x, e, float(np.abs(e).mean()))]
            if self._test.drift_detected:
                raised.append(self._tell())
                self._begin()
        self.alarms_ = [*self.alarms_, *raised][-1000:]
        return raised

    def _begin(self) -> None:
        own = PageHinkley(0.3, 50.0)
        self._test: Any = own if self.detector is None else copy.deepcopy(self.detector)
        # A list, because a deque does not survive skops.
        self._seen = []

    def _tell(self) -> Alarm:
        """When it began, how strong it is, and what has moved."""
        n = min(getattr(self._test, "n_since_least", 0) or 50, len(self._seen) // 2)
        inputs = np.array([x for x, _, _ in self._seen])
        errors = np.array([e for _, e, _ in self._seen])
        sizes = np.array([size for _, _, size in self._seen])
        spread = inputs[:-n].std(0)
        move = np.abs(inputs[-n:].mean(0) - inputs[:-n].mean(0)) / np.where(spread > 0, spread, 1.0)
        kind = "noise"
        if ((move > _MOVED) & (move * np.sqrt(n) > _SIGNIFICANT)).any():
            kind = "inputs"
        elif max(_significance(inputs[-n:], column) for column in errors[-n:].T) > _SIGNIFICANT:
            kind = "target given inputs"
        strength = sizes[-n:].mean() / (sizes[:-n].mean() or 1.0)
        return Alarm(self.n_rows_ - 1, self.n_rows_ - n, float(strength), kind)


def _significance(inputs: Floats, errors: Floats) -> float:
    """Largest t of the mean error and of its correlation with an input."""
    n, spread = len(errors), errors.std() or 1.0
    centred = inputs - inputs.mean(0)
    scale = np.append(1.0, centred.std(0))
    sums = np.append(errors.sum(), centred.T @ errors)
    known = scale > 0
    return float((np.abs(sums[known]) / (scale[known] * spread * np.sqrt(n))).max())
