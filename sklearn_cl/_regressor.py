"""The two regressors: one with a perceptron, one with the user's own module."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import torch
from torch import nn

from sklearn_cl._checks import check_number, check_option
from sklearn_cl._estimator import BaseContinualRegressor
from sklearn_cl._module import ACTIVATIONS, MLPRecipe, ModuleRecipe

_PARAMETERS = """
    strategy : str or Strategy, default="replay"
        What keeps the past alive: a name from `sklearn_cl.strategies.available` or an object
        such as ``EWC(strength=10.0)``. The object is cloned, never written to.
    loss : {"squared_error", "absolute_error", "huber"}, default="squared_error"
        The loss of the standardised target. Huber's is squared up to one standard deviation
        of the target and linear beyond.
    solver : {"adam", "adamw", "sgd"}, default="adam"
        The optimizer; it is new in each experience.
    learning_rate : {"constant", "cosine"}, default="constant"
        Course of the step size in each experience: as it is, or a short rise and half a cosine
        down to nothing over ``max_iter`` epochs.
    learning_rate_init : float, default=1e-3
        The learning rate at its largest, above 0.
    averaging : float, default=1/3
        The model that an experience leaves is the average of the parameters over about this last
        part of its steps, from 0 (none) to 1. It takes the noise of the last steps out, as a
        decaying step size does; where every step sees all rows there is none, and nothing is
        averaged. Buffers of a module are averaged too.
    alpha : float, default=1e-4
        Weight decay, at least 0; biases are spared. As in scikit-learn it is divided by the
        rows of a batch and added to the gradient, but with "adamw" it is decoupled and not
        divided.
    batch_size : int or "auto", default="auto"
        Rows of a step; "auto" is ``min(200, n_samples)``.
    max_iter : int, default=200
        Epochs of an experience, at most.
    tol : float, default=1e-4
        An experience ends when its loss has not improved by this for ``n_iter_no_change``
        epochs.
    n_iter_no_change : int, default=10
        Those epochs, at least 1.
    shuffle : bool, default=True
        Whether to take the rows in a new random order in each epoch.
    early_stopping : bool, default=False
        Whether to hold rows of each experience out, to stop when the loss on them no longer
        improves, and to go back to the best epoch. Too few rows for that means none, as
        ``experiences_`` tells.
    validation_fraction : float, default=0.1
        Share of the rows to hold out, between 0 and 1.
    momentum : float, default=0.9
        Momentum of "sgd", from 0 to 1.
    nesterovs_momentum : bool, default=True
        Whether that is Nesterov's.
    beta_1, beta_2 : float, default=0.9, 0.999
        Decay of the moments of "adam" and "adamw", at least 0 and below 1.
    epsilon : float, default=1e-8
        Their numerical floor, above 0.
    standardize : bool or "running", default=True
        Whether to scale inputs and target by mean and standard deviation of the first
        experience, or, if "running", by those of all rows so far. First and last layer then
        take up the change, so that no prediction moves for it; strategies that hold on to weights
        (EWC, MAS, SI, OGD) are refused. A column that is constant in the first experience is
        ignored until it moves; it then takes its statistics from that experience, and its
        input stays bounded. Predictions are in the unit of the target either way.
    alarm : "page-hinkley", object with ``update`` or None, default=None
        Whether `partial_fit` watches the errors on new rows before it learns them, and with
        which detector of `sklearn_cl.drift.DriftAlarm`; ``alarm_`` tells the latest alarm.
        `monitor` and ``experience="auto"`` watch in any case.
    max_snapshots : int or None, default=20
        How many of the latest models to keep for ``predict(X, after=...)``; None keeps all.
    dtype : {"float32", "float64"}, default="float32"
        Type of the weights in training. Predictions are always computed in float64.
    device : str, default="cpu"
        Where to train, as torch names it.
    callbacks : list of skorch callbacks or None, default=None
        Told of each epoch, and of each batch.
    verbose : bool, default=False
        Whether to show a progress bar for each experience.
    random_state : int, RandomState instance or None, default=None
        Decides all chance. None draws from numpy's global generator, as in scikit-learn;
        nothing else touches the global generators of numpy or torch."""

_ATTRIBUTES = """
    Attributes
    ----------
    n_features_in_ : int
        Number of inputs.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Their names, if X had any.
    n_outputs_ : int
        Number of targets.
    n_experiences_ : int
        Number of experiences learnt.
    experiences_ : list of ExperienceRecord
        One record for each of the latest 1000 experiences: label, n_rows, n_validation,
        n_epochs, loss, seconds, state_bytes.
    n_iter_ : int
        Epochs of the latest experience.
    loss_curve_ : list of float
        Its training loss by epoch, in units of the standardised target.
    validation_losses_ : list of float
        Its loss on held-out rows by epoch; empty without any.
    strategy_ : Strategy
        The strategy with what it keeps.
    net_ : skorch.NeuralNet
        The net."""


class ContinualMLPRegressor(BaseContinualRegressor):
    __doc__ = f"""Multi-layer perceptron that learns a stream of experiences and remembers.

    Parameters
    ----------
    hidden_layer_sizes : int or sequence of int, default=(64, 64)
        Width of each hidden layer; an empty sequence makes a linear model.
    activation : {{"identity", "logistic", "relu", "tanh"}}, default="relu"
        Activation after each hidden layer.{_PARAMETERS}
{_ATTRIBUTES}

    See Also
    --------
    ContinualRegressor : The same with your own torch module.

    References
    ----------
    R. Kurniawan et al., "Continually learning application performance models", 2023,
    arXiv:2310.16996.

    Examples
    --------
    >>> from sklearn_cl import ContinualMLPRegressor
    >>> from sklearn_cl.datasets import make_drift_stream
    >>> X, y, experience = make_drift_stream(n_experiences=3, random_state=0)
    >>> reg = ContinualMLPRegressor(strategy="replay", max_iter=20, random_state=0)
    >>> reg.fit(X, y, experience=experience).n_experiences_
    3
    >>> reg.predict(X[:5]).shape
    (5,)
    >>> reg.predict(X[:5], after=0).shape
    (5,)
    """

    def __init__(
        self,
        hidden_layer_sizes: int | Sequence[int] = (64, 64),
        activation: str = "relu",
        *,
        strategy: Any = "replay",
        loss: str = "squared_error",
        solver: str = "adam",
        learning_rate: str = "constant",
        learning_rate_init: float = 1e-3,
        averaging: float = 1 / 3,
        alpha: float = 1e-4,
        batch_size: int | str = "auto",
        max_iter: int = 200,
        tol: float = 1e-4,
        n_iter_no_change: int = 10,
        shuffle: bool = True,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        momentum: float = 0.9,
        nesterovs_momentum: bool = True,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-8,
        standardize: bool | str = True,
        alarm: Any = None,
        max_snapshots: int | None = 20,
        dtype: str = "float32",
        device: str = "cpu",
        callbacks: Any = None,
        verbose: bool = False,
        random_state: Any = None,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.strategy = strategy
        self.loss = loss
        self.solver = solver
        self.learning_rate = learning_rate
        self.learning_rate_init = learning_rate_init
        self.averaging = averaging
        self.alpha = alpha
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.tol = tol
        self.n_iter_no_change = n_iter_no_change
        self.shuffle = shuffle
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.momentum = momentum
        self.nesterovs_momentum = nesterovs_momentum
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.epsilon = epsilon
        self.standardize = standardize
        self.alarm = alarm
        self.max_snapshots = max_snapshots
        self.dtype = dtype
        self.device = device
        self.callbacks = callbacks
        self.verbose = verbose
        self.random_state = random_state

    def _recipe(self) -> Callable[[int, int, torch.Generator], nn.Module]:
        check_option("activation", self.activation, list(ACTIVATIONS))
        sizes = self.hidden_layer_sizes
        widths = tuple(sizes) if isinstance(sizes, Sequence) else (sizes,)
        for width in widths:
            check_number("hidden_layer_sizes", width, low=1, integer=True)
        return MLPRecipe(widths, self.activation)


class ContinualRegressor(BaseContinualRegressor):
    __doc__ = f"""Any torch module that learns a stream of experiences and remembers.

    Parameters
    ----------
    module : torch.nn.Module class, function or instance
        Maps inputs of shape (n_rows, n_features) to outputs of shape (n_rows, n_outputs). A
        class or a function is called with ``module_params``, and with ``n_features`` and
        ``n_outputs`` if it takes arguments of those names; an instance is copied.{_PARAMETERS}
    **module_params : dict
        Arguments of the module as ``module__width=32``, as in skorch.
{_ATTRIBUTES}

    See Also
    --------
    ContinualMLPRegressor : The same with a perceptron of ours, and faster.

    Examples
    --------
    >>> from torch import nn
    >>> from sklearn_cl import ContinualRegressor
    >>> from sklearn_cl.datasets import make_drift_stream
    >>> def make(n_features, n_outputs, width=16):
    ...     return nn.Sequential(
    ...         nn.Linear(n_features, width), nn.GELU(), nn.Linear(width, n_outputs)
    ...     )
    >>> X, y, experience = make_drift_stream(n_experiences=2, random_state=0)
    >>> reg = ContinualRegressor(make, module__width=8, max_iter=5, random_state=0)
    >>> reg.fit(X, y, experience=experience).predict(X[:5]).shape
    (5,)
    """

    def __init__(
        self,
        module: Any,
        *,
        strategy: Any = "replay",
        loss: str = "squared_error",
        solver: str = "adam",
        learning_rate: str = "constant",
        learning_rate_init: float = 1e-3,
        averaging: float = 1 / 3,
        alpha: float = 1e-4,
        batch_size: int | str = "auto",
        max_iter: int = 200,
        tol: float = 1e-4,
        n_iter_no_change: int = 10,
        shuffle: bool = True,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        momentum: float = 0.9,
        nesterovs_momentum: bool = True,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-8,
        standardize: bool | str = True,
        alarm: Any = None,
        max_snapshots: int | None = 20,
        dtype: str = "float32",
        device: str = "cpu",
        callbacks: Any = None,
        verbose: bool = False,
        random_state: Any = None,
        **module_params: Any,
    ) -> None:
        self.module = module
        self.strategy = strategy
        self.loss = loss
        self.solver = solver
        self.learning_rate = learning_rate
        self.learning_rate_init = learning_rate_init
        self.averaging = averaging
        self.alpha = alpha
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.tol = tol
        self.n_iter_no_change = n_iter_no_change
        self.shuffle = shuffle
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.momentum = momentum
        self.nesterovs_momentum = nesterovs_momentum
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.epsilon = epsilon
        self.standardize = standardize
        self.alarm = alarm
        self.max_snapshots = max_snapshots
        self.dtype = dtype
        self.device = device
        self.callbacks = callbacks
        self.verbose = verbose
        self.random_state = random_state
        self.__dict__.update(module_params)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters of this estimator, those of the module as ``module__name`` among them.

        Parameters
        ----------
        deep : bool, default=True
            Whether to include the parameters of a strategy object.

        Returns
        -------
        dict
            Values by name.
        """
        params: dict[str, Any] = super().get_params(deep)
        return params | self._extra_params()

    def set_params(self, **params: Any) -> Self:
        """Set parameters; the module's as ``module__name``, a strategy's as ``strategy__name``.

        What has been learnt does not change. A new value acts from the next call, and one of
        the module's is refused then until ``fit`` starts anew.

        Parameters
        ----------
        **params : dict
            Parameters by name.

        Returns
        -------
        self : object
            The estimator.
        """
        extra = {name: params.pop(name) for name in list(params) if self._is_extra(name)}
        super().set_params(**params)
        self.__dict__.update(extra)
        return self

    def _extra_params(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if self._is_extra(name)}

    def _is_extra(self, name: str) -> bool:
        """Whether a name is not in the signature: the module's, or a mistake told at fit."""
        learnt = name.startswith("_") or name.endswith("_")
        first, _, rest = name.partition("__")
        if first == "module" and rest:
            return True
        return not learnt and first not in self._get_param_names()

    def _recipe(self) -> Callable[[int, int, torch.Generator], nn.Module]:
        extra = self._extra_params()
        unknown = [name for name in extra if not name.startswith("module__")]
        if unknown:
            raise ValueError(
                f"{unknown[0]} is not a parameter of ContinualRegressor; those of the module are "
                f"written module__name; got {unknown[0]}={extra[unknown[0]]!r}."
            )
        return ModuleRecipe(self.module, {k.removeprefix("module__"): v for k, v in extra.items()})
