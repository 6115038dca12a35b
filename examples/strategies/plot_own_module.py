"""
Can my own torch module learn continually?
===========================================

Any module will do. This one knows how a system acts on a job: what the job asks for is scaled and
shifted by the state of the system. `ContinualRegressor` takes the class.
"""

import matplotlib.pyplot as plt
import torch
from torch import nn

from sklearn_cl import ContinualMLPRegressor, ContinualRegressor, continual_validate
from sklearn_cl.datasets import make_drift_stream
from sklearn_cl.inspection import StrategyComparisonDisplay
from sklearn_cl.strategies import Replay


class Factorised(nn.Module):
    """What the job asks for, scaled and shifted by what the system gives."""

    def __init__(self, n_features, n_outputs):
        super().__init__()
        wide = [nn.Linear(n_features - 1, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU()]
        self.job = nn.Sequential(*wide, nn.Linear(64, n_outputs))
        self.system = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 2 * n_outputs))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scale, shift = self.system(x[:, -1:]).chunk(2, dim=1)
        return self.job(x[:, :-1]) * scale + shift


# %%
# The last input tells the state of the system. The module against the plain perceptron, with and
# without a memory: where nothing is kept, what it knows of the system helps; with a memory of 200
# rows both forget little, and the perceptron, which is free to choose its form, is ahead.

X, y, experience = make_drift_stream(4, 300, random_state=0)
results = {}
for name, strategy in {"naive": "naive", "replay": Replay(200)}.items():
    settings = {"strategy": strategy, "batch_size": 32, "max_iter": 60, "random_state": 0}
    for kind, reg in {
        "MLP": ContinualMLPRegressor(**settings),
        "own": ContinualRegressor(Factorised, **settings),
    }.items():
        results[f"{kind}, {name}"] = continual_validate(
            reg, X, y, experience=experience, scoring="neg_mean_absolute_error", random_state=0
        )

fig, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
StrategyComparisonDisplay.from_validation(results, scoring="neg_mean_absolute_error", ax=ax)
plt.show()
