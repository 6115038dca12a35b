"""
How much does a performance model forget when the software is upgraded?
========================================================================

Run times of 28 numerical kernels were measured while numpy, scipy and the libraries beside them
were upgraded five times. A perceptron learns the measurements of each state in turn, once by plain
fine-tuning and once with a memory of a few hundred rows. After each state it is tested on all of
them, before and after the present one.
"""

# %%
# One measurement in six, of the same configurations in each state. The inputs say what is called,
# on how much data, and which releases are installed, so one model can be right about all of them.
# Times span four decades: the model learns their logarithm.

import numpy as np

from sklearn_cl import ContinualMLPRegressor, continual_validate
from sklearn_cl.datasets import load_kernel_timings
from sklearn_cl.metrics import final_score, forgetting, learning_score
from sklearn_cl.strategies import Replay

timings = load_kernel_timings()
rows = np.arange(0, 18_000, 6)
X, y, experience = timings.data[rows], np.log(timings.target[rows]), timings.experience[rows]
size = timings.feature_names.index("n")
X[:, size] = np.log(X[:, size])

# %%
# ``R[i, j]`` is the score on experience ``j`` after learning experience ``i``.

STRATEGIES = {
    "naive": "naive",
    "ewc": "ewc",
    "replay": Replay(capacity=500),
    "cumulative": "cumulative",
    "no_retrain": "no_retrain",
}
R = {}
for name, strategy in STRATEGIES.items():
    reg = ContinualMLPRegressor(strategy=strategy, batch_size=32, max_iter=60, random_state=0)
    R[name] = continual_validate(
        reg, X, y, experience=experience, scoring="neg_mean_absolute_error", random_state=0
    )["R"]

# %%
# Look at both columns: a model that learns nothing forgets nothing, and its final error shows it.

print(f"{'strategy':12}{'final error':>13}{'forgetting':>12}{'just learnt':>13}")
for name, scores in R.items():
    print(
        f"{name:12}{-final_score(scores):13.2f}{forgetting(scores):12.2f}"
        f"{-learning_score(scores):13.2f}"
    )

# %%
# Below the diagonal is the past: dark cells there are forgotten states of the software.

try:
    import matplotlib.pyplot as plt
except ImportError:
    raise SystemExit("The figure needs matplotlib: pip install matplotlib.") from None

shown = ["naive", "replay"]
top = max(-R[strategy].min() for strategy in shown)
fig, axes = plt.subplots(1, 2, figsize=(11, 5.2), layout="constrained", sharey=True)
for ax, strategy in zip(axes, shown, strict=True):
    image = ax.imshow(-R[strategy], cmap="cividis_r", vmin=0, vmax=top)
    for (i, j), error in zip(
        [(i, j) for i in range(6) for j in range(6)], -R[strategy].ravel(), strict=True
    ):
        color = "white" if error > 0.5 * top else "black"
        ax.text(j, i, f"{error:.2f}", ha="center", va="center", color=color)
    ax.set(
        title=f"{strategy}: final error {-final_score(R[strategy]):.2f}",
        xlabel="tested on experience",
        xticks=range(6),
        yticks=range(6),
    )
axes[0].set_ylabel("after learning experience")
fig.colorbar(image, ax=axes, label="mean absolute error of the log time")
fig.savefig("plot_quickstart.png", dpi=120, bbox_inches="tight")
