"""Plan: how an experience is trained."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from sklearn_cl._checks import check_number, check_option
from sklearn_cl._losses import LOSSES
from sklearn_cl._optimizer import FlatAdam, FlatOptimizer, FlatSGD


@dataclass(frozen=True)
class Plan:
    """How an experience is trained; the parameters of the estimators under their names."""

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
    verbose: bool

    def check(self) -> None:
        """Raise a ValueError for a parameter out of its range."""
        check_option("loss", self.loss, list(LOSSES))
        check_option("solver", self.solver, ["adam", "adamw", "sgd"])
        check_option("learning_rate", self.learning_rate, ["constant", "cosine"])
        check_number("averaging", self.averaging, low=0, high=1, also=[False])
        check_number("learning_rate_init", self.learning_rate_init, low=0, open_low=True)
        check_number("alpha", self.alpha, low=0)
        check_number("batch_size", self.batch_size, low=1, integer=True, also=["auto"])
        check_number("max_iter", self.max_iter, low=1, integer=True)
        check_number("tol", self.tol, low=0)
        check_number("n_iter_no_change", self.n_iter_no_change, low=1, integer=True)
        check_number(
            "validation_fraction",
            self.validation_fraction,
            low=0,
            high=1,
            open_low=True,
            open_high=True,
        )
        check_number("momentum", self.momentum, low=0, high=1)
        check_number("beta_1", self.beta_1, low=0, high=1, open_high=True)
        check_number("beta_2", self.beta_2, low=0, high=1, open_high=True)
        check_number("epsilon", self.epsilon, low=0, open_low=True)
        for name in ("shuffle", "early_stopping", "nesterovs_momentum"):
            check_option(name, getattr(self, name), [True, False])

    def rows_per_step(self, n_rows: int) -> int:
        """Rows of a full batch."""
        return min(200, n_rows) if self.batch_size == "auto" else int(self.batch_size)

    def optimizer(self, theta: Tensor) -> FlatOptimizer:
        """A new optimizer of ``theta``."""
        lr = self.learning_rate_init
        if self.solver == "sgd":
            return FlatSGD(theta, lr, self.momentum, self.nesterovs_momentum)
        # Weight decay is ours: theta holds the biases too, which it must spare.
        return FlatAdam(theta, lr, (self.beta_1, self.beta_2), self.epsilon)
