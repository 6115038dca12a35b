"""
How do I choose a strategy without looking ahead?
==================================================

A grid search over a whole stream knows how the stream ends. `ContinualSearchCV` chooses anew after
every experience, on a few rows that it kept aside, and never needs the future.
"""

import matplotlib.pyplot as plt
import numpy as np

from sklearn_cl import ContinualMLPRegressor
from sklearn_cl.datasets import make_drift_stream
from sklearn_cl.model_selection import ContinualSearchCV
from sklearn_cl.strategies import EWC, PseudoRehearsal, Replay

X, y, experience = make_drift_stream(6, 300, random_state=0)
candidates = ["naive", EWC(0.1), EWC(10.0), PseudoRehearsal(), Replay(50), Replay(300)]
reg = ContinualMLPRegressor(batch_size=32, max_iter=40, random_state=0)
search = ContinualSearchCV(reg, {"strategy": candidates}, random_state=0)

# %%
# The stream goes on. Three rows in ten are for us, to see whether the choice was good.

rng = np.random.default_rng(0)
held = rng.uniform(size=len(y)) < 0.3
errors = []
for k in range(6):
    rows = (experience == k) & ~held
    search.partial_fit(X[rows], y[rows])
    past = (experience <= k) & held
    errors.append([np.abs(model.predict(X[past]) - y[past]).mean() for model in search.candidates_])
    print(f"after experience {k}: {search.best_params_['strategy']}")

# %%
# Thin lines are the candidates on rows that none has seen; the thick one follows the choice.

errors = np.array(errors)
fig, ax = plt.subplots(figsize=(8.5, 4.4), layout="constrained")
for name, curve in zip(candidates, errors.T, strict=True):
    ax.plot(curve, lw=1, marker=".", label=name if isinstance(name, str) else repr(name))
chosen = errors[np.arange(6), search.choices_]
ax.plot(chosen, color="black", lw=3, alpha=0.6, label="chosen", zorder=0)
ax.set(xlabel="experiences learnt", xticks=range(6), xticklabels=range(1, 7))
ax.set(ylabel="mean absolute error on all so far", ylim=(0, None))
ax.legend(loc="upper left", bbox_to_anchor=(1, 1))
plt.show()
