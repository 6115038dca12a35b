"""
Can I remember without keeping a single row?
=============================================

Sometimes rows may not be kept: they belong to a user, or there are too many. Pseudo-rehearsal keeps
a few Gaussians of the inputs, draws new inputs from them, and asks the model as it stood for the
answers.
"""

import matplotlib.pyplot as plt

from sklearn_cl import ContinualMLPRegressor, continual_validate
from sklearn_cl.datasets import make_drift_stream
from sklearn_cl.inspection import StrategyComparisonDisplay
from sklearn_cl.strategies import LwF, PseudoRehearsal, Replay

X, y, experience = make_drift_stream(5, 400, random_state=0)
keep = {
    "no rows: pseudo": PseudoRehearsal(10),
    "no rows: lwf": LwF(),
    "no rows: ewc": "ewc",
    "no rows: naive": "naive",
    "100 rows": Replay(100),
    "500 rows": Replay(500),
}
results = {
    name: continual_validate(
        ContinualMLPRegressor(strategy=strategy, batch_size=32, max_iter=60, random_state=0),
        X,
        y,
        experience=experience,
        scoring="neg_mean_absolute_error",
        random_state=0,
    )
    for name, strategy in keep.items()
}

# %%
# The best is at the lower left: small error, little forgotten.

fig, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
StrategyComparisonDisplay.from_validation(results, scoring="neg_mean_absolute_error", ax=ax)
plt.show()
