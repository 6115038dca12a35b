"""
Is the newest regime what I care for?
======================================

If no input tells the states of the system apart, no model can be right on all of them: the same
inputs have several answers. Then remembering costs the present, and one has to decide.
"""

import matplotlib.pyplot as plt
import numpy as np

from sklearn_cl import ContinualMLPRegressor, continual_validate
from sklearn_cl.datasets import make_drift_stream

strategies = ["naive", "from_scratch", "replay", "cumulative", "no_retrain"]
drifts = {"abrupt": "the state shows in the inputs", "hidden": "the state is hidden"}

fig, axes = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained", sharex=True, sharey=True)
for ax, (drift, title) in zip(axes, drifts.items(), strict=True):
    X, y, experience, facts = make_drift_stream(5, 300, drift=drift, facts=True, random_state=0)
    for name, marker in zip(strategies, "osD^v", strict=True):
        reg = ContinualMLPRegressor(strategy=name, batch_size=32, max_iter=40, random_state=0)
        R = -continual_validate(
            reg, X, y, experience=experience, scoring="neg_root_mean_squared_error", random_state=0
        )["R"]
        newest, average = R[-1, -1], np.sqrt((R[-1] ** 2).mean())
        ax.scatter(newest, average, marker=marker, s=70, label=name)
        print(f"{drift:8}{name:14} newest {newest:5.2f}, average {average:5.2f}")
    if drift == "hidden":
        ax.axhline(facts.blind_rmse, color="gray", ls=":", label="best that any model can do")
    ax.set(title=title, xlabel="error on the newest")
axes[0].set_ylabel("error over all regimes")
axes[1].legend()

# %%
# The error over all regimes is that of all rows together. On the left, those who keep rows have
# the smallest, at some cost on the newest. On the right there is a choice: the newest
# (from_scratch, naive) or all (replay, cumulative), and the dotted line cannot be crossed. An input
# that identifies the state is worth more than any strategy.

axes[0].set(xlim=(0, None), ylim=(0, None))
plt.show()
