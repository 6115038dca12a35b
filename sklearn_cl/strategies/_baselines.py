"""Baselines: what continual learning has to beat, and what it would like to reach."""

from __future__ import annotations

from sklearn_cl._learner import Learner
from sklearn_cl._rows import Rows, concatenate
from sklearn_cl.strategies._base import Strategy


class Naive(Strategy):
    """Train on each experience as it comes, and on nothing else: fine-tuning.

    It forgets: the floor that every strategy should beat.

    Notes
    -----
    Take it when only the newest regime counts, and as the floor of every comparison.

    Examples
    --------
    >>> from sklearn_cl.strategies import Naive
    >>> Naive()
    Naive()
    """

    name = "naive"


class NoRetrain(Strategy):
    """Train on the first experience and never again.

    If this does as well as the others, the stream does not drift.

    Notes
    -----
    Take it as the other floor: what a model is worth that was never told of an upgrade.

    Examples
    --------
    >>> from sklearn_cl.strategies import NoRetrain
    >>> NoRetrain()
    NoRetrain()
    """

    name = "no_retrain"
    trained_ = False

    def begin(self, experience: Rows, learner: Learner) -> Rows | None:
        return None if self.trained_ else experience

    def consolidate(self, experience: Rows, learner: Learner) -> None:
        self.trained_ = True


class FromScratch(Strategy):
    """Start anew with each experience and train on it alone.

    The ceiling of plasticity: it owes nothing to the past, not even a bad start. After each
    experience the model is the one that ``fit`` would give on that experience.

    Notes
    -----
    Take it when the past is worth nothing, and would only be a bad start.

    Examples
    --------
    >>> from sklearn_cl.strategies import FromScratch
    >>> FromScratch()
    FromScratch()
    """

    name = "from_scratch"
    trained_ = False

    def begin(self, experience: Rows, learner: Learner) -> Rows | None:
        if self.trained_:
            learner.reset()
        return experience

    def consolidate(self, experience: Rows, learner: Learner) -> None:
        self.trained_ = True


class Cumulative(Strategy):
    """Train on all rows seen so far, from where the last experience ended.

    The usual reference: it keeps every row (once), and each experience costs more than the
    one before.

    Notes
    -----
    Take it when every row may be kept and experiences are few, and as the reference of every
    comparison.

    Examples
    --------
    >>> from sklearn_cl.strategies import Cumulative
    >>> Cumulative()
    Cumulative()
    """

    name = "cumulative"
    rows_: Rows | None = None

    def begin(self, experience: Rows, learner: Learner) -> Rows | None:
        self.rows_ = experience if self.rows_ is None else concatenate(self.rows_, experience)
        return self.rows_
