"""
What if an old regime comes back?
==================================

A patch is rolled back, a machine is moved home: the first system is there again. A model that has
kept it is far ahead before it sees a row; one that has not starts over.
"""

import matplotlib.pyplot as plt
import numpy as np

from sklearn_cl import ContinualMLPRegressor
from sklearn_cl.datasets import make_drift_stream

# Every third system is the same; its state shows in the last column. Give that column the
# state itself, as a release number would, so that the fourth experience repeats the first.
X, y, experience = make_drift_stream(5, 300, random_state=0)
X[:, -1] = experience % 3

# %%
# Prequential: predict the rows of an experience before learning them.

errors = {}
for strategy in ["naive", "ewc", "replay", "pseudo"]:
    reg = ContinualMLPRegressor(strategy=strategy, batch_size=32, max_iter=60, random_state=0)
    errors[strategy] = []
    for k in range(5):
        rows = experience == k
        if k:
            errors[strategy].append(np.abs(reg.predict(X[rows]) - y[rows]).mean())
        reg.partial_fit(X[rows], y[rows])

# %%
# The second and the third system are new to everyone. (The third resembles the second, so that a
# model that holds to nothing else has the smaller error there.) The fourth and the fifth are the
# first and the second again, with another workload, and those who remember are ahead.

fig, ax = plt.subplots(figsize=(8, 4.2), layout="constrained")
width = 0.2
for i, (name, values) in enumerate(errors.items()):
    ax.bar(np.arange(4) + (i - 1.5) * width, values, width, label=name)
names = [
    "second system,\nnew",
    "third system,\nnew",
    "first system,\nagain",
    "second system,\nagain",
]
ax.set(xticks=range(4), xticklabels=names, ylabel="error before learning it")
ax.legend()
plt.show()
