"""Strategy: hyper-parameters plus any of five hooks."""

from __future__ import annotations

from typing import Any, ClassVar

from sklearn.base import BaseEstimator
from torch import Tensor

from sklearn_cl._learner import Learner
from sklearn_cl._rows import Rows
from sklearn_cl._state import Stateful, n_bytes


class Strategy(Stateful, BaseEstimator):
    """Base class of strategies: what keeps the past alive.

    A strategy is hyper-parameters plus any of five hooks, each of which does nothing by
    default. ``__init__`` only stores; what is learnt goes into attributes that end in ``_``,
    which begin as class attributes. All vectors live in one flat ``theta`` and ``grad``.

    The estimator works on a copy of the strategy and keeps it only if the experience ends
    normally, so a hook may change its own state freely. It must not change `Rows` in place.

    Attributes
    ----------
    name : str
        The name under which the estimators know the strategy.
    rehearses : bool
        Whether `rehearse` brings back the past. Those that do in a chain divide it.
    holds_parameters : bool
        Whether it keeps vectors of parameters or their derivatives, which a change of the net's
        units (``standardize="running"``) would leave behind.
    portion : float
        The part of the past that a chain leaves to the strategy.

    Examples
    --------
    Pull the parameters back to where the last experience left them:

    >>> from sklearn_cl.strategies import Strategy
    >>> class L2Anchor(Strategy):
    ...     holds_parameters = True
    ...     anchor_ = None
    ...
    ...     def __init__(self, strength=1.0):
    ...         self.strength = strength
    ...
    ...     def adjust(self, grad, learner):
    ...         if self.anchor_ is not None:
    ...             grad.add_(learner.theta - self.anchor_, alpha=2 * self.strength)
    ...
    ...     def consolidate(self, experience, learner):
    ...         self.anchor_ = learner.theta.clone()
    """

    name: ClassVar[str] = ""
    rehearses: ClassVar[bool] = False
    holds_parameters = False
    portion = 1.0

    def check_params(self) -> None:
        """Raise a ValueError for a hyper-parameter out of its range; called before training."""

    def begin(self, experience: Rows, learner: Learner) -> Rows | None:
        """Before an experience: return the rows to train on, or None to learn nothing.

        Parameters
        ----------
        experience : Rows
            The new rows.
        learner : Learner
            The net; ``learner.reset()`` starts it anew.

        Returns
        -------
        Rows or None
            The rows to train on.
        """
        return experience

    def rehearse(self, batch: Rows, learner: Learner) -> Rows:
        """Before the forward pass: return the rows of this step, weighted.

        Parameters
        ----------
        batch : Rows
            Rows of this step; their weights average to about one.
        learner : Learner
            The net.

        Returns
        -------
        Rows
            The rows whose weighted mean loss is trained.
        """
        return batch

    def penalty(self, batch: Rows, learner: Learner) -> Tensor | None:
        """With the loss: return a scalar to add that autograd can differentiate, or None.

        Parameters
        ----------
        batch : Rows
            The rows of this step.
        learner : Learner
            The net.

        Returns
        -------
        Tensor of shape () or None
            The term to add to the loss.
        """
        return None

    def adjust(self, grad: Tensor, learner: Learner) -> None:
        """After the backward pass: change ``grad`` in place, or watch it.

        Parameters
        ----------
        grad : Tensor of shape (n_parameters,)
            The gradient of loss and penalty.
        learner : Learner
            The net.
        """

    def consolidate(self, experience: Rows, learner: Learner) -> None:
        """After an experience that ended normally: update memory and importances.

        Parameters
        ----------
        experience : Rows
            The new rows, all of them.
        learner : Learner
            The net.
        """

    @property
    def n_bytes(self) -> int:
        """Bytes of what has been learnt."""
        return n_bytes({key: value for key, value in vars(self).items() if key.endswith("_")})

    def __getstate__(self) -> dict[str, Any]:
        # BaseEstimator adds the release of scikit-learn, which it compares on loading.
        return {**BaseEstimator.__getstate__(self), **super().__getstate__()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        BaseEstimator.__setstate__(self, {})
        super().__setstate__(state)
