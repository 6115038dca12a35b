"""
Where did the system change, if nobody wrote it down?
======================================================

Most logs have times and no labels. `detect_experiences` looks at the errors of a reference model: a
change of the system shows there, a change of the workload does not.
"""

import matplotlib.pyplot as plt
import numpy as np

from sklearn_cl.datasets import make_drift_stream
from sklearn_cl.drift import detect_experiences

rng = np.random.default_rng(0)
X, y, experience = make_drift_stream(4, 500, drift="hidden", random_state=0)
# The workload moves all the time, which is no drift of the system.
X[:, 5] += np.linspace(0, 3, len(y)) + 0.3 * rng.normal(size=len(y))
labels, report = detect_experiences(X, y, return_report=True)
true = np.flatnonzero(np.diff(experience)) + 1
print("changed at", true.tolist())
print("found at  ", list(report.boundaries))

# %%
# Above, the target: hardly anything to see. Below, what the detector looks at.

fig, axes = plt.subplots(2, 1, figsize=(9, 6), layout="constrained")
axes[0].plot(y, ".", ms=2, color="tab:gray")
for row in true:
    axes[0].axvline(row, color="tab:orange", lw=2, label="changed" if row == true[0] else None)
for row in report.boundaries:
    first = row == report.boundaries[0]
    axes[0].axvline(row, color="black", ls="--", label="found" if first else None)
axes[0].set(ylabel="target", xlim=(0, len(y)))
axes[0].legend(loc="upper left")
report.plot(ax=axes[1])
plt.show()
