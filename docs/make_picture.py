"""Draw the README's picture: what is forgotten through five software upgrades.

    python docs/make_picture.py

Run times of numerical kernels (`load_kernel_timings`), every third row; error of their logarithm.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np
import torch

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from sklearn_cl import ContinualMLPRegressor, continual_validate
from sklearn_cl.datasets import load_kernel_timings
from sklearn_cl.inspection import ScoreMatrixDisplay
from sklearn_cl.metrics import final_score

torch.set_num_threads(1)
timings = load_kernel_timings()
rows = np.arange(0, 18_000, 3)
X, y, release = timings.data[rows], np.log(timings.target[rows]), timings.experience[rows]
size = timings.feature_names.index("n")
X[:, size] = np.log(X[:, size])
results = {}
for strategy in ["naive", "replay"]:
    reg = ContinualMLPRegressor(strategy=strategy, batch_size=32, max_iter=40, random_state=0)
    result = continual_validate(
        reg, X, y, experience=release, scoring="neg_mean_absolute_error", random_state=0
    )
    error = -final_score(result["R"])
    results[f'strategy="{strategy}": final error {error:.2f}'] = result
    print(f"{strategy}: {error:.2f}")
fig, axes = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
ScoreMatrixDisplay.compare(results, scoring="neg_mean_absolute_error", axes=axes)
fig.savefig(Path(__file__).parent / "_static" / "upgrades.png", dpi=90)
