"""Generated streams with known drift."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state

from sklearn_cl._checks import check_number

Floats = npt.NDArray[np.float64]


def make_drift_stream(
    n_experiences: int = 5,
    n_samples: int = 400,
    n_features: int = 8,
    *,
    noise: float = 0.2,
    random_state: Any = None,
) -> tuple[Floats, Floats, npt.NDArray[np.int64]]:
    r"""Generate a stream of measurements of a system that is changed again and again.

    In experience :math:`k` of :math:`T`

    .. math::
        y = c_k \left( 10 \sin(\pi x_0 x_1) + 20 (x_2 - 0.5)^2 + 10 x_3 + 5 x_4 \right)
            + \sigma \varepsilon

    which is Friedman's first surface times the system factor

    .. math:: c_k = 1 + 0.5 \cos(2 \pi k / 3)

    so that every third system is the same again. The inputs are uniform on [0, 1] but for the
    workload, which moves: :math:`x_2` is uniform on :math:`[0.6\,p, 0.6\,p + 0.4]` with
    :math:`p = (k \bmod 4) / 3`; and for the state of the system, which can be read from its
    last column, uniform on :math:`[k / T, (k + 1) / T]`. So the regime shows in the inputs, and
    one function fits all experiences. Columns in between are noise.

    Parameters
    ----------
    n_experiences : int, default=5
        Number of experiences, at least 1.
    n_samples : int, default=400
        Rows of each experience, at least 1.
    n_features : int, default=8
        Number of inputs, at least 6.
    noise : float, default=0.2
        Standard deviation of the noise, at least 0: the floor of the root mean squared error,
        in the unit of y (whose own is about 5).
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
    """
    check_number("n_experiences", n_experiences, low=1, integer=True)
    check_number("n_samples", n_samples, low=1, integer=True)
    check_number("n_features", n_features, low=6, integer=True)
    check_number("noise", noise, low=0)
    chance = check_random_state(random_state)
    experience = np.repeat(np.arange(n_experiences), n_samples)
    X = chance.uniform(size=(len(experience), n_features))
    X[:, 2] = 0.6 * (experience % 4) / 3 + 0.4 * X[:, 2]
    X[:, -1] = (experience + X[:, -1]) / n_experiences
    surface = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2
    surface += 10 * X[:, 3] + 5 * X[:, 4]
    factor = 1 + 0.5 * np.cos(2 * np.pi * experience / 3)
    return X, factor * surface + noise * chance.normal(size=len(experience)), experience
