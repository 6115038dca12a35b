"""
How do I write a strategy of my own?
=====================================

A strategy is a class with any of five hooks. This one, in fifteen lines, pulls the parameters
back to where the last experience left them; it is checked, chained and compared like any other.
"""

import matplotlib.pyplot as plt

from sklearn_cl import ContinualMLPRegressor, continual_validate
from sklearn_cl.datasets import make_drift_stream
from sklearn_cl.inspection import ScoreMatrixDisplay
from sklearn_cl.strategies import Replay, Strategy, chain
from sklearn_cl.testing import check_strategy


class L2Anchor(Strategy):
    """Pull the parameters back to where the last experience left them."""

    holds_parameters = True
    anchor_ = None

    def __init__(self, strength=0.1):
        self.strength = strength

    def adjust(self, grad, learner):
        if self.anchor_ is not None:
            grad.add_(learner.theta - self.anchor_, alpha=2 * self.strength)

    def consolidate(self, experience, learner):
        self.anchor_ = learner.theta.clone()


# %%
# The common checks: clone, pickle in mid-stream, the same seed gives the same model, the first
# experience is plain training, refused input changes nothing, and more.

check_strategy(L2Anchor())

# %%
# Alone it forgets less of the first state and learns the last one worse. Beside a memory there is
# nothing left for it to do.

X, y, experience = make_drift_stream(4, 300, random_state=0)
results = {}
for name, strategy in {
    "naive": "naive",
    "L2Anchor": L2Anchor(),
    "Replay": Replay(200),
    "chain(Replay, L2Anchor)": chain(Replay(200), L2Anchor(0.001)),
}.items():
    reg = ContinualMLPRegressor(strategy=strategy, batch_size=32, max_iter=40, random_state=0)
    results[name] = continual_validate(
        reg, X, y, experience=experience, scoring="neg_mean_absolute_error", random_state=0
    )

fig, axes = plt.subplots(2, 2, figsize=(9, 8), layout="constrained")
ScoreMatrixDisplay.compare(results, scoring="neg_mean_absolute_error", axes=axes.ravel())
plt.show()
