"""ContinualNet: the skorch net that an estimator owns, with a lean loop."""

from __future__ import annotations

import math
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from sklearn.exceptions import ConvergenceWarning
from skorch import NeuralNet
from torch import Tensor, nn
from tqdm import tqdm

from sklearn_cl._chance import reseed, seeded
from sklearn_cl._denormals import flushed_denormals
from sklearn_cl._dense import DenseEngine
from sklearn_cl._engine import AutogradEngine, Engine, checked_output
from sklearn_cl._learner import Learner
from sklearn_cl._losses import LOSSES
from sklearn_cl._plan import Plan
from sklearn_cl._rows import Rows
from sklearn_cl._schedule import Average, cosine
from sklearn_cl._state import Stateful, pack, to_device, unpack
from sklearn_cl._threads import threads_for
from sklearn_cl._units import Units
from sklearn_cl.strategies import Strategy

_GATHERED = 2**15
_JUDGED = 2048
_Predict = Callable[[npt.NDArray[np.float64]], npt.NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class Snapshot(Stateful):
    """A model as it stood after an experience: parameters, the module's rest, and units."""

    theta: Tensor
    rest: dict[str, Tensor]
    units: Units


@dataclass
class Progress:
    """How the training of an experience went."""

    losses: list[float] = field(default_factory=list)
    validation_losses: list[float] = field(default_factory=list)
    n_validation: int = 0


class ContinualNet(NeuralNet):
    """A skorch net whose batches are pieces of tensors that are already on the device.

    Parameters
    ----------
    module : callable
        Called with ``n_features``, ``n_outputs`` and a torch.Generator to make the module.
    units : Units
        What the module reads and is taught before anything has been learnt.
    standardize : bool or "running"
        Whether a net that starts anew takes the statistics of its columns again; "running" makes
        any follow them.
    seed, strategy_seed : int
        Decide the first weights and every order of rows, and the chance of the strategy.
    device : str
        Where to train.
    callbacks : list of skorch callbacks or None
        Told of every epoch, and of every batch.
    """

    def __init__(
        self,
        module: Callable[[int, int, torch.Generator], nn.Module],
        *,
        units: Units,
        standardize: bool | str,
        seed: int,
        strategy_seed: int,
        device: str,
        callbacks: Any = None,
    ) -> None:
        super().__init__(
            module,
            criterion=None,
            train_split=None,
            callbacks=callbacks,
            verbose=0,
            device=device,
        )
        self.units = units
        self.standardize = standardize
        self.seed = seed
        self.strategy_seed = strategy_seed

    @property
    def _default_callbacks(self) -> list[Any]:
        return []

    def initialize(self) -> ContinualNet:
        """Make the module and the generators; the optimizer is new in each experience."""
        self._initialize_virtual_params()
        self._initialize_callbacks()
        self._initialize_module()
        self._initialize_history()
        self.initialized_ = True
        return self

    def initialize_module(self) -> ContinualNet:
        """Make the module, and move its parameters into one vector."""
        device, dtype = torch.device(self.device), self.units.gain.dtype
        n_features, n_outputs = len(self.units.gain), len(self.units.target_gain)
        self.generator_ = torch.Generator().manual_seed(self.seed)
        self.strategy_generator_ = torch.Generator().manual_seed(self.strategy_seed)
        module = self.module(n_features, n_outputs, self.generator_).to(device, dtype)
        dense = DenseEngine.fits(module, n_features, n_outputs)
        self.module_ = module
        self.engine_: Engine = (DenseEngine if dense else AutogradEngine)(
            module, self.units.to(device=device)
        )
        self.latest_predictor_: tuple[Snapshot | None, _Predict] = (None, _nothing)
        self.initial_ = self.snapshot()
        self.initial_order_ = self.generator_.get_state()
        return self

    def initialize_optimizer(self, triggered_directly: Any = None) -> ContinualNet:
        """Make a new optimizer of the one vector, without moments."""
        self.optimizer_ = self.plan_.optimizer(self.engine_.flat.theta)
        # Schedulers among the callbacks must see torch's own step.
        self.advance_ = self.optimizer_.step if self.callbacks_ else self.optimizer_.advance
        return self

    def learn(self, experience: Rows, strategy: Strategy, plan: Plan) -> Progress:
        """Train on one experience and consolidate.

        Parameters
        ----------
        experience : Rows
            The new rows.
        strategy : Strategy
            Its hooks are called, and change it.
        plan : Plan
            How to train.

        Returns
        -------
        Progress
            The loss of each epoch.

        Raises
        ------
        ValueError
            If the loss or the parameters stop being finite. The net is then undefined; the
            caller restores it.
        """
        self.engine_.loss = plan.loss
        size = plan.rows_per_step(len(experience))
        learner = Learner(
            self.engine_, self.strategy_generator_, size, plan.learning_rate_init, self._start_anew
        )
        self.plan_, self.strategy_, self.learner_ = plan, strategy, learner
        self.progress_, self.restarted_ = Progress(), False
        # A chain of linear layers draws nothing, so it need not be alone with the generator.
        dense = self.linear
        device = self.engine_.flat.theta.device
        try:
            with (
                _threads(self.engine_, size),
                flushed_denormals(),
                nullcontext() if dense else seeded(self.generator_, device),
            ):
                rows = strategy.begin(experience, learner)
                if rows is not None:
                    self.batch_size = plan.rows_per_step(len(rows))
                    self._set_units(rows, experience)
                    self._initialize_optimizer()
                    self._initialize_history()
                    self.fit_loop(rows)
                strategy.consolidate(experience, learner)
            return self.progress_
        finally:
            del self.strategy_, self.learner_, self.progress_

    def fit_loop(self, X: Rows, y: Any = None, epochs: int | None = None, **_: Any) -> ContinualNet:
        """Train on rows for up to ``max_iter`` epochs."""
        plan, progress = self.plan_, self.progress_
        train, valid = self._hold_out(X)
        self.decay_ = self._weight_decay(train)
        train = train.normalised()
        iterator = self.get_iterator(train, training=True)
        n_batches = -(-len(train) // self.batch_size)
        self.step_sizes_ = None
        if plan.learning_rate == "cosine":
            self.step_sizes_ = cosine(plan.max_iter * n_batches)
        floats = [t for t in self.engine_.flat.rest().values() if t.is_floating_point()]
        # Steps on all rows have no noise to take out, and a clean end that is worth keeping.
        part = plan.averaging if n_batches > 1 else 0.0
        self.average_ = Average([self.engine_.flat.theta, *floats], part)
        best, best_model, patience = float("inf"), None, 0
        self.notify("on_train_begin", X=train.X, y=train.y)
        with tqdm(total=plan.max_iter, disable=not plan.verbose, unit="epoch") as bar:
            for _epoch in range(plan.max_iter):
                self.notify("on_epoch_begin", dataset_train=train, dataset_valid=valid)
                self.run_single_epoch(iterator, True, "train", self.train_step)
                loss = self._finite(self.history[-1, "train_loss"])
                progress.losses.append(loss)
                if valid is not None:
                    # What is served is the average, so that is what is judged.
                    self.average_.swap()
                    loss = self._finite(self._evaluate(valid))
                    best_model = self.snapshot() if loss < best else best_model
                    self.average_.swap()
                    self.history.record("valid_loss", loss)
                    progress.validation_losses.append(loss)
                bar.update()
                bar.set_postfix(loss=f"{loss:.3g}", refresh=False)
                patience = 0 if loss < best - plan.tol else patience + 1
                best = min(best, loss)
                if self._callback_stops(train, valid) or patience > plan.n_iter_no_change:
                    break
        self.engine_.flat.check()
        if best_model is not None:
            self.restore(best_model)
        else:
            self.average_.swap()
        self._warn_if_useless(train)
        self.notify("on_train_end", X=train.X, y=train.y)
        return self

    def get_iterator(self, dataset: Rows, training: bool = False) -> Batches:
        """Batches of rows, in a new random order each time."""
        shuffle = training and self.plan_.shuffle
        return Batches(dataset, self.batch_size, self.generator_ if shuffle else None)

    def run_single_epoch(
        self, iterator: Batches, training: bool, prefix: str, step_fn: Any, **_: Any
    ) -> None:
        """One step for each batch; the history keeps the mean loss of the epoch only."""
        total, count, heard = self.engine_.flat.theta.new_zeros(()), 0, bool(self.callbacks_)
        for batch in iterator:
            if heard:
                self.notify("on_batch_begin", batch=(batch.X, batch.y), training=training)
            step = step_fn(batch)
            total.add_(step["loss"], alpha=len(batch))
            count += len(batch)
            if heard:
                self.notify("on_batch_end", batch=(batch.X, batch.y), training=training, **step)
        self.history.record(prefix + "_loss", float(total) / count)

    def train_step(self, batch: Rows, **_: Any) -> dict[str, Any]:
        """One step: rehearse, backward, penalty, adjust, weight decay, optimizer."""
        strategy, learner = self.strategy_, self.learner_
        theta, grad = learner.theta, learner.grad
        group = self.optimizer_.param_groups[0]
        if self.step_sizes_ is not None:
            group["lr"] = self.plan_.learning_rate_init * next(self.step_sizes_)
        rows = strategy.rehearse(batch, learner)
        loss = self.engine_.backward(rows, into=grad)
        penalty = strategy.penalty(rows, learner)
        if penalty is not None:
            penalty.backward()
        strategy.adjust(grad, learner)
        if self.decay_ is not None:
            if self.plan_.solver == "adamw":
                theta.addcmul_(self.decay_, theta, value=-group["lr"])
            else:
                grad.addcmul_(self.decay_, theta)
        self.advance_()
        self.average_.update()
        return {"loss": loss, "y_pred": None}

    def snapshot(self) -> Snapshot:
        """The model as it stands, in tensors of its own."""
        rest = {name: tensor.clone() for name, tensor in self.engine_.flat.rest().items()}
        return Snapshot(self.engine_.flat.theta.clone(), rest, self.engine_.units)

    def restore(self, snapshot: Snapshot) -> None:
        """Put the model back to where ``snapshot`` was taken."""
        self.engine_.flat.restore(snapshot.theta, snapshot.rest)
        self.engine_.units = snapshot.units

    @property
    def linear(self) -> bool:
        """Whether the module is a chain of linear layers and known activations."""
        return isinstance(self.engine_, DenseEngine)

    def chance(self) -> tuple[Tensor, Tensor]:
        """The states of both generators."""
        return self.generator_.get_state(), self.strategy_generator_.get_state()

    def set_chance(self, states: tuple[Tensor, Tensor]) -> None:
        """Put both generators back."""
        self.generator_.set_state(states[0])
        self.strategy_generator_.set_state(states[1])

    def predictor(self, snapshot: Snapshot) -> _Predict:
        """A function from standardised inputs to standardised outputs, both float64.

        Float64, because a float32 product of matrices depends on how many rows there are.
        """
        if self.latest_predictor_[0] is snapshot:
            return self.latest_predictor_[1]
        module = self.engine_.flat.replica(snapshot.theta, snapshot.rest, torch.float64)
        device = next(module.parameters()).device
        units = snapshot.units.to(dtype=torch.float64, device=device)
        n_outputs, engine = len(units.target_gain), self.engine_

        def predict(X: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
            with torch.inference_mode(), _threads(engine, len(X)):
                f = module(units.inputs(torch.from_numpy(X).to(device)))
                answer = units.outputs(checked_output(f, len(X), n_outputs)).cpu().numpy()
                return np.asarray(answer, dtype=np.float64)

        self.latest_predictor_ = (snapshot, predict)
        return predict

    def moved(self, device: str) -> ContinualNet:
        """The same net on another device."""
        state = self.__getstate__()
        twin = ContinualNet.__new__(ContinualNet)
        twin.__setstate__(state | {"params": state["params"] | {"device": device}})
        return twin

    def __getstate__(self) -> dict[str, Any]:
        names = ("module", "units", "standardize", "seed", "strategy_seed", "device", "callbacks")
        learnt = {
            "initial": self.initial_,
            "now": self.snapshot(),
            "chance": pack([self.initial_order_, *self.chance()]),
        }
        return {"params": {name: getattr(self, name) for name in names}, "learnt": learnt}

    def __setstate__(self, state: dict[str, Any]) -> None:
        params, learnt = state["params"], state["learnt"]
        # A model that was trained on a GPU opens on a machine without one.
        params = params | {"device": usable_device(params["device"])}
        self.__dict__.update(vars(ContinualNet(**params).initialize()))
        device = torch.device(self.device)
        self.initial_ = to_device(learnt["initial"], device)
        self.restore(to_device(learnt["now"], device))
        self.initial_order_, *states = unpack(learnt["chance"])
        self.set_chance((states[0], states[1]))

    def _start_anew(self) -> None:
        self.restore(self.initial_)
        self.generator_.set_state(self.initial_order_)
        if not isinstance(self.engine_, DenseEngine):
            reseed(self.generator_, self.engine_.flat.theta.device)
        self.restarted_ = True

    def _set_units(self, rows: Rows, experience: Rows) -> None:
        if not self.standardize:
            return
        units = self.engine_.units
        self.engine_.units = units.anew(rows) if self.restarted_ else units.wake(rows)
        if self.standardize == "running" and not self.restarted_:
            assert isinstance(self.engine_, DenseEngine)
            self.engine_.change_units(self.engine_.units.follow(experience, units))

    def _hold_out(self, rows: Rows) -> tuple[Rows, Rows | None]:
        plan = self.plan_
        n_valid = round(plan.validation_fraction * len(rows)) if plan.early_stopping else 0
        n_valid = min(n_valid, len(rows) - 1)
        if n_valid < 2:
            return rows, None
        self.progress_.n_validation = n_valid
        shuffled = rows.shuffled(self.generator_)
        return shuffled.take(slice(n_valid, None)), shuffled.take(slice(n_valid)).normalised()

    def _weight_decay(self, rows: Rows) -> Tensor | None:
        """What a step takes from each parameter, per unit of it; nothing from biases."""
        plan = self.plan_
        if not plan.alpha:
            return None
        size = min(self.batch_size, len(rows)) * rows.total / len(rows)
        rate = plan.alpha if plan.solver == "adamw" else 2 * plan.alpha / size
        decay = torch.zeros_like(self.engine_.flat.theta)
        for part in self.engine_.flat.views(decay):
            part.fill_(rate if part.ndim > 1 else 0)
        return decay

    def _evaluate(self, rows: Rows) -> float:
        self.module_.eval()
        with torch.no_grad():
            return float(self.engine_.criterion(rows))

    def _finite(self, loss: float) -> float:
        if math.isfinite(loss) and bool(self.engine_.flat.theta.isfinite().all()):
            return loss
        raise ValueError(
            f"The training diverged: the loss or a weight is not finite ({loss}) in epoch "
            f"{len(self.history)}. The model is as it was before this call. Lower "
            f"learning_rate_init (got {self.plan_.learning_rate_init}), check the scale of X and "
            "y, or set standardize=True."
        )

    def _callback_stops(self, train: Rows, valid: Rows | None) -> bool:
        """Tell the callbacks that the epoch ended; skorch's stop by a KeyboardInterrupt."""
        try:
            self.notify("on_epoch_end", dataset_train=train, dataset_valid=valid)
        except KeyboardInterrupt as stop:
            *_, last = traceback.walk_tb(stop.__traceback__)
            if not last[0].f_globals["__name__"].startswith("skorch.callbacks"):
                raise
            return True
        return False

    def _warn_if_useless(self, rows: Rows) -> None:
        """Warn of a fit that is finite and far worse than an untrained net's."""
        # On the new rows alone: the loss in training may count old ones of another size.
        some = rows.take(slice(_JUDGED))
        value = LOSSES[self.plan_.loss].value(self.engine_.units.targets(some.y))
        untrained = max(float(value.mean()), 1.0 if self.standardize else 0.0)
        last = self._evaluate(some)
        if last > 10 * untrained > 0:
            warnings.warn(
                f"The training loss ({last:.3g}) is over ten times that of predicting zero "
                f"({untrained:.3g}): the training has as good as diverged. Lower "
                f"learning_rate_init (got {self.plan_.learning_rate_init}) or check the scale of "
                "X and y.",
                ConvergenceWarning,
                stacklevel=2,
            )


def _nothing(X: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    raise RuntimeError("there is no predictor yet")


def _threads(engine: Engine, n_rows: int) -> AbstractContextManager[None]:
    """As many threads as pay for a step of so many rows."""
    theta = engine.flat.theta
    known = isinstance(engine, DenseEngine) and theta.device.type == "cpu"
    return threads_for(n_rows * len(theta) if known else None)


class Batches:
    """Pieces of ``size`` rows, in a new order at each pass if there is an ``rng``."""

    def __init__(self, rows: Rows, size: int, rng: torch.Generator | None) -> None:
        self.rows = rows
        self.size = size
        self.rng = rng

    def __iter__(self) -> Iterator[Rows]:
        if self.rng is None:
            return self.rows.split(self.size)
        order = torch.randperm(len(self.rows), generator=self.rng).to(self.rows.X.device)
        # A gather of many batches is faster than one of each; one of all would double the memory.
        blocks = order.split(max(1, _GATHERED // self.size) * self.size)
        return (batch for block in blocks for batch in self.rows.take(block).split(self.size))


def usable_device(device: str | torch.device) -> str:
    """The device, or the CPU where it is absent."""
    kind = torch.device(device).type
    absent = (kind == "cuda" and not torch.cuda.is_available()) or (
        kind == "mps" and not torch.backends.mps.is_available()
    )
    return "cpu" if absent else str(device)
