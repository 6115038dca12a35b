"""Functions of the score matrix.

``R[i, j]`` is the score on experience ``j`` after learning experience ``i``: rows are time,
columns are tests. All functions take one matrix of shape (T, T), or a stack of shape (..., T, T)
for which they return an array. They take scores, where greater is better; for errors pass
``greater_is_better=False``. The sign of a forgetting or a transfer is then the same: positive
forgetting means that it got worse, positive transfer that it got better.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_array

Floats = npt.NDArray[np.float64]


def final_score(R: npt.ArrayLike) -> Any:
    r"""Mean score on all experiences after the last one, :math:`\mathrm{mean}_j R_{Tj}`.

    The number to select on: it has the unit and the direction of the score.

    Parameters
    ----------
    R : array-like of shape (..., T, T)
        Score matrix, or a stack of them.

    Returns
    -------
    float or ndarray of shape (...)
        The mean of the last row.

    Examples
    --------
    >>> from sklearn_cl.metrics import final_score
    >>> final_score([[0.9, 0.0], [0.6, 0.8]])
    0.7
    """
    return _result(_matrix(R)[..., -1, :].mean(-1))


def learning_score(R: npt.ArrayLike) -> Any:
    r"""Mean score on each experience when it has just been learnt, :math:`\mathrm{mean}_j R_{jj}`.

    Parameters
    ----------
    R : array-like of shape (..., T, T)
        Score matrix, or a stack of them.

    Returns
    -------
    float or ndarray of shape (...)
        The mean of the diagonal: plasticity.

    Examples
    --------
    >>> from sklearn_cl.metrics import learning_score
    >>> round(learning_score([[0.9, 0.0], [0.6, 0.8]]), 3)
    0.85
    """
    return _result(np.diagonal(_matrix(R), axis1=-2, axis2=-1).mean(-1))


def anytime_score(R: npt.ArrayLike, *, average: Literal["time", "pairs"] = "time") -> Any:
    r"""Mean score on what had been learnt so far, over the whole stream.

    Parameters
    ----------
    R : array-like of shape (..., T, T)
        Score matrix, or a stack of them.
    average : {"time", "pairs"}, default="time"
        "time" is :math:`\mathrm{mean}_i \mathrm{mean}_{j \le i} R_{ij}`; "pairs" weighs all
        :math:`R_{ij}` with :math:`j \le i` alike, as Diaz-Rodriguez et al. do.

    Returns
    -------
    float or ndarray of shape (...)
        The mean.

    References
    ----------
    N. Diaz-Rodriguez et al., "Don't forget, there is more than forgetting: new metrics for
    continual learning", 2018, arXiv:1810.13166.

    Examples
    --------
    >>> from sklearn_cl.metrics import anytime_score
    >>> round(anytime_score([[0.9, 0.0], [0.6, 0.8]]), 3)
    0.8
    """
    R = _matrix(R)
    known = np.tri(R.shape[-1])
    if _option("average", average, ("time", "pairs")) == "time":
        known /= known.sum(1, keepdims=True)
    return _result((R * known).sum((-2, -1)) / known.sum())


def forgetting(
    R: npt.ArrayLike,
    *,
    greater_is_better: bool = True,
    best: Literal["earlier", "learnt"] = "earlier",
    clip: bool = False,
) -> Any:
    r"""Mean drop from each experience's best earlier score to its last; positive is worse.

    .. math:: \mathrm{mean}_{j < T} \left( \max_{l < T} R_{lj} - R_{Tj} \right)

    Never select on this alone: a model that learns nothing forgets nothing.

    Parameters
    ----------
    R : array-like of shape (..., T, T)
        Score matrix with at least two experiences, or a stack of them.
    greater_is_better : bool, default=True
        Whether R holds scores; False for errors.
    best : {"earlier", "learnt"}, default="earlier"
        Whether the best is sought in all earlier rows, or from :math:`l = j` on, when the
        experience has been learnt.
    clip : bool, default=False
        Whether an experience that got better counts as 0.

    Returns
    -------
    float or ndarray of shape (...)
        Forgetting in the unit of the score.

    References
    ----------
    A. Chaudhry et al., "Riemannian walk for incremental learning", ECCV 2018,
    arXiv:1801.10112.

    Examples
    --------
    >>> from sklearn_cl.metrics import forgetting
    >>> round(forgetting([[0.9, 0.0], [0.6, 0.8]]), 3)
    0.3
    """
    R = _pairs(R, greater_is_better)
    earlier = R[..., :-1, :-1]
    if _option("best", best, ("earlier", "learnt")) == "learnt":
        earlier = np.where(np.tri(earlier.shape[-1], dtype=bool), earlier, -np.inf)
    lost = earlier.max(-2) - R[..., -1, :-1]
    return _result(np.maximum(lost, 0).mean(-1) if clip else lost.mean(-1))


def backward_transfer(
    R: npt.ArrayLike,
    *,
    greater_is_better: bool = True,
    average: Literal["final", "pairs"] = "final",
) -> Any:
    r"""Mean gain on earlier experiences from learning later ones; negative is forgetting.

    .. math:: \mathrm{mean}_{j < T} \left( R_{Tj} - R_{jj} \right)

    Parameters
    ----------
    R : array-like of shape (..., T, T)
        Score matrix with at least two experiences, or a stack of them.
    greater_is_better : bool, default=True
        Whether R holds scores; False for errors.
    average : {"final", "pairs"}, default="final"
        "final" looks at the last row only, as Lopez-Paz and Ranzato do; "pairs" averages
        :math:`R_{ij} - R_{jj}` over all :math:`i > j`, as Diaz-Rodriguez et al. do.

    Returns
    -------
    float or ndarray of shape (...)
        Transfer in the unit of the score; positive is better.

    References
    ----------
    D. Lopez-Paz, M. Ranzato, "Gradient episodic memory for continual learning", NeurIPS 2017,
    arXiv:1706.08840.
    N. Diaz-Rodriguez et al., 2018, arXiv:1810.13166.

    Examples
    --------
    >>> from sklearn_cl.metrics import backward_transfer
    >>> round(backward_transfer([[0.9, 0.0], [0.6, 0.8]]), 3)
    -0.3
    """
    R = _pairs(R, greater_is_better)
    gain = R - np.diagonal(R, axis1=-2, axis2=-1)[..., None, :]
    if _option("average", average, ("final", "pairs")) == "final":
        return _result(gain[..., -1, :-1].mean(-1))
    return _result(gain[..., *np.tril_indices(R.shape[-1], -1)].mean(-1))


def forward_transfer(
    R: npt.ArrayLike, baseline: npt.ArrayLike, *, greater_is_better: bool = True
) -> Any:
    r"""Mean gain on each experience from those before it; positive is better.

    .. math:: \mathrm{mean}_{j > 1} \left( R_{j-1,j} - b_j \right)

    Parameters
    ----------
    R : array-like of shape (..., T, T)
        Score matrix with at least two experiences, or a stack of them.
    baseline : array-like of shape (..., T)
        Score on each experience without any learning, for instance that of predicting a
        constant; its first entry is not used.
    greater_is_better : bool, default=True
        Whether R holds scores; False for errors.

    Returns
    -------
    float or ndarray of shape (...)
        Transfer in the unit of the score.

    References
    ----------
    D. Lopez-Paz, M. Ranzato, "Gradient episodic memory for continual learning", NeurIPS 2017,
    arXiv:1706.08840.

    Examples
    --------
    >>> from sklearn_cl.metrics import forward_transfer
    >>> round(forward_transfer([[0.9, 0.4], [0.6, 0.8]], [0.1, 0.1]), 3)
    0.3
    """
    R = _pairs(R, greater_is_better)
    b = _vector("baseline", baseline, R, greater_is_better)
    before = np.diagonal(R, offset=1, axis1=-2, axis2=-1)
    return _result((before - b[..., 1:]).mean(-1))


def intransigence(R: npt.ArrayLike, joint: npt.ArrayLike, *, greater_is_better: bool = True) -> Any:
    r"""How much worse the last experience is learnt than by joint training, :math:`b_T - R_{TT}`.

    Parameters
    ----------
    R : array-like of shape (..., T, T)
        Score matrix, or a stack of them.
    joint : array-like of shape (..., T)
        Score on each experience of a model that was trained on all of them; only the last
        entry is used.
    greater_is_better : bool, default=True
        Whether R holds scores; False for errors.

    Returns
    -------
    float or ndarray of shape (...)
        Intransigence in the unit of the score; positive is worse.

    References
    ----------
    A. Chaudhry et al., "Riemannian walk for incremental learning", ECCV 2018,
    arXiv:1801.10112.

    Examples
    --------
    >>> from sklearn_cl.metrics import intransigence
    >>> round(intransigence([[0.9, 0.4], [0.6, 0.8]], [0.85, 0.85]), 3)
    0.05
    """
    R = _signed(_matrix(R), greater_is_better)
    b = _vector("joint", joint, R, greater_is_better)
    return _result(b[..., -1] - R[..., -1, -1])


def _matrix(R: npt.ArrayLike) -> Floats:
    checked: Floats = check_array(
        R, ensure_2d=False, allow_nd=True, dtype=np.float64, input_name="R"
    )
    if checked.ndim < 2 or checked.shape[-1] != checked.shape[-2]:
        raise ValueError(
            "R must be a square matrix of scores, R[i, j] on experience j after experience i; "
            f"got shape {checked.shape}."
        )
    return checked


def _pairs(R: npt.ArrayLike, greater_is_better: bool) -> Floats:
    checked = _matrix(R)
    if checked.shape[-1] < 2:
        raise ValueError("R must cover at least two experiences; got one.")
    return _signed(checked, greater_is_better)


def _signed(values: Floats, greater_is_better: bool) -> Floats:
    return values if greater_is_better else -values


def _vector(name: str, values: npt.ArrayLike, R: Floats, greater_is_better: bool) -> Floats:
    checked = np.asarray(values, dtype=np.float64)
    if checked.shape[-1:] != R.shape[-1:]:
        raise ValueError(
            f"{name} must hold one score for each of the {R.shape[-1]} experiences; "
            f"got shape {checked.shape}."
        )
    return _signed(checked, greater_is_better)


def _option(name: str, value: str, options: tuple[str, ...]) -> str:
    if value not in options:
        known = " or ".join(repr(option) for option in options)
        raise ValueError(f"{name} must be {known}; got {value!r}.")
    return value


def _result(values: Any) -> Any:
    return float(values) if np.ndim(values) == 0 else values
