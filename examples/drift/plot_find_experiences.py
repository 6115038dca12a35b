"""
Where did the system change, if nobody wrote it down?
======================================================

Most logs have times and no labels. `detect_experiences` looks at the errors of a reference model: a
change of the system shows there, a change of the workload does not, even if it moves the target
more.
"""

import matplotlib.pyplot as plt
import numpy as np

from sklearn_cl.datasets import make_drift_stream
from sklearn_cl.drift import detect_experiences

X, y, experience, facts = make_drift_stream(4, 500, drift="hidden", facts=True, random_state=0)
# The workload comes in waves, which is no drift of the system. The target follows, by 10 for each
# unit of this input, times the factor of the system.
load = 1.5 * (1 + np.sin(2 * np.pi * np.arange(len(y)) / 150))
X[:, 3] += load
y += facts.factor * 10 * load
labels, report = detect_experiences(X, y, return_report=True)
true = np.flatnonzero(np.diff(experience)) + 1
print("changed at", true.tolist())
print("found at  ", list(report.boundaries))

# %%
# Above, the target, in which the waves are larger than the changes. Below, what the detector looks
# at.

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
