"""Generated streams with known drift."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import sici
from sklearn.utils import Bunch, check_random_state

from sklearn_cl._checks import check_number, check_option

Floats = npt.NDArray[np.float64]


class Kind(NamedTuple):
    """What drifts: the factor of the system, its workload, and whether the inputs tell."""

    factor: str
    workload: bool = False
    hidden: bool = False


KINDS = {
    "abrupt": Kind("golden"),
    "gradual": Kind("golden"),
    "recurring": Kind("period", workload=True),
    "scale": Kind("powers"),
    "covariate": Kind("one", workload=True),
    "hidden": Kind("golden", hidden=True),
}


def make_drift_stream(
    n_experiences: int = 5,
    n_samples: int = 400,
    n_features: int = 8,
    *,
    drift: str = "recurring",
    noise: float = 0.2,
    facts: bool = False,
    random_state: Any = None,
) -> Any:
    r"""Generate a stream of measurements of a system that is changed again and again.

    In experience :math:`k` of :math:`T`

    .. math::
        y = c \left( 10 \sin(\pi x_0 x_1) + 20 (x_2 - 0.5)^2 + 10 x_3 + 5 x_4 \right)
            + \sigma \varepsilon

    which is Friedman's first surface times a factor of the system. Inputs are uniform on [0, 1],
    but for what `drift` says of the workload :math:`x_2` and for the state of the system, the
    last column, which is uniform on :math:`[k / T, (k + 1) / T]`: the regime shows in the
    inputs, and one function fits all experiences. Columns in between are noise.

    Parameters
    ----------
    n_experiences : int, default=5
        Number of experiences, at least 1.
    n_samples : int, default=400
        Rows of each experience, at least 1.
    n_features : int, default=8
        Number of inputs, at least 6.
    drift : str, default="recurring"
        What changes from one experience to the next:

        "abrupt"
            The system: :math:`c_k = 0.5 + (k \varphi + 0.5) \bmod 1` with the golden ratio
            :math:`\varphi`, which never returns and jumps by 0.38 or 0.62.
        "gradual"
            The same, but row by row, in equal steps from :math:`c_{k-1}` to :math:`c_k`. The last
            column grows as evenly, from row to row, so that it tells how far the change is.
        "recurring"
            :math:`c_k = 1 + 0.5 \cos(2 \pi k / 3)`: every third system is the same again. The
            workload moves as well, as with "covariate".
        "scale"
            Each system has three times the throughput of the last: :math:`c_k = 3^k`, with at
            most 300 experiences.
        "covariate"
            The workload: :math:`x_2` is uniform on :math:`[0.6\,p, 0.6\,p + 0.4]` with
            :math:`p = (k \bmod 4) / 3`. The system stays: :math:`c = 1`.
        "hidden"
            As "abrupt", but the last column is noise: no input shows the state of the system.
    noise : float, default=0.2
        Standard deviation of the noise, at least 0, in the unit of y. That of the surface, before
        its factor, is about 5.
    facts : bool, default=False
        Return what is known of the stream as well.
    random_state : int, RandomState instance or None, default=None
        Draws inputs and noise.

    Returns
    -------
    X : ndarray of shape (n_experiences * n_samples, n_features)
        Inputs, in the order of time.
    y : ndarray of shape (n_experiences * n_samples,)
        Targets.
    experience : ndarray of shape (n_experiences * n_samples,)
        Number of the experience of each row, from 0.
    facts : `sklearn.utils.Bunch`
        Only with ``facts=True``; computed in closed form, not from the rows:

        clean : ndarray of shape (n_experiences * n_samples,)
            The targets without noise, which nothing can predict better.
        factor : ndarray of shape (n_experiences * n_samples,)
            The factor :math:`c` of each row.
        noise_rmse, noise_mae : float
            Expected errors of ``clean``.
        best_constant : ndarray of shape (n_experiences,)
            The constant with the least squared error in each experience: the mean of its y.
        constant_rmse : ndarray of shape (n_experiences,)
            The expected error of that constant.
        blind_rmse : float
            The least expected error, over the whole stream, of a model that sees all inputs
            but the last.

    References
    ----------
    J. H. Friedman, "Multivariate adaptive regression splines", Annals of Statistics 19(1),
    1991.

    Examples
    --------
    >>> from sklearn_cl.datasets import make_drift_stream
    >>> X, y, experience = make_drift_stream(n_experiences=3, n_samples=100, random_state=0)
    >>> X.shape, y.shape, experience[[0, -1]].tolist()
    ((300, 8), (300,), [0, 2])
    >>> *_, facts = make_drift_stream(3, drift="scale", facts=True, random_state=0)
    >>> facts.best_constant.round(1)
    array([ 14.4,  43.2, 129.7])
    """
    check_option("drift", drift, KINDS)
    # The square of 3^300 is what a double can hold.
    most = 300 if drift == "scale" else np.inf
    check_number("n_experiences", n_experiences, low=1, high=most, integer=True)
    check_number("n_samples", n_samples, low=1, integer=True)
    check_number("n_features", n_features, low=6, integer=True)
    check_number("noise", noise, low=0)
    chance = check_random_state(random_state)
    kind = KINDS[drift]
    experience = np.repeat(np.arange(n_experiences), n_samples)
    X = chance.uniform(size=(len(experience), n_features))
    start, width = _workload(np.arange(n_experiences), kind)
    X[:, 2] = start[experience] + width * X[:, 2]
    done = np.tile((np.arange(n_samples) + 0.5) / n_samples, n_experiences)
    if not kind.hidden:
        within = done if drift == "gradual" else X[:, -1]
        X[:, -1] = (experience + within) / n_experiences
    surface = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2
    surface += 10 * X[:, 3] + 5 * X[:, 4]
    factor = _factor(experience, kind.factor)
    if drift == "gradual":
        before = _factor(np.maximum(experience - 1, 0), kind.factor)
        factor = before + done * (factor - before)
    clean = factor * surface
    y = clean + noise * chance.normal(size=len(experience))
    if not facts:
        return X, y, experience
    by_experience = factor.reshape(n_experiences, n_samples)
    return X, y, experience, _facts(clean, by_experience, start, width, noise)


def _factor(experience: npt.NDArray[np.int64], name: str) -> Floats:
    k = experience.astype(float)
    factor: Floats = np.ones(len(k))
    if name == "golden":
        factor = 0.5 + (k * (1 + 5**0.5) / 2 + 0.5) % 1
    if name == "period":
        factor = 1 + 0.5 * np.cos(2 * np.pi * k / 3)
    if name == "powers":
        factor = 3.0**k
    return factor


def _workload(k: npt.NDArray[np.int64], kind: Kind) -> tuple[Floats, float]:
    """Where the workload starts in each experience, and its range."""
    return (0.6 * (k % 4) / 3, 0.4) if kind.workload else (np.zeros(len(k)), 1.0)


def _facts(clean: Floats, factor: Floats, start: Floats, width: float, noise: float) -> Bunch:
    mean, variance = _moments(start, width)
    best_constant = factor.mean(axis=1) * mean
    square = (factor**2).mean(axis=1) * (variance + mean**2)
    # Blind to the state, the best answer to a workload is the surface times the mean factor of
    # the experiences that have it.
    edges = np.unique(np.append(start, start + width).round(9))
    blind = 0.0
    for low, high in pairwise(edges):
        here = factor[(start < high - 1e-6) & (start + width > low + 1e-6)]
        mean, variance = _moments(low, high - low)
        part = len(here) / len(factor) * (high - low) / width
        blind += part * here.var() * (variance + mean**2) if len(here) else 0.0
    return Bunch(
        clean=clean,
        factor=factor.ravel(),
        noise_rmse=float(noise),
        noise_mae=float(noise * np.sqrt(2 / np.pi)),
        best_constant=best_constant,
        constant_rmse=np.sqrt(square - best_constant**2 + noise**2),
        blind_rmse=float(np.sqrt(blind + noise**2)),
    )


def _moments(start: Any, width: float) -> tuple[Any, Any]:
    """Mean and variance of the surface, the inputs being independent and uniform."""
    # The means of sin(pi u v) and cos(2 pi u v) over the unit square.
    sine = (np.euler_gamma + np.log(np.pi) - sici(np.pi)[1]) / np.pi
    cosine = sici(2 * np.pi)[0] / (2 * np.pi)
    low, high = start - 0.5, start + width - 0.5
    bowl = 20 * (high**3 - low**3) / (3 * width)
    bowl_square = 400 * (high**5 - low**5) / (5 * width)
    mean = 10 * sine + bowl + 5 + 2.5
    variance = 50 * (1 - cosine) - (10 * sine) ** 2 + bowl_square - bowl**2 + (100 + 25) / 12
    return mean, variance
