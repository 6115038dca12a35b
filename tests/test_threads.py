"""Threads: one for small nets, the user's setting untouched, and no hang after a fork."""

from __future__ import annotations

import subprocess
import sys
import threading

import joblib
import numpy as np
import pytest
import torch
from sklearn.model_selection import GridSearchCV

from sklearn_cl import ContinualMLPRegressor
from sklearn_cl.strategies import Strategy

X = np.random.default_rng(0).normal(size=(300, 4))
Y = X[:, 0]


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


class Witness(Strategy):
    """Writes down how many threads its step may use."""

    threads_ = 0

    def consolidate(self, experience, learner):
        self.threads_ = torch.get_num_threads()


@pytest.mark.parametrize(("width", "threads"), [(64, 1), (2500, 2)])
def test_a_small_step_uses_one_thread(two_threads, width, threads):
    reg = ContinualMLPRegressor(
        (width, width), strategy=Witness(), max_iter=1, batch_size=8, alpha=0.0
    )
    reg.set_params(learning_rate_init=1e-6)
    reg.fit(X[:16], Y[:16])
    assert reg.strategy_.threads_ == threads
    assert torch.get_num_threads() == 2
    reg.predict(X)
    assert torch.get_num_threads() == 2


def test_the_setting_survives_a_failure(two_threads):
    reg = ContinualMLPRegressor(solver="sgd", learning_rate_init=1e20, max_iter=5)
    with pytest.raises(ValueError, match="diverged"):
        reg.fit(X, Y)
    assert torch.get_num_threads() == 2


def test_the_setting_survives_threads_that_overlap(two_threads):
    torch.get_num_threads()
    search = GridSearchCV(
        ContinualMLPRegressor(max_iter=3, random_state=0), {"alpha": [0.1, 1.0, 10.0]}, cv=3
    )
    with joblib.parallel_config("threading", n_jobs=4):
        search.fit(X, Y)
    seen = []
    late = threading.Thread(target=lambda: seen.append(torch.get_num_threads()))
    late.start()
    late.join()
    assert [torch.get_num_threads(), *seen] == [2, 2]


FORKED = """
import os, sys
import numpy as np, torch
from sklearn_cl import ContinualMLPRegressor

torch.set_num_threads(2)
torch.exp(torch.randn(4_000_000)).sum()
X = np.random.default_rng(0).normal(size=(20_000, 8))
reg = ContinualMLPRegressor((300, 300), max_iter=1, batch_size=2_000, random_state=0)
reg.fit(X, X[:, 0])
expected = reg.predict(X)
child = os.fork()
if not child:
    assert np.allclose(reg.predict(X), expected)
    reg.fit(X, X[:, 0])
    os._exit(0 if np.allclose(reg.predict(X), expected, rtol=1e-3, atol=1e-3) else 1)
_, status = os.waitpid(child, 0)
print("child", status, "threads", torch.get_num_threads())
"""


@pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="this system has no fork")
def test_a_forked_child_does_not_hang():
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKED],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout.split() == ["child", "0", "threads", "2"], done.stderr[-500:]
