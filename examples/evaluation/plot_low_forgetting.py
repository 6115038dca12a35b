"""
Is low forgetting good?
========================

Not by itself: a model that learns nothing forgets nothing. The workload of a system moves four
times. With EWC's strength turned up, forgetting falls to zero, and the final error passes its best
and rises again.
"""

import matplotlib.pyplot as plt
import numpy as np

from sklearn_cl import ContinualMLPRegressor, continual_validate
from sklearn_cl.datasets import make_drift_stream
from sklearn_cl.metrics import final_score, forgetting, learning_score
from sklearn_cl.strategies import EWC

X, y, experience = make_drift_stream(4, 300, drift="covariate", random_state=0)
strengths = 10.0 ** np.arange(-3, 8)
curves = {"forgetting": [], "error when just learnt": [], "final error": []}
for strength in strengths:
    reg = ContinualMLPRegressor(
        strategy=EWC(strength=strength), batch_size=32, max_iter=40, random_state=0
    )
    R = continual_validate(
        reg, X, y, experience=experience, scoring="neg_mean_absolute_error", random_state=0
    )["R"]
    curves["forgetting"].append(forgetting(R))
    curves["error when just learnt"].append(-learning_score(R))
    curves["final error"].append(-final_score(R))

# %%
# Choosing by forgetting would take the right end. Choose by the final error.

fig, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
for (name, values), style in zip(curves.items(), ["v:", "^--", "o-"], strict=True):
    ax.semilogx(strengths, values, style, label=name)
best = int(np.argmin(curves["final error"]))
ax.annotate(
    "best",
    (strengths[best], curves["final error"][best]),
    xytext=(0, 25),
    textcoords="offset points",
    ha="center",
    arrowprops={"arrowstyle": "->"},
)
ax.set(xlabel="strength of EWC", ylabel="mean absolute error")
ax.legend()
plt.show()
