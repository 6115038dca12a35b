"""
What are old rows worth after an upgrade?
==========================================

The system became slower and slightly different, the workload moved as well, and only a few jobs
have run since. `MomentMatching` learns from them how answers differ from what the old model
expected, and changes the old rows so that they can serve again.
"""

import matplotlib.pyplot as plt
import numpy as np

from sklearn_cl import ContinualMLPRegressor
from sklearn_cl.datasets import make_drift_stream
from sklearn_cl.drift import MomentMatching

X, y, _ = make_drift_stream(2, 1500, drift="covariate", random_state=0)
X_old, y_old, X_new, y_new = X[:1500], y[:1500], X[1500:], 1.6 * y[1500:] - 3
settings = {"batch_size": 64, "max_iter": 40, "random_state": 0}
old = ContinualMLPRegressor(**settings).fit(X_old, y_old)
X_test, y_test = X_new[1000:], y_new[1000:]


def error(model):
    """On jobs of the new system."""
    return np.abs(model.predict(X_test) - y_test).mean()


# %%
# With n new jobs: learn them alone, with the old rows as they are, or with those carried over.

counts = [20, 50, 200, 1000]
curves = {"new rows alone": [], "old rows as they are": []}
curves |= {f"carried, {kind}": [] for kind in ["marginal", "anchored"]}
for n in counts:
    few = X_new[:n], y_new[:n]
    fresh = ContinualMLPRegressor(**settings)
    curves["new rows alone"].append(error(fresh.fit(*few)))
    pooled = np.vstack([X_old, few[0]]), np.append(y_old, few[1])
    curves["old rows as they are"].append(error(fresh.fit(*pooled)))
    for kind in ["marginal", "anchored"]:
        match = MomentMatching(kind, model=old).fit(*few, X_old, y_old)
        X_then, y_then = match.carry(X_old, y_old)
        pooled = np.vstack([X_then, few[0]]), np.append(y_then, few[1])
        curves[f"carried, {kind}"].append(error(fresh.fit(*pooled)))

# %%
# Matching the moments of the target takes the move of the workload for one of the system.
# Anchoring at what the old model expected does not.

fig, ax = plt.subplots(figsize=(8.5, 4.4), layout="constrained")
for (name, values), marker in zip(curves.items(), "osD^", strict=True):
    ax.loglog(counts, values, marker=marker, label=name)
ax.axhline(error(old), color="gray", ls=":", label="the old model")
ax.set(xlabel="jobs since the upgrade", ylabel="mean absolute error on the new system")
ax.legend(loc="upper left", bbox_to_anchor=(1, 1))
plt.show()
