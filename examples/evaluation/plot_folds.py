"""
What does KFold hide?
======================

Shuffled folds let a model see every state of the system before it is tested on it. The error they
report is that of a system that will never change again.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import KFold, cross_val_score

from sklearn_cl import DriftSplitter, ExperienceKFold
from sklearn_cl.datasets import make_drift_stream

X, y, experience = make_drift_stream(5, 200, drift="abrupt", random_state=0)
splitters = {
    "KFold(5, shuffle=True)": KFold(5, shuffle=True, random_state=0),
    "ExperienceKFold(5)": ExperienceKFold(5, shuffle=True, random_state=0),
    "DriftSplitter()": DriftSplitter(),
}
forest = RandomForestRegressor(50, random_state=0)

# %%
# Blue rows are learnt, orange ones tested. `DriftSplitter` asks the question that matters before an
# upgrade: how will a model of the past do on what comes next? `ExperienceKFold` asks another: how
# much is remembered of each state?

fig, axes = plt.subplots(3, 1, figsize=(9, 6.5), layout="constrained", sharex=True)
for ax, (name, splitter) in zip(axes, splitters.items(), strict=True):
    folds = list(splitter.split(X, y, None if name.startswith("KFold") else experience))
    errors = -cross_val_score(forest, X, y, cv=folds, scoring="neg_mean_absolute_error")
    for fold, (train, test) in enumerate(folds):
        ax.scatter(train, np.full(len(train), fold), c="tab:blue", marker="|", lw=0.6, s=90)
        ax.scatter(test, np.full(len(test), fold), c="tab:orange", marker="|", lw=0.6, s=90)
    for start in np.flatnonzero(np.diff(experience)) + 1:
        ax.axvline(start, color="black", lw=0.8)
    ax.set_title(f"{name}: error {errors.mean():.2f}", loc="left")
    ax.set(ylabel="fold", yticks=range(fold + 1))
    ax.invert_yaxis()
axes[-1].set_xlabel("row, in the order of time; lines where the system changed")
plt.show()
