"""
Which strategy for my pipeline, and what will it forget?
=========================================================

A job's run time is measured on three releases of a system. The table has a category and columns
of different units, so the model is a pipeline, tuned by `GridSearchCV` as always: over
strategies and their parameters, on folds that have rows of every release.
"""

# %%
# Jobs: their application, how many nodes they use, how much they write. Each release
# makes one kind of application faster and another slower.

import numpy as np
import pandas as pd
import sklearn

chance = np.random.default_rng(0)
n = 900
release = np.repeat(["1.0", "1.1", "2.0"], n // 3)
jobs = pd.DataFrame(
    {
        "app": chance.choice(["solver", "render", "sort"], size=n),
        "nodes": 2.0 ** chance.integers(0, 8, size=n),
        "gib": chance.lognormal(3, 1, size=n),
        "io_mode": np.where(release == "2.0", 1.0, 0.0),
        "minor": np.where(release == "1.0", 0.0, 1.0),
    }
)
speed = pd.DataFrame(
    {"1.0": [1.0, 1.0, 1.0], "1.1": [2.5, 1.0, 0.5], "2.0": [1.0, 0.3, 2.0]},
    index=["solver", "render", "sort"],
)
factor = np.array([speed.loc[a, r] for a, r in zip(jobs["app"], release, strict=True)])
seconds = jobs["gib"] / jobs["nodes"] ** 0.7 / factor * chance.lognormal(0, 0.05, size=n)

# %%
# With metadata routing on, the labels of the experiences reach the folds, the pipeline and the
# scorers by themselves. The encoder and the scaler learn the first release and are then kept:
# nothing of the future leaks into the past.

from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from sklearn_cl import (
    ContinualMLPRegressor,
    ContinualPipeline,
    ExperienceKFold,
    forgetting_scorer,
)
from sklearn_cl.model_selection import continual_report, make_continual_scorer
from sklearn_cl.strategies import EWC, Naive, PseudoRehearsal, Replay

sklearn.set_config(enable_metadata_routing=True)
encode = make_column_transformer(
    (OneHotEncoder(handle_unknown="ignore"), ["app"]),
    (FunctionTransformer(np.log2, feature_names_out="one-to-one"), ["nodes", "gib"]),
    remainder=StandardScaler(),
)
net = ContinualMLPRegressor((32, 32), learning_rate_init=0.01, max_iter=40, random_state=0)
model = TransformedTargetRegressor(
    ContinualPipeline([("encode", encode), ("net", net)]), func=np.log, inverse_func=np.exp
)
search = GridSearchCV(
    model,
    [
        {"regressor__net__strategy": [Naive(), PseudoRehearsal()]},
        {
            "regressor__net__strategy": [EWC()],
            "regressor__net__strategy__strength": [0.1, 1.0],
        },
        {
            "regressor__net__strategy": [Replay(distill=0.75)],
            "regressor__net__strategy__capacity": [30, 90],
        },
    ],
    cv=ExperienceKFold(3, shuffle=True, random_state=0),
    scoring={
        "final": make_continual_scorer("final", "neg_mean_absolute_percentage_error"),
        "forgetting": forgetting_scorer,
    },
    refit="final",
).fit(jobs, seconds, experience=release)

# %%
# Chosen by the final error over all releases. Never choose by forgetting alone: what learns
# nothing forgets nothing.

tried = search.cv_results_
for params, final in zip(tried["params"], tried["mean_test_final"], strict=True):
    strategy, *more = params.values()
    print(f"{-final:6.1%} final error   {strategy} {more or ''}")
print("\nchosen:", search.best_params_["regressor__net__strategy"])

# %%
# What the chosen one knows of each release, on rows that it has not learnt.

from sklearn.base import clone
from sklearn.model_selection import train_test_split

rows = train_test_split(np.arange(n), stratify=release, random_state=0)
chosen = clone(search.best_estimator_)
chosen.fit(jobs.iloc[rows[0]], seconds.iloc[rows[0]], experience=release[rows[0]])
held = jobs.iloc[rows[1]], seconds.iloc[rows[1]], release[rows[1]]
print(pd.DataFrame(continual_report(chosen, *held)).round(2).to_string(index=False))

# %%
# Three pictures: the score matrix, the error of each release as the stream goes on, and the
# strategies side by side.

import matplotlib.pyplot as plt

from sklearn_cl import continual_validate
from sklearn_cl.inspection import (
    ForgettingDisplay,
    ScoreMatrixDisplay,
    StrategyComparisonDisplay,
)

ERROR = "neg_mean_absolute_percentage_error"
fig, axes = plt.subplots(1, 3, figsize=(15, 4), layout="constrained")
ScoreMatrixDisplay.from_estimator(chosen, *held, scoring=ERROR, ax=axes[0])
ForgettingDisplay.from_estimator(chosen, *held, scoring=ERROR, ax=axes[1])
compared = {
    name: continual_validate(
        ContinualPipeline([("encode", encode), ("net", clone(net).set_params(strategy=name))]),
        jobs,
        np.log(seconds),
        experience=release,
        scoring="neg_mean_absolute_error",
        random_state=0,
    )
    for name in ["naive", "ewc", "pseudo", "replay"]
}
StrategyComparisonDisplay.from_validation(compared, scoring="neg_mean_absolute_error", ax=axes[2])
fig.savefig("plot_pipeline_search.png", dpi=110)
