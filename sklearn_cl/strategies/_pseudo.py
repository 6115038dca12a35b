"""Pseudo-rehearsal: keep no row, but a density of the inputs and the net that knew the answers."""

from __future__ import annotations

import warnings
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from sklearn_cl._checks import check_number
from sklearn_cl._learner import Learner
from sklearn_cl._rows import Rows
from sklearn_cl.strategies._rehearsal import Rehearsal

_FEW_VALUES = 10
# More rows fit a mixture no better for our purpose, and take longer.
_ROWS_OF_A_COMPONENT = 100
_LEAST_FITTED = 1000
_LEAST_POOL = 2000
Floats = npt.NDArray[np.float64]


class Mixture(NamedTuple):
    """Gaussians: the rows that each stands for, their means and covariances."""

    weights: Floats
    means: Floats
    covariances: Floats


class PseudoRehearsal(Rehearsal):
    r"""Pseudo-rehearsal: invent old inputs, and teach the net what it used to answer to them.

    After each experience it fits a mixture of Gaussians to the inputs. Before the next one it
    draws inputs from all mixtures, asks the net as it stands for its answers, and rehearses
    those as `Replay` would. It keeps no row, so it suits users who may not store data. Columns
    of few values (switches, categories) are drawn from the values seen, not in between.

    Parameters
    ----------
    n_components : int, default=5
        Gaussians for each experience, at least 1; fewer if it has few rows.
    max_components : int, default=50
        Gaussians kept in all, at least 1. Beyond it, the two whose union is the least loss are
        made one, so that the state stays bounded.
    strength : "share" or float, default="share"
        Weight of the past relative to the new rows, at least 0; "share" follows the numbers of
        rows. 0 is `Naive`.
    batch_size : int or None, default=None
        Invented rows in each step; None means as many as a full batch of the estimator.

    Attributes
    ----------
    mixture_ : tuple of ndarray
        Weights, means and covariances of the Gaussians, in standardised inputs.
    values_ : dict of int to ndarray
        The values of each column that has few.

    Notes
    -----
    Take it when no row may be kept. Together with a few rows, in a `chain`, it is better still.

    References
    ----------
    A. Robins, "Catastrophic forgetting, rehearsal and pseudorehearsal", Connection Science
    7(2), 1995.
    H. Shin et al., "Continual learning with deep generative replay", NeurIPS 2017,
    arXiv:1705.08690.
    A. R. Runnalls, "Kullback-Leibler approach to Gaussian mixture reduction", IEEE TAES 43(3),
    2007.

    Examples
    --------
    >>> from sklearn_cl.strategies import PseudoRehearsal
    >>> PseudoRehearsal(n_components=10)
    PseudoRehearsal(n_components=10)
    """

    name = "pseudo"
    mixture_: tuple[Floats, Floats, Floats] | None = None
    values_: dict[int, Floats] | None = None
    total_ = 0.0

    def __init__(
        self,
        n_components: int = 5,
        max_components: int = 50,
        strength: float | Literal["share"] = "share",
        batch_size: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.max_components = max_components
        self.strength = strength
        self.batch_size = batch_size

    def check_params(self) -> None:
        check_number("n_components", self.n_components, low=1, integer=True)
        check_number("max_components", self.max_components, low=1, integer=True)
        check_number("strength", self.strength, low=0, also=["share"])
        super().check_params()

    def begin(self, experience: Rows, learner: Learner) -> Rows | None:
        if self.mixture_ is not None and self.strength != 0:
            n_rows = max(len(experience), _LEAST_POOL)
            drawn = self._draw(n_rows, _chance(learner))
            X = torch.from_numpy(drawn).to(experience.X)
            pool = Rows(X, learner.predict(X))
            self.recall(pool, self.total_, experience, learner, self.strength)
        return experience

    def consolidate(self, experience: Rows, learner: Learner) -> None:
        self.rest()
        X = experience.X.double().cpu().numpy()
        chance = _chance(learner)
        self.values_ = _few_values(X, self.values_)
        fresh = _fit(X, self.n_components, experience.total, chance)
        if self.mixture_ is not None:
            fresh = Mixture(*map(np.concatenate, zip(self.mixture_, fresh, strict=True)))
        # A plain tuple, so that a pickle needs no class of ours.
        weights, means, covariances = reduce_mixture(fresh, self.max_components)
        self.mixture_ = (weights, means, covariances)
        self.total_ += experience.total

    @property
    def n_bytes(self) -> int:
        """Bytes of the mixture and the values."""
        kept: list[Any] = [*(self.mixture_ or ()), *(self.values_ or {}).values()]
        return sum(array.nbytes for array in kept)

    def _draw(self, n_rows: int, chance: np.random.Generator) -> Floats:
        assert self.mixture_ is not None and self.values_ is not None
        weights, means, covariances = self.mixture_
        which = chance.choice(len(weights), size=n_rows, p=weights / weights.sum())
        X = np.empty((n_rows, means.shape[1]))
        for k in np.unique(which):
            rows = which == k
            # Stable where a covariance has lost its rank.
            spread, axes = np.linalg.eigh(covariances[k])
            noise = chance.normal(size=(rows.sum(), len(spread)))
            X[rows] = means[k] + (noise * np.sqrt(spread.clip(min=0))) @ axes.T
        for column, values in self.values_.items():
            X[:, column] = values[np.abs(X[:, [column]] - values).argmin(1)]
        return X


def reduce_mixture(mixture: Mixture, size: int) -> Mixture:
    """Merge pairs, with the moments of both, until ``size`` are left; the least loss first."""
    n = len(mixture.weights)
    if n <= size:
        return mixture
    mixture = Mixture(*map(np.array, mixture))
    loss = np.full((n, n), np.inf)
    i, j = np.triu_indices(n, 1)
    loss[i, j] = _loss(mixture, i, j)
    while len(mixture.weights) > size:
        kept, lost = divmod(int(loss.argmin()), len(loss))
        merged = _merged(mixture, [kept], [lost])
        for array, value in zip(mixture, merged, strict=True):
            array[kept] = value[0]
        mixture = Mixture(*(np.delete(array, lost, axis=0) for array in mixture))
        loss = np.delete(np.delete(loss, lost, axis=0), lost, axis=1)
        # Only pairs with the merged one have changed; kept < lost, so it has kept its place.
        others = np.delete(np.arange(len(loss)), kept)
        fresh = _loss(mixture, others, np.full(len(others), kept))
        loss[np.minimum(others, kept), np.maximum(others, kept)] = fresh
    return mixture


def _loss(mixture: Mixture, i: Any, j: Any) -> Floats:
    """Runnalls' bound on what merging each pair loses."""
    weights, _, covariances = mixture
    logs = weights * np.linalg.slogdet(covariances)[1]
    total, _, merged = _merged(mixture, i, j)
    lost: Floats = total * np.linalg.slogdet(merged)[1] - logs[i] - logs[j]
    return lost


def _merged(mixture: Mixture, i: Any, j: Any) -> tuple[Floats, Floats, Floats]:
    """Weight, mean and covariance of the union of each pair."""
    weights, means, covariances = mixture
    total = weights[i] + weights[j]
    p, q = (weights[i] / total)[:, None], (weights[j] / total)[:, None]
    apart = means[i] - means[j]
    outer = apart[:, :, None] * apart[:, None, :]
    merged = p[:, None] * covariances[i] + q[:, None] * covariances[j] + (p * q)[:, None] * outer
    return total, p * means[i] + q * means[j], merged


def _fit(X: Floats, n_components: int, total: float, chance: np.random.Generator) -> Mixture:
    n_fitted = max(_LEAST_FITTED, _ROWS_OF_A_COMPONENT * n_components)
    if len(X) > n_fitted:
        X = X[chance.choice(len(X), size=n_fitted, replace=False)]
    n_distinct = len(np.unique(X, axis=0))
    model = GaussianMixture(
        min(n_components, n_distinct),
        reg_covar=1e-3,
        tol=1e-2,
        random_state=int(chance.integers(2**31)),
    )
    with warnings.catch_warnings():
        # A mixture that has not quite settled invents inputs just as well.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X if len(X) > 1 else np.repeat(X, 2, axis=0))
    return Mixture(model.weights_ * total, model.means_, model.covariances_)


def _few_values(X: Floats, known: dict[int, Floats] | None) -> dict[int, Floats]:
    """Columns that have had few values so far, and these."""
    found = {}
    for column in range(X.shape[1]) if known is None else known:
        values = X[:, column] if known is None else np.append(known[column], X[:, column])
        distinct = np.unique(values)
        if len(distinct) <= _FEW_VALUES:
            found[column] = distinct
    return found


def _chance(learner: Learner) -> np.random.Generator:
    return np.random.default_rng(int(torch.randint(2**62, (1,), generator=learner.rng)))
