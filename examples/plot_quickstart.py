"""
How much does a performance model forget when the system changes?
==================================================================

A system is changed four times. A perceptron learns the measurements of each state in turn,
once by plain fine-tuning and once with a memory of 500 rows. After each state it is tested on
all of them, before and after the present one.
"""

# %%
# A stream of measurements: the workload moves, and so does the system behind it. Its state
# shows in the last column, so one model can be right about all of them.

from sklearn_cl import ContinualMLPRegressor, continual_validate
from sklearn_cl.datasets import make_drift_stream
from sklearn_cl.metrics import final_score, forgetting, learning_score

X, y, experience = make_drift_stream(n_experiences=5, random_state=0)

# %%
# ``R[i, j]`` is the score on experience ``j`` after learning experience ``i``.

STRATEGIES = ["naive", "ewc", "replay", "cumulative", "no_retrain"]
R = {}
for strategy in STRATEGIES:
    reg = ContinualMLPRegressor(strategy=strategy, batch_size=32, max_iter=60, random_state=0)
    R[strategy] = continual_validate(
        reg, X, y, experience=experience, scoring="neg_mean_absolute_error", random_state=0
    )["R"]

# %%
# Look at both columns: a model that learns nothing forgets nothing, and its final error shows it.

print(f"{'strategy':12}{'final error':>13}{'forgetting':>12}{'just learnt':>13}")
for strategy, scores in R.items():
    print(
        f"{strategy:12}{-final_score(scores):13.2f}{forgetting(scores):12.2f}"
        f"{-learning_score(scores):13.2f}"
    )

# %%
# Below the diagonal is the past: dark cells there are forgotten states of the system.

try:
    import matplotlib.pyplot as plt
except ImportError:
    raise SystemExit("The figure needs matplotlib: pip install matplotlib.") from None

shown = ["naive", "replay"]
top = max(-R[strategy].min() for strategy in shown)
fig, axes = plt.subplots(1, 2, figsize=(10, 4.8), layout="constrained", sharey=True)
for ax, strategy in zip(axes, shown, strict=True):
    image = ax.imshow(-R[strategy], cmap="cividis_r", vmin=0, vmax=top)
    for (i, j), error in zip(
        [(i, j) for i in range(5) for j in range(5)], -R[strategy].ravel(), strict=True
    ):
        color = "white" if error > 0.5 * top else "black"
        ax.text(j, i, f"{error:.1f}", ha="center", va="center", color=color)
    ax.set(
        title=f"{strategy}: final error {-final_score(R[strategy]):.2f}",
        xlabel="tested on experience",
        xticks=range(5),
        yticks=range(5),
    )
axes[0].set_ylabel("after learning experience")
fig.colorbar(image, ax=axes, label="mean absolute error")
fig.savefig("plot_quickstart.png", dpi=120, bbox_inches="tight")
