"""
What do five software upgrades do to a performance model?
===========================================================

Run times of 28 numerical kernels, measured while numpy, scipy, the JSON library and the compressor
below them were upgraded five times. A model that is simply trained on forgets how the old
releases behaved, and on some machine they still run.
"""

# %%
# Six states of the software, in each of which the same configurations were measured. The inputs say
# which state it was; the target spans four decades, so the model learns its logarithm. One row in
# four is enough here.

import matplotlib.pyplot as plt
import numpy as np

from sklearn_cl import ContinualMLPRegressor, continual_validate
from sklearn_cl.datasets import load_kernel_timings
from sklearn_cl.inspection import ScoreMatrixDisplay
from sklearn_cl.metrics import final_score, forgetting
from sklearn_cl.strategies import PseudoRehearsal, Replay, chain

timings = load_kernel_timings(as_frame=True)
unique = timings.frame.query("kernel == 'unique' and n > 10_000")
print("Median time of numpy.unique by release, in ms:")
print((1e3 * unique.groupby("numpy_minor").seconds.median()).round(2).to_string())

timings = load_kernel_timings()
rows = np.arange(0, 18_000, 4)
X, y, release = timings.data[rows], np.log(timings.target[rows]), timings.experience[rows]
size = timings.feature_names.index("n")
X[:, size] = np.log(X[:, size])

# %%
# Plain training against a memory of a tenth of the rows, with invented ones.

strategies = {
    "naive": "naive",
    "a tenth remembered": chain(PseudoRehearsal(10), Replay(capacity=300, distill=0.9)),
}
results = {}
for name, strategy in strategies.items():
    reg = ContinualMLPRegressor(strategy=strategy, batch_size=32, max_iter=40, random_state=0)
    results[name] = continual_validate(
        reg, X, y, experience=release, scoring="neg_mean_absolute_error", random_state=0
    )
    R = results[name]["R"]
    print(f"{name:20} final error {-final_score(R):.2f}, forgetting {forgetting(R):.2f}")

# %%
# Rows are what was learnt last, columns what is tested. An error of 0.2 in the logarithm is a run
# time that is wrong by a fifth; the last row is what a user of all six releases gets.

fig, axes = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
ScoreMatrixDisplay.compare(results, scoring="neg_mean_absolute_error", axes=axes)
plt.show()
