"""Metrics against numbers worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from sklearn_cl import metrics

# Errors after each of three experiences; of an untrained model; of joint training.
E = [[2, 1.2, 6], [1, 1.5, 5], [3, 2.5, 1]]
UNTRAINED, JOINT = [7, 5, 8], [1.2, 1.6, 1.1]
ERRORS = {"greater_is_better": False}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (metrics.final_score(E), 13 / 6),
        (metrics.learning_score(E), 1.5),
        (metrics.anytime_score(E), 1.805555555556),
        (metrics.anytime_score(E, average="pairs"), 11 / 6),
        (metrics.backward_transfer(E, **ERRORS), -1.0),
        (metrics.backward_transfer(E, average="pairs", **ERRORS), -1 / 3),
        (metrics.forgetting(E, best="learnt", **ERRORS), 1.5),
        (metrics.forgetting(E, **ERRORS), 1.65),
        (metrics.forward_transfer(E, UNTRAINED, **ERRORS), 3.4),
        (metrics.intransigence(E, JOINT, **ERRORS), -0.1),
        (metrics.final_score(E) / np.mean(JOINT), 1.666666666667),
        (np.mean(np.divide(E[-1], JOINT)), 1.657196969697),
        (metrics.forgetting([[2, 5], [1, 1]], **ERRORS), -1),
        (metrics.forgetting([[2, 5], [1, 1]], clip=True, **ERRORS), 0),
        (metrics.backward_transfer([[2, 5], [1, 1]], **ERRORS), 1),
        # Rows are time, columns are tests: swapped axes would give 0.65.
        (metrics.forgetting([[0.9, 0.2, 0.1], [0.6, 0.8, 0.3], [0.5, 0.7, 0.9]]), 0.25),
        (metrics.backward_transfer([[0.9, 0.2, 0.1], [0.6, 0.8, 0.3], [0.5, 0.7, 0.9]]), -0.25),
    ],
)
def test_by_hand(value, expected):
    assert value == pytest.approx(expected, abs=1e-10)


def test_errors_are_negated_scores():
    scores = -np.array(E)
    for name in ("forgetting", "backward_transfer"):
        function = getattr(metrics, name)
        assert function(scores) == pytest.approx(function(E, **ERRORS))
    assert metrics.forward_transfer(scores, np.negative(UNTRAINED)) == pytest.approx(3.4)
    assert metrics.intransigence(scores, np.negative(JOINT)) == pytest.approx(-0.1)


def test_stacks_give_arrays():
    stack = np.stack([E, np.multiply(E, 2), np.multiply(E, 3)])
    for name in ("final_score", "learning_score", "anytime_score"):
        function = getattr(metrics, name)
        np.testing.assert_allclose(function(stack), function(E) * np.arange(1, 4))
    for name in ("forgetting", "backward_transfer"):
        function = getattr(metrics, name)
        np.testing.assert_allclose(
            function(stack, **ERRORS), function(E, **ERRORS) * np.arange(1, 4)
        )


@pytest.mark.parametrize("R", [[[1, 2, 3], [4, 5, 6]], [1, 2], np.zeros((2, 3, 4))])
def test_a_matrix_that_is_not_square(R):
    with pytest.raises(ValueError, match=r"R must be a square matrix.*got shape"):
        metrics.final_score(R)


def test_other_bad_input():
    with pytest.raises(ValueError, match="NaN"):
        metrics.final_score([[1, np.nan], [1, 1]])
    with pytest.raises(ValueError, match="at least two experiences"):
        metrics.forgetting([[1.0]])
    with pytest.raises(ValueError, match="baseline must hold one score for each of the 3"):
        metrics.forward_transfer(E, [1, 2])
    with pytest.raises(ValueError, match="best must be 'earlier' or 'learnt'; got 'all'"):
        metrics.forgetting(E, best="all")
