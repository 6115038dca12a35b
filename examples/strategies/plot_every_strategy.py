"""
Which strategy keeps what?
===========================

Every strategy with its defaults on one stream, whose fourth system is the first again with another
workload. Dark cells in the lower left are states of the system that were forgotten; the future, in
the upper right, is left out.
"""

import matplotlib.pyplot as plt
import numpy as np

from sklearn_cl import ContinualMLPRegressor, continual_validate
from sklearn_cl.datasets import make_drift_stream
from sklearn_cl.metrics import final_score
from sklearn_cl.strategies import available

X, y, experience = make_drift_stream(4, 400, random_state=0)
R = {}
for name in available():
    reg = ContinualMLPRegressor(strategy=name, batch_size=32, max_iter=20, random_state=0)
    R[name] = -continual_validate(
        reg, X, y, experience=experience, scoring="neg_mean_absolute_error", random_state=0
    )["R"]

# %%
# Sorted by the final error, the mean of the last row.

best_first = sorted(R, key=lambda name: R[name][-1].mean())
columns = 5
rows = -(-len(best_first) // columns)
learnt = np.tri(4, dtype=bool)
top = max(matrix[learnt].max() for matrix in R.values())
fig, axes = plt.subplots(rows, columns, figsize=(10, 2.25 * rows), layout="constrained")
for ax in axes.flat[len(best_first) :]:
    ax.set_axis_off()
for ax, name in zip(axes.flat, best_first, strict=False):
    image = ax.imshow(np.where(learnt, R[name], np.nan), cmap="cividis_r", vmin=0, vmax=top)
    ax.set_title(f"{name}: {-final_score(-R[name]):.2f}", fontsize=10)
    ax.set(xticks=[], yticks=[])
axes[0, 0].set(xlabel="tested on", ylabel="after learning")
fig.colorbar(image, ax=axes, label="mean absolute error", shrink=0.6)
plt.show()
