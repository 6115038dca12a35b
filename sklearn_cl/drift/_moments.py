"""Carry old rows across a drift."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.linear_model import RidgeCV
from sklearn.utils import check_array, check_consistent_length
from sklearn.utils.validation import check_is_fitted

from sklearn_cl._checks import check_option

Floats = npt.NDArray[np.float64]
_ALPHAS = np.logspace(-2, 4, 13)


class MomentMatching(BaseEstimator):
    r"""Change rows measured before a drift so that they can serve after it.

    Few rows have been measured since the system changed, many before. With the moments
    :math:`\mu, \sigma, \Sigma` of old (o) and new (n) rows it maps

    - "anchored": :math:`y' = a y + b + c^T x`, where :math:`y_n \approx a f(x_n) + b + c^T x_n`
      is fitted on the new rows to the predictions of the old model :math:`f`, by a ridge
      regression that shrinks towards no change and chooses how much by leaving one out;
    - "marginal": :math:`y' = \mu_n + \frac{\sigma_n}{\sigma_o} (y - \mu_o)`;
    - "joint": :math:`z' = \mu_n + L_n L_o^{-1} (z - \mu_o)` of :math:`z = (x, y)`, with
      :math:`\Sigma = L L^T`.

    "marginal" and "joint" take a move of the inputs for one of the system: if only larger jobs
    are run today, they make the old ones slower. "anchored" compares with what was expected
    for the same inputs, so it does not. Use it where the old law is obsolete; to be right on
    both, keep the rows as they are and rehearse them.

    Parameters
    ----------
    kind : {"anchored", "marginal", "joint"}, default="anchored"
        The map.
    model : fitted estimator, default=None
        The old model, for "anchored"; only its ``predict`` is used.

    Attributes
    ----------
    scale_, offset_ : float
        :math:`a` and :math:`b` of "anchored" and "marginal".
    coef_ : ndarray of shape (n_features,)
        :math:`c` of "anchored".

    References
    ----------
    S. Madireddy et al., "Adaptive learning for concept drift in application performance
    modeling", ICPP 2019, doi:10.1145/3337821.3337922, which matches moments; "anchored" is ours.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_cl.drift import MomentMatching
    >>> X = np.zeros((4, 1))
    >>> match = MomentMatching("marginal").fit(X, [10, 14, 18, 22], X, [1, 2, 3, 4])
    >>> match.carry(X, [1, 2, 3, 4])[1]
    array([10., 14., 18., 22.])
    """

    def __init__(self, kind: str = "anchored", model: Any = None) -> None:
        self.kind = kind
        self.model = model

    def fit(self, X_new: Any, y_new: Any, X_old: Any = None, y_old: Any = None) -> Self:
        """Learn the map.

        Parameters
        ----------
        X_new : {array-like, DataFrame} of shape (n_new, n_features)
            Inputs since the drift.
        y_new : array-like of shape (n_new,)
            Their targets.
        X_old, y_old : array-like of shape (n_old, n_features) and (n_old,), default=None
            Rows from before; "marginal" and "joint" need them.

        Returns
        -------
        self : object
            Fitted.

        Raises
        ------
        ValueError
            If a parameter is not what it must be, or what the map needs is missing.
        """
        check_option("kind", self.kind, ["anchored", "marginal", "joint"])
        if self.kind == "anchored" and not hasattr(self.model, "predict"):
            raise ValueError(
                "model must be the fitted old model for kind='anchored'; got "
                f"{type(self.model).__name__}."
            )
        if self.kind != "anchored" and (X_old is None or y_old is None):
            raise ValueError(f"X_old and y_old must be given for kind={self.kind!r}; got None.")
        X, y = _checked(X_new, y_new)
        least = {"anchored": 1, "marginal": 3, "joint": X.shape[1] + 2}[self.kind]
        if len(y) < least:
            raise ValueError(
                f"There must be at least {least} new rows to know the moments for "
                f"kind={self.kind!r}; got {len(y)}. kind='anchored' does with less."
            )
        if self.kind == "anchored":
            expected = np.asarray(self.model.predict(X_new), dtype=np.float64)
            self._anchor(X, y, expected)
        elif self.kind == "marginal":
            _, old = _checked(X_old, y_old)
            self.scale_ = float(y.std() / old.std()) if old.std() else 1.0
            self.offset_ = float(y.mean() - self.scale_ * old.mean())
            self.coef_ = np.zeros(X.shape[1])
        else:
            new, old = np.column_stack([X, y]), np.column_stack(_checked(X_old, y_old))
            if old.shape[1] != new.shape[1]:
                raise ValueError(
                    f"X_old must have {X.shape[1]} columns, as X_new; got {old.shape[1] - 1}."
                )
            self._from, self._to = old.mean(0), new.mean(0)
            self._map = _root(new) @ np.linalg.inv(_root(old))
        self.n_features_in_ = X.shape[1]
        return self

    def carry(self, X_old: Any, y_old: Any) -> tuple[Any, Floats]:
        """Rows as they would have been measured after the drift.

        Parameters
        ----------
        X_old : {array-like, DataFrame} of shape (n_old, n_features)
            Inputs from before.
        y_old : array-like of shape (n_old,)
            Their targets.

        Returns
        -------
        X : {array-like, DataFrame} of shape (n_old, n_features)
            The inputs, which only "joint" changes.
        y : ndarray of shape (n_old,)
            The targets.
        """
        check_is_fitted(self)
        X, y = _checked(X_old, y_old)
        if X.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X_old must have {self.n_features_in_} columns, as the new rows; got {X.shape[1]}."
            )
        if self.kind == "joint":
            moved = self._to + (np.column_stack([X, y]) - self._from) @ self._map.T
            return moved[:, :-1], moved[:, -1]
        return X_old, self.scale_ * y + self.offset_ + X @ self.coef_

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_features_in_")

    def _anchor(self, X: Floats, y: Floats, expected: Any) -> None:
        """What is missing to the old model, as a little as the new rows ask for."""
        known = np.column_stack([expected, X])
        centre, spread = known.mean(0), known.std(0)
        spread[spread == 0] = 1.0
        # As many times a column's unit as new rows pay for; the mean is not shrunk.
        ridge = RidgeCV(_ALPHAS).fit((known - centre) / spread, y - expected)
        slope: Floats = ridge.coef_ / spread
        self.scale_ = 1 + float(slope[0])
        self.coef_ = slope[1:]
        self.offset_ = float(ridge.intercept_ - slope @ centre)


def _checked(X: Any, y: Any) -> tuple[Floats, Floats]:
    X = check_array(X, dtype=np.float64, input_name="X")
    y = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
    check_consistent_length(X, y)
    if y.ndim != 1:
        raise ValueError(f"y must be of shape (n_samples,); got {y.shape}.")
    return X, y


def _root(z: Floats) -> Floats:
    """Lower triangle whose square is the covariance of the rows."""
    covariance: Floats = np.atleast_2d(np.cov(z.T, bias=True)).astype(np.float64)
    jitter = 1e-12 * np.diag(np.maximum(np.diag(covariance), 1e-12))
    root: Floats = np.asarray(np.linalg.cholesky(covariance + jitter), dtype=np.float64)
    return root
