"""
How many rows must I keep?
===========================

The final error of a memory of 10 to 1 000 rows, out of 1 400, with and without distillation:
rehearsing a mixture of the target and what the model once answered takes noise out of it.
"""

import matplotlib.pyplot as plt

from sklearn_cl import ContinualMLPRegressor, continual_validate
from sklearn_cl.datasets import make_drift_stream
from sklearn_cl.metrics import final_score
from sklearn_cl.strategies import Replay

X, y, experience = make_drift_stream(5, 400, noise=3.0, random_state=0)


def final_error(strategy):
    """Over all experiences, after the last one."""
    reg = ContinualMLPRegressor(strategy=strategy, batch_size=32, max_iter=30, random_state=0)
    result = continual_validate(
        reg, X, y, experience=experience, scoring="neg_mean_absolute_error", random_state=0
    )
    return -final_score(result["R"])


capacities = [10, 30, 100, 300, 1000]
errors = {
    "rehearse the targets": [final_error(Replay(n)) for n in capacities],
    "with distillation": [final_error(Replay(n, distill=0.75)) for n in capacities],
}

# %%
# Between keeping nothing and keeping everything, a few hundred rows go most of the way.

fig, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
for name, marker in zip(errors, "os", strict=True):
    ax.semilogx(capacities, errors[name], marker=marker, label=name)
ax.axhline(final_error("naive"), color="gray", linestyle=":", label="nothing kept (naive)")
ax.axhline(final_error("cumulative"), color="black", linestyle="--", label="all kept (cumulative)")
ax.set(xlabel="rows kept", ylabel="final mean absolute error", ylim=(0, None))
ax.legend()
plt.show()
