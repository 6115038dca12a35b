"""
Let Optuna choose the strength of a strategy
============================================

Optuna's scikit-learn integration is a search like any other: it takes the splitter, the labels as
``groups`` for the folds, and as ``experience`` for the model. It needs ``pip install optuna
optuna-integration``.
"""

import optuna
from optuna.distributions import FloatDistribution, IntDistribution
from optuna_integration import OptunaSearchCV

from sklearn_cl import ContinualMLPRegressor, ExperienceKFold
from sklearn_cl.datasets import make_drift_stream
from sklearn_cl.strategies import Replay

optuna.logging.set_verbosity(optuna.logging.WARNING)
X, y, experience = make_drift_stream(n_experiences=3, n_samples=200, random_state=0)
search = OptunaSearchCV(
    ContinualMLPRegressor(strategy=Replay(), batch_size=32, max_iter=30, random_state=0),
    {
        "strategy__capacity": IntDistribution(20, 300),
        "strategy__distill": FloatDistribution(0.0, 1.0),
        "learning_rate_init": FloatDistribution(3e-4, 3e-2, log=True),
    },
    cv=ExperienceKFold(3, shuffle=True, random_state=0),
    scoring="neg_mean_absolute_error",
    n_trials=12,
    random_state=0,
)
search.fit(X, y, groups=experience, experience=experience)
print("chosen:", {name: round(value, 4) for name, value in search.best_params_.items()})
print(f"mean absolute error over all experiences: {-search.best_score_:.2f}")
