"""The scikit-learn contract around a net and a strategy."""

from __future__ import annotations

import copy
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import torch
from scipy.sparse import issparse, vstack
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils import Tags, check_array, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import nn

from sklearn_cl._checks import check_detector, check_number, check_option
from sklearn_cl._experiences import split_experiences
from sklearn_cl._net import ContinualNet, Snapshot, usable_device
from sklearn_cl._plan import Plan
from sklearn_cl._rows import Rows
from sklearn_cl._scaling import Scaling
from sklearn_cl._state import to_device
from sklearn_cl._units import Units
from sklearn_cl.drift import Alarm, DriftAlarm, detect_experiences
from sklearn_cl.strategies import Strategy
from sklearn_cl.strategies._registry import make_strategy

_DTYPES = {"float32": torch.float32, "float64": torch.float64}
# Inputs have often been float32 on their way, whatever they are now: a constant then jitters.
_INPUT_RESOLUTION = 4 * float(np.finfo(np.float32).eps)
_TARGET_RESOLUTION = 8 * float(np.finfo(np.float64).eps)
_KEPT_RECORDS = 1000
_OPEN_ROWS = 5000
_PREDICTED_AT_ONCE = 2**14


class ExperienceRecord(NamedTuple):
    """How one experience went.

    Parameters
    ----------
    label : object
        Its label in ``fit``, or its number in the stream.
    n_rows : int
        Rows with a positive weight.
    n_validation : int
        Those held out for early stopping; 0 if there were too few or none were asked for.
    n_epochs : int
        Epochs trained; 0 if the strategy does not train.
    loss : float
        Training loss of the last epoch, in units of the standardised target; NaN without one.
    seconds : float
        Wall time, consolidation included.
    state_bytes : int
        Bytes of what the strategy keeps after it.
    """

    label: Any
    n_rows: int
    n_validation: int
    n_epochs: int
    loss: float
    seconds: float
    state_bytes: int


class OpenExperience(NamedTuple):
    """Rows of an experience that has not ended, and how things stood when it began."""

    X: Any
    y: npt.NDArray[np.float64]
    weight: npt.NDArray[np.float64]
    start: tuple[Strategy, Snapshot, tuple[torch.Tensor, torch.Tensor]] | None


class BaseContinualRegressor(RegressorMixin, BaseEstimator):
    """Everything that the estimators share; a subclass says which module to train."""

    # scikit-learn reads these as the metadata that each method asks for.
    __metadata_request__fit: ClassVar = {"experience": True}
    __metadata_request__predict: ClassVar = {"after": True}
    __metadata_request__score: ClassVar = {"experience": True}

    strategy: Any
    loss: str
    solver: str
    learning_rate: str
    learning_rate_init: float
    averaging: float
    alpha: float
    batch_size: int | str
    max_iter: int
    tol: float
    n_iter_no_change: int
    shuffle: bool
    early_stopping: bool
    validation_fraction: float
    momentum: float
    nesterovs_momentum: bool
    beta_1: float
    beta_2: float
    epsilon: float
    standardize: bool | str
    alarm: Any
    _open: OpenExperience | None
    max_snapshots: int | None
    dtype: str
    device: str
    callbacks: Any
    verbose: bool
    random_state: Any

    @abstractmethod
    def _recipe(self) -> Callable[[int, int, torch.Generator], nn.Module]:
        """What makes the module."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None, experience: Any = None) -> Self:
        """Forget everything and learn a stream of experiences.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Inputs.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights, at least 0; a row of weight 0 counts as absent.
        experience : array-like of shape (n_samples,) or "auto", default=None
            Label of the experience of each row. They are learnt one after the other in
            ascending order of the labels, each as by one `partial_fit`. "auto" looks for them
            with `sklearn_cl.drift.detect_experiences`; the rows must then be in the order of
            time. None makes all rows one experience.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        ValueError
            If an input or a parameter is not what it must be, or if the training diverges.
            The estimator is then as it was before the call.
        """
        with self._unharmed():
            X, y, weight = self._check_data(X, y, sample_weight, reset=True)
            if isinstance(experience, str):
                check_option("experience", experience, ["auto"])
                X, y, weight = _without_zeros(X, y, weight, "of the stream")
                experience = detect_experiences(X, y)
            parts = split_experiences(experience, len(y))
            plan, strategy = self._check_params()
            pieces = [
                (label, *_without_zeros(X[rows], y[rows], weight[rows], label))
                for label, rows in parts
            ]
            self._start(*pieces[0][1:], strategy)
            for piece in pieces:
                self._learn(*piece, plan, strategy)
        return self

    def partial_fit(
        self, X: Any, y: Any, sample_weight: Any = None, experience: str | None = None
    ) -> Self:
        """Learn one more experience, or a piece of one.

        One call is one whole experience: up to ``max_iter`` epochs, then consolidation. (One
        call of scikit-learn's ``partial_fit`` is one epoch.) The optimizer is new in each
        experience; the weights and what the strategy keeps go on.

        With ``experience="auto"`` nobody needs to know where experiences begin: the calls are
        pieces of a stream, and a new experience begins when the alarm is raised on a piece, or
        after 5 000 rows. Until then the rows of the open experience are kept, and each call learns
        all of them as one experience, in the place of the call before: the model is the one that
        labels with the same boundaries would have made.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Inputs of the experience; one row is enough.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights, at least 0; a row of weight 0 counts as absent.
        experience : "auto" or None, default=None
            None makes the rows an experience of their own.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        ValueError
            If an input or a parameter is not what it must be, or if the training diverges.
            The estimator is then as it was before the call.
        """
        first = not hasattr(self, "net_")
        with self._unharmed():
            if experience is not None:
                check_option("experience", experience, ["auto"])
            X, y, weight = self._check_data(X, y, sample_weight, reset=first)
            plan, strategy = self._check_params()
            label = 0 if first else self.n_experiences_
            X, y, weight = _without_zeros(X, y, weight, label)
            if first:
                self._start(X, y, weight, strategy)
                raised = False
            else:
                self._check_structure(strategy)
                raised = self._watch(X, y, always=experience == "auto")
            if experience == "auto":
                self._learn_piece(X, y, weight, plan, strategy, ends=raised)
            else:
                self._open = None
                self._learn(label, X, y, weight, plan, strategy)
        return self

    def monitor(self, X: Any, y: Any) -> bool:
        """Watch the errors on rows without learning them; see ``alarm``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Inputs.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            True targets.

        Returns
        -------
        bool
            Whether these rows have raised the alarm; ``alarm_`` says more.
        """
        check_is_fitted(self)
        with self._unharmed():
            X, y, _ = self._check_data(X, y, None, reset=False)
            return self._watch(X, y, always=True)

    @property
    def alarm_(self) -> Alarm | None:
        """The latest alarm, a `sklearn_cl.drift.Alarm`, or None."""
        check_is_fitted(self)
        alarms = self._alarm.alarms_ if self._alarm else []
        return alarms[-1] if alarms else None

    def predict(self, X: Any, after: int | None = None) -> npt.NDArray[Any]:
        """Predict, with the latest model or as it stood after an earlier experience.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Inputs.
        after : int, default=None
            Number of the experience, counted from 0, or from the end if negative. None means
            the latest.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Predictions in the unit of the target, with the floating-point type of X.

        Raises
        ------
        ValueError
            If there is no such experience, or its snapshot has been dropped
            (``max_snapshots``).
        """
        check_is_fitted(self)
        snapshot = self._snapshot_after(after)
        X = self._check_X(X, reset=False)
        predictor = self.net_.predictor(snapshot)
        y = np.empty((X.shape[0], self.n_outputs_), dtype=X.dtype)
        for start in range(0, X.shape[0], _PREDICTED_AT_ONCE):
            piece = slice(start, start + _PREDICTED_AT_ONCE)
            y[piece] = self._target_scaling.backward(
                predictor(self._scaling.forward(_dense(X[piece])).astype(np.float64, copy=False))
            )
        return y[:, 0] if self.n_outputs_ == 1 else y

    def score(self, X: Any, y: Any, sample_weight: Any = None, experience: Any = None) -> float:
        """Coefficient of determination R^2 of the latest model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Inputs.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            True targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights.
        experience : array-like of shape (n_samples,), default=None
            Label of the experience of each row. With labels, the score is the mean over the
            experiences of the R^2 in each: the final score of the score matrix.

        Returns
        -------
        float
            R^2, 1 at best.
        """
        if experience is None:
            return float(super().score(X, y, sample_weight))
        y, answer = np.asarray(y), self.predict(X)
        weight = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight)
        return float(
            np.mean(
                [
                    r2_score(y[rows], answer[rows], sample_weight=weight[rows])
                    for _, rows in split_experiences(experience, len(y))
                ]
            )
        )

    def set_params(self, **params: Any) -> Self:
        """Set parameters; those of a strategy object as ``strategy__strength``.

        What has been learnt does not change. A new value acts from the next call.

        Parameters
        ----------
        **params : dict
            Parameters by name.

        Returns
        -------
        self : object
            The estimator.
        """
        strategy = params.get("strategy", self.strategy)
        inner = [name for name in params if name.startswith("strategy__")]
        if inner and isinstance(strategy, str):
            cls = type(make_strategy(strategy)).__name__
            raise ValueError(
                f"strategy must be an object to set {inner[0]}; got the name {strategy!r}. "
                f"Pass strategy={cls}() from sklearn_cl.strategies."
            )
        super().set_params(**params)
        return self

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.multi_output = True
        return tags

    def _check_X(self, X: Any, *, reset: bool, **options: Any) -> Any:
        return validate_data(
            self,
            X,
            reset=reset,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            **options,
        )

    def _check_data(
        self, X: Any, y: Any, sample_weight: Any, *, reset: bool
    ) -> tuple[Any, npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """The border: from here on X is a float matrix, y and weight are float64."""
        X, y = self._check_X(X, reset=reset, y=y, multi_output=True, y_numeric=True)
        y = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
        if not reset and y.shape[1] != self.n_outputs_:
            raise ValueError(
                f"y must have {self.n_outputs_} column(s), as in the first experience; "
                f"got {y.shape[1]}."
            )
        if sample_weight is None:
            return X, y, np.broadcast_to(1.0, len(y))
        weight = check_array(
            sample_weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight"
        )
        if weight.shape != (len(y),):
            raise ValueError(
                f"sample_weight must have shape {(len(y),)}, one weight for each row; "
                f"got {weight.shape}."
            )
        if weight.min() < 0:
            raise ValueError(f"sample_weight must be at least 0; got {weight.min():g}.")
        return X, y, weight

    def _check_params(self) -> tuple[Plan, Strategy]:
        plan = Plan(**{name: getattr(self, name) for name in Plan.__annotations__})
        plan.check()
        check_number("max_snapshots", self.max_snapshots, low=1, integer=True, also=[None])
        check_option("dtype", self.dtype, list(_DTYPES))
        check_option("standardize", self.standardize, [True, False, "running"])
        self._check_device()
        strategy = make_strategy(self.strategy)
        strategy.check_params()
        if not isinstance(self.alarm, str):
            check_detector("alarm", self.alarm)
        else:
            check_option("alarm", self.alarm, ["page-hinkley"])
        if self.standardize == "running" and strategy.holds_parameters:
            raise ValueError(
                "standardize='running' changes what the weights of the first and the last layer "
                f"stand for, and strategy {strategy!r} holds on to weights as they were. Take a "
                "strategy that keeps rows or answers, such as 'replay', or standardize=True."
            )
        return plan, strategy

    def _check_device(self) -> None:
        try:
            found = usable_device(self.device)
        except (RuntimeError, TypeError) as error:
            raise ValueError(
                f"device must be a device that torch knows, such as 'cpu' or 'cuda'; "
                f"got {self.device!r}."
            ) from error
        if found != str(self.device) and not hasattr(self, "net_"):
            raise ValueError(f"device must be present on this machine; got {self.device!r}.")

    def _structure(self, strategy: Strategy) -> dict[str, Any]:
        """What cannot change while the stream goes on."""
        return {
            "module": self._recipe(),
            "dtype": self.dtype,
            "standardize": self.standardize,
            "strategy": _kinds(strategy),
        }

    def _check_structure(self, strategy: Strategy) -> None:
        for name, now in self._structure(strategy).items():
            if now != self._built[name]:
                raise ValueError(
                    f"{name} must stay what it was while the stream goes on: {self._built[name]}; "
                    f"got {now}. Call fit to start anew."
                )

    def _start(
        self,
        X: Any,
        y: Any,
        weight: Any,
        strategy: Strategy,
        seeds: tuple[int, int] | None = None,
    ) -> None:
        """Make a new net for the first experience."""
        if seeds is None:
            chance = check_random_state(self.random_state)
            first, second = chance.randint(np.iinfo(np.int32).max, size=2)
            seeds = int(first), int(second)
        seed, strategy_seed = self._seeds = seeds
        if self.standardize:
            self._scaling = Scaling.of(_dense(X), weight, _INPUT_RESOLUTION)
            self._target_scaling = Scaling.of(y, weight, _TARGET_RESOLUTION)
        else:
            self._scaling = Scaling.identity(X.shape[1])
            self._target_scaling = Scaling.identity(y.shape[1])
        self.net_ = ContinualNet(
            self._recipe(),
            units=Units.of(
                torch.from_numpy(self._scaling.constant),
                torch.from_numpy(self._target_scaling.constant),
                _DTYPES[self.dtype],
            ),
            standardize=self.standardize,
            seed=seed,
            strategy_seed=strategy_seed,
            device=str(self.device),
            callbacks=copy.deepcopy(self.callbacks),
        ).initialize()
        if self.standardize == "running" and not self.net_.linear:
            raise ValueError(
                "standardize='running' needs a module of linear layers and known activations, "
                "whose first and last layer can take up the change of units; got "
                f"{type(self.net_.module_).__name__}."
            )
        self.strategy_ = strategy
        self._built = self._structure(strategy)
        self.n_outputs_ = y.shape[1]
        self.n_experiences_ = 0
        self.experiences_: list[ExperienceRecord] = []
        self._snapshots: list[Snapshot] = []
        self._alarm: DriftAlarm | None = None
        self._watched_by = self.alarm
        self._open = None

    def _learn(self, label: Any, X: Any, y: Any, weight: Any, plan: Plan, fresh: Strategy) -> None:
        """One experience; the net is restored if it fails."""
        begun = time.perf_counter()
        self._move()
        strategy = copy.deepcopy(self.strategy_)
        strategy.set_params(**_leaves(fresh))
        strategy.check_params()
        before, chance = self.net_.snapshot(), self.net_.chance()
        try:
            progress = self.net_.learn(self._rows(X, y, weight), strategy, plan)
        except BaseException:
            self.net_.restore(before)
            self.net_.set_chance(chance)
            raise
        self.strategy_ = strategy
        self.n_experiences_ += 1
        self.n_iter_ = len(progress.losses)
        self.loss_curve_ = progress.losses
        self.validation_losses_ = progress.validation_losses
        record = ExperienceRecord(
            label,
            len(y),
            progress.n_validation,
            len(progress.losses),
            progress.losses[-1] if progress.losses else float("nan"),
            time.perf_counter() - begun,
            strategy.n_bytes,
        )
        self.experiences_ = [*self.experiences_, record][-_KEPT_RECORDS:]
        kept = [*self._snapshots, self.net_.snapshot()]
        self._snapshots = kept if self.max_snapshots is None else kept[-self.max_snapshots :]

    def _learn_piece(
        self, X: Any, y: Any, weight: Any, plan: Plan, fresh: Strategy, *, ends: bool
    ) -> None:
        """Learn the open experience anew with some more rows, or begin another one."""
        before, n_new = self._open, X.shape[0]
        if before is None or ends or before.X.shape[0] + n_new > _OPEN_ROWS:
            started = self.n_experiences_ > 0
            start = (self.strategy_, self.net_.snapshot(), self.net_.chance()) if started else None
        else:
            X = _stacked(before.X, X)
            y, weight = np.vstack([before.y, y]), np.append(before.weight, weight)
            start = before.start
            if start is None:
                watch = self._alarm, self._watched_by
                self._start(X, y, weight, fresh, self._seeds)
                self._alarm, self._watched_by = watch
            else:
                self.strategy_ = start[0]
                now = self.net_.snapshot(), self.net_.chance()
                self.net_.restore(start[1])
                self.net_.set_chance(start[2])
                self.n_experiences_ -= 1
                self.experiences_ = self.experiences_[:-1]
                self._snapshots = self._snapshots[:-1]
                try:
                    self._learn(self.n_experiences_, X, y, weight, plan, fresh)
                except BaseException:
                    self.net_.restore(now[0])
                    self.net_.set_chance(now[1])
                    raise
                self._open = OpenExperience(X, y, weight, start)
                return
        self._learn(self.n_experiences_, X, y, weight, plan, fresh)
        # Copies, because the caller may use the same arrays for the next piece.
        self._open = OpenExperience(X.copy(), y.copy(), np.array(weight), start)

    def _watch(self, X: Any, y: Any, *, always: bool) -> bool:
        """Let the alarm see the errors on rows that have not been learnt."""
        if self.alarm is None and not always:
            return False
        alarm = copy.deepcopy(self._alarm)
        if alarm is None or self._watched_by != self.alarm:
            alarm = DriftAlarm(None if isinstance(self.alarm, str) else self.alarm)
        answer = np.asarray(self.predict(X), dtype=np.float64).reshape(y.shape)
        # In units of the first experience, so that no column outweighs the others.
        inputs = self._scaling.forward(_dense(X))
        raised = alarm.update(inputs, (y - answer) / self._target_scaling.scale)
        self._alarm, self._watched_by = alarm, self.alarm
        return bool(raised)

    def _rows(self, X: Any, y: Any, weight: Any) -> Rows:
        dtype, device = _DTYPES[self.dtype], torch.device(self.net_.device)
        return Rows(
            torch.from_numpy(self._scaling.forward(_dense(X), self.dtype)).to(device),
            torch.from_numpy(self._target_scaling.forward(y, self.dtype)).to(device),
            None
            if (weight == 1).all()
            else torch.from_numpy(weight).to(device, dtype).unsqueeze(1),
        )

    def _move(self) -> None:
        """Follow ``device`` if it was changed between experiences."""
        device = usable_device(self.device)
        if self.net_.device != device:
            self.net_ = self.net_.moved(device)
            self.strategy_ = to_device(self.strategy_, torch.device(device))
            self._snapshots = to_device(self._snapshots, torch.device(device))

    def _snapshot_after(self, after: int | None) -> Snapshot:
        n, kept = self.n_experiences_, len(self._snapshots)
        if after is None:
            return self._snapshots[-1]
        check_number("after", after, low=-n, high=n - 1, integer=True)
        place = after % n - (n - kept)
        if place < 0:
            raise ValueError(
                f"after must be one of the last {kept} of {n} experiences, whose snapshots are "
                f"kept; got {after!r}. Raise max_snapshots (now {self.max_snapshots}) to keep more."
            )
        return self._snapshots[place]

    @contextmanager
    def _unharmed(self) -> Iterator[None]:
        """If the block fails or is interrupted, leave the estimator as it was."""
        before = vars(self).copy()
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise


def _stacked(X: Any, more: Any) -> Any:
    sparse = issparse(X) and issparse(more)
    return vstack([X, more], format="csr") if sparse else np.vstack([_dense(X), _dense(more)])


def _dense(X: Any) -> npt.NDArray[np.floating[Any]]:
    return X if isinstance(X, np.ndarray) else X.toarray()


def _without_zeros(X: Any, y: Any, weight: Any, label: Any) -> tuple[Any, Any, Any]:
    """Rows of weight zero count as absent: they shape neither statistics nor memory."""
    present = weight > 0
    if not present.any():
        raise ValueError(
            f"sample_weight must not be zero for every row of an experience; all {len(weight)} "
            f"weights of experience {label!r} are zero."
        )
    return (X, y, weight) if present.all() else (X[present], y[present], weight[present])


def _leaves(strategy: Strategy) -> dict[str, Any]:
    """Hyper-parameters that are plain values, not strategies."""
    params = strategy.get_params()
    return {k: v for k, v in params.items() if not isinstance(v, Strategy) and k != "parts"}


def _kinds(strategy: Strategy) -> list[str]:
    """The names of the strategy's class and of those inside it."""
    inner = [v for v in strategy.get_params().values() if isinstance(v, Strategy)]
    return [type(part).__name__ for part in [strategy, *inner]]
