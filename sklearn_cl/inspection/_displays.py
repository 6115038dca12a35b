"""Displays, as scikit-learn's: made from figures, drawn by `plot`."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_array

from sklearn_cl._checks import check_option
from sklearn_cl.metrics import final_score, forgetting
from sklearn_cl.model_selection import score_matrix

Floats = npt.NDArray[np.float64]
_MARKERS = "osD^vP*Xhp<>"


class _MatrixDisplay:
    """What the displays of one score matrix share."""

    def __init__(
        self,
        R: Any,
        *,
        labels: Any = None,
        score_name: str = "score",
        greater_is_better: bool = True,
    ) -> None:
        self.R = R
        self.labels = labels
        self.score_name = score_name
        self.greater_is_better = greater_is_better

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        experience: Any,
        *,
        scoring: Any = "neg_mean_absolute_error",
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw what a fitted estimator knew after each experience.

        Parameters
        ----------
        estimator : estimator object
            Has learnt at least two experiences and answers ``predict(X, after=i)``.
        X : {array-like, DataFrame} of shape (n_samples, n_features)
            Rows that it has not learnt, of every experience.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Their targets.
        experience : array-like of shape (n_samples,)
            Label of the experience of each row.
        scoring : str or callable, default="neg_mean_absolute_error"
            What to show. One whose name begins with ``"neg_"`` is shown as the error that it is.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.
        **kwargs : dict
            For `plot`.

        Returns
        -------
        display : object
            Drawn, with ``ax_`` and ``figure_``.
        """
        R, labels = score_matrix(estimator, X, y, experience, scoring=scoring)
        return cls._of(R, labels, scoring).plot(ax=ax, **kwargs)

    @classmethod
    def from_validation(
        cls, result: Any, *, scoring: str = "score", ax: Any = None, **kwargs: Any
    ) -> Self:
        """Draw what `continual_validate` returned; of several folds, their mean.

        Parameters
        ----------
        result : dict
            With "R", or "R_<scoring>" if there are several scores, and "labels".
        scoring : str, default="score"
            The name of the score. One that begins with ``"neg_"`` is shown as the error that it is.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.
        **kwargs : dict
            For `plot`.

        Returns
        -------
        display : object
            Drawn, with ``ax_`` and ``figure_``.

        Raises
        ------
        ValueError
            If ``result`` holds no such matrix.
        """
        return cls._of(_mean_matrix(result, scoring), result["labels"], scoring).plot(
            ax=ax, **kwargs
        )

    @classmethod
    def _of(cls, R: Floats, labels: Any, scoring: Any) -> Self:
        name = scoring if isinstance(scoring, str) else getattr(scoring, "__name__", "score")
        error = name.startswith("neg_")
        return cls(
            -R if error else R,
            labels=labels,
            score_name=name.removeprefix("neg_").replace("_", " "),
            greater_is_better=not error,
        )

    def plot(self, *args: Any, **kwargs: Any) -> Self:
        """Draw it."""
        raise NotImplementedError

    def _checked(self) -> tuple[Floats, list[str]]:
        R: Floats = check_array(self.R, dtype=np.float64, input_name="R", ensure_all_finite=False)
        if R.shape[0] != R.shape[1]:
            raise ValueError(f"R must be a square matrix of scores; got shape {R.shape}.")
        labels = range(len(R)) if self.labels is None else self.labels
        names = [_short(label) for label in labels]
        if len(names) != len(R):
            raise ValueError(
                f"labels must name each of the {len(R)} experiences of R; got {len(names)}."
            )
        return R, names


class ScoreMatrixDisplay(_MatrixDisplay):
    """The score matrix as a heat map: what was known of each experience after each.

    Parameters
    ----------
    R : array-like of shape (T, T)
        ``R[i, j]`` is the score on experience ``j`` after learning experience ``i``.
    labels : sequence of length T, default=None
        The experiences; None counts them from 0.
    score_name : str, default="score"
        What R holds.
    greater_is_better : bool, default=True
        False for errors; better is bright either way.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure around.
    im_ : matplotlib AxesImage
        The heat map.
    text_ : ndarray of shape (T, T) of matplotlib Text, or None
        The annotations.

    See Also
    --------
    ForgettingDisplay : The same as curves.

    Examples
    --------
    >>> from sklearn_cl.inspection import ScoreMatrixDisplay
    >>> display = ScoreMatrixDisplay([[0.9, 0.1], [0.5, 0.8]], labels=["old", "new"])
    >>> display.score_name
    'score'
    """

    def plot(
        self,
        ax: Any = None,
        *,
        vmin: float | None = None,
        vmax: float | None = None,
        cmap: Any = None,
        values_format: str | None = None,
        include_values: bool = True,
        colorbar: bool = True,
    ) -> Self:
        """Draw the heat map.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.
        vmin, vmax : float, default=None
            Ends of the colour scale; give the same to all that are compared, or use
            `compare`. None takes those of R.
        cmap : str or matplotlib Colormap, default=None
            None is "cividis", reversed for errors.
        values_format : str, default=None
            Format of the annotations; None gives the largest value three digits, and all of
            them as many decimals.
        include_values : bool, default=True
            Whether to annotate.
        colorbar : bool, default=True
            Whether to draw the colour scale.

        Returns
        -------
        self : ScoreMatrixDisplay
            With ``ax_`` and ``figure_``.
        """
        R, names = self._checked()
        self.figure_, self.ax_ = _axes(ax)
        cmap = cmap or ("cividis" if self.greater_is_better else "cividis_r")
        n = len(R)
        self.im_ = self.ax_.imshow(R, cmap=cmap, vmin=vmin, vmax=vmax)
        self.text_ = None
        if include_values:
            self.text_ = np.empty_like(R, dtype=object)
            shown = values_format or _common_format(R)
            longest = max(5, *(len(format(value, shown)) for value in R.ravel()))
            for i, j in np.ndindex(n, n):
                red, green, blue, _ = self.im_.cmap(self.im_.norm(R[i, j]))
                dark = 0.299 * red + 0.587 * green + 0.114 * blue < 0.5
                self.text_[i, j] = self.ax_.text(
                    j,
                    i,
                    format(R[i, j], shown),
                    ha="center",
                    va="center",
                    color="white" if dark else "black",
                    fontsize=min(10.0, 340 / (n * longest)),
                )
        size = min(10.0, 90 / n)
        # Long labels would run into each other.
        slant = {"rotation": 45, "ha": "right"} if max(map(len, names)) * n > 40 else {}
        self.ax_.set_xticks(range(n), names, fontsize=size, **slant)
        self.ax_.set_yticks(range(n), names, fontsize=size)
        self.ax_.set(xlabel="tested on", ylabel="after learning", title=self.score_name)
        if colorbar:
            self.figure_.colorbar(self.im_, ax=self.ax_, fraction=0.046, pad=0.04)
        return self

    @classmethod
    def compare(
        cls, results: dict[str, Any], *, scoring: str = "score", axes: Any = None, **kwargs: Any
    ) -> list[Self]:
        """Draw several results of `continual_validate` side by side, with one colour scale.

        Parameters
        ----------
        results : dict of str to dict
            Results by name, of the same stream.
        scoring : str, default="score"
            The name of the score, as for `from_validation`.
        axes : sequence of matplotlib Axes, default=None
            Where to draw; None makes a figure of one row.
        **kwargs : dict
            For `plot`.

        Returns
        -------
        list of ScoreMatrixDisplay
            One for each.
        """
        displays = [
            cls._of(_mean_matrix(result, scoring), result["labels"], scoring)
            for result in results.values()
        ]
        if len({np.shape(display.R) for display in displays}) != 1:
            raise ValueError(
                "results must be some of one stream; got matrices of shapes "
                f"{[np.shape(display.R) for display in displays]}."
            )
        every = np.stack([display.R for display in displays])
        limits = {"vmin": np.nanmin(every), "vmax": np.nanmax(every)}
        if axes is None:
            import matplotlib.pyplot as plt

            n = len(displays)
            axes = plt.subplots(
                1, n, figsize=(3.6 * n + 1, 3.8), layout="constrained", squeeze=False
            )[1][0]
        for ax, name, display in zip(axes, results, displays, strict=True):
            display.plot(ax=ax, colorbar=False, **(limits | kwargs))
            ax.set_title(name)
        for ax in axes[1:]:
            ax.set_ylabel("")
        axes[0].figure.colorbar(
            displays[-1].im_, ax=list(axes), fraction=0.046, pad=0.02, label=displays[0].score_name
        )
        return displays


class ForgettingDisplay(_MatrixDisplay):
    """The score of each experience as the stream goes on, from when it was learnt.

    Parameters
    ----------
    R : array-like of shape (T, T)
        ``R[i, j]`` is the score on experience ``j`` after learning experience ``i``.
    labels : sequence of length T, default=None
        The experiences; None counts them from 0.
    score_name : str, default="score"
        What R holds.
    greater_is_better : bool, default=True
        False for errors; it turns the words at the axis.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure around.
    lines_ : list of matplotlib Line2D
        One for each experience, and the mean of what has been learnt.

    Examples
    --------
    >>> from sklearn_cl.inspection import ForgettingDisplay
    >>> display = ForgettingDisplay([[0.1, 0.9], [0.5, 0.2]], greater_is_better=False)
    >>> display.greater_is_better
    False
    """

    def plot(self, ax: Any = None, *, cmap: Any = "cividis") -> Self:
        """Draw the curves.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.
        cmap : str or matplotlib Colormap, default="cividis"
            Colours of the experiences, from the first to the last.

        Returns
        -------
        self : ForgettingDisplay
            With ``ax_`` and ``figure_``.
        """
        import matplotlib as mpl

        R, names = self._checked()
        self.figure_, self.ax_ = _axes(ax)
        n = len(R)
        colours = mpl.colormaps.get_cmap(cmap)(np.linspace(0, 0.9, n))
        self.lines_ = []
        for j in range(n):
            self.ax_.axvline(j, color="0.85", linewidth=0.8, zorder=0)
            (line,) = self.ax_.plot(
                range(j, n),
                R[j:, j],
                color=colours[j],
                marker=_MARKERS[j % len(_MARKERS)],
                markersize=5,
                label=names[j],
            )
            self.lines_.append(line)
        known = [R[i, : i + 1].mean() for i in range(n)]
        (line,) = self.ax_.plot(
            range(n), known, color="#D55E00", linestyle="--", linewidth=2, label="mean so far"
        )
        self.lines_.append(line)
        size = min(10.0, 90 / n)
        slant = {"rotation": 45, "ha": "right"} if max(map(len, names)) * n > 60 else {}
        self.ax_.set_xticks(range(n), names, fontsize=size, **slant)
        better = "higher" if self.greater_is_better else "lower"
        if not self.greater_is_better and not (R < 0).any():
            # Errors have a zero, against which a change is large or small.
            self.ax_.set_ylim(bottom=0)
        self.ax_.set(xlabel="after learning", ylabel=f"{self.score_name} ({better} is better)")
        self.ax_.legend(
            title="tested on",
            fontsize=8,
            title_fontsize=8,
            loc="upper left",
            bbox_to_anchor=(1.01, 1),
            borderaxespad=0,
        )
        return self


class StrategyComparisonDisplay:
    """Final score of several strategies against what they forgot, or what they cost.

    Parameters
    ----------
    names : sequence of str
        The strategies.
    final : array-like of shape (n_strategies,)
        Their final scores.
    against : array-like of shape (n_strategies,)
        Forgetting or cost.
    score_name : str, default="score"
        What ``final`` holds.
    against_name : str, default="forgetting"
        What ``against`` holds.
    greater_is_better : bool, default=True
        False if ``final`` holds errors.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure around.

    Examples
    --------
    >>> from sklearn_cl.inspection import StrategyComparisonDisplay
    >>> display = StrategyComparisonDisplay(["naive", "replay"], [0.4, 0.7], [0.5, 0.1])
    >>> display.against_name
    'forgetting'
    """

    def __init__(
        self,
        names: Any,
        final: Any,
        against: Any,
        *,
        score_name: str = "score",
        against_name: str = "forgetting",
        greater_is_better: bool = True,
    ) -> None:
        self.names = names
        self.final = final
        self.against = against
        self.score_name = score_name
        self.against_name = against_name
        self.greater_is_better = greater_is_better

    @classmethod
    def from_validation(
        cls,
        results: dict[str, Any],
        *,
        against: str = "forgetting",
        scoring: str = "score",
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw results of `continual_validate`; of several folds, their means.

        Parameters
        ----------
        results : dict of str to dict
            Results by name, of the same stream.
        against : {"forgetting", "fit_time", "state_bytes"}, default="forgetting"
            The other axis: forgetting in the unit of the score, seconds of learning the
            whole stream, or bytes of state in the end.
        scoring : str, default="score"
            The name of the score. One that begins with ``"neg_"`` is shown as the error that it is.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.
        **kwargs : dict
            For `plot`.

        Returns
        -------
        display : StrategyComparisonDisplay
            Drawn, with ``ax_`` and ``figure_``.

        Raises
        ------
        ValueError
            If ``against`` is not known, or a result lacks the score.
        """
        check_option("against", against, ["forgetting", "fit_time", "state_bytes"])
        matrices = {name: _mean_matrix(result, scoring) for name, result in results.items()}
        # What failed has no score, and no place in the picture.
        failed = [name for name, R in matrices.items() if np.isnan(R).any()]
        results = {name: result for name, result in results.items() if name not in failed}
        if not results:
            raise ValueError(f"results must have one that did not fail; got {failed!r}.")
        R = np.stack([matrices[name] for name in results])
        if against == "forgetting":
            other, name = forgetting(R), "forgetting"
        else:
            parts = [np.atleast_2d(result[against]) for result in results.values()]
            if against == "fit_time":
                other = np.array([part.sum(1).mean() for part in parts])
                name = "seconds of learning the stream"
            else:
                other = np.array([part[:, -1].mean() / 2**10 for part in parts])
                name = "KiB of state in the end"
        error = scoring.startswith("neg_")
        final = final_score(R)
        display = cls(
            list(results),
            -final if error else final,
            other,
            score_name=scoring.removeprefix("neg_").replace("_", " "),
            against_name=name,
            greater_is_better=not error,
        )
        return display.plot(ax=ax, **kwargs)

    def plot(self, ax: Any = None, *, cmap: Any = "cividis") -> Self:
        """Draw the points.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.
        cmap : str or matplotlib Colormap, default="cividis"
            Colours, from the best to the worst final score.

        Returns
        -------
        self : StrategyComparisonDisplay
            With ``ax_`` and ``figure_``.

        Raises
        ------
        ValueError
            If there are not as many names as figures.
        """
        import matplotlib as mpl

        final, other = (np.asarray(v, dtype=np.float64) for v in (self.final, self.against))
        if not len(self.names) == len(final) == len(other):
            raise ValueError(
                "names, final and against must be of one length; got "
                f"{len(self.names)}, {len(final)} and {len(other)}."
            )
        self.figure_, self.ax_ = _axes(ax)
        best_first = np.argsort(-final if self.greater_is_better else final)
        colours = mpl.colormaps.get_cmap(cmap)(np.linspace(0, 0.9, len(final)))
        for place, k in enumerate(best_first):
            self.ax_.scatter(
                other[k],
                final[k],
                color=colours[place],
                marker=_MARKERS[place % len(_MARKERS)],
                s=55,
                edgecolor="black",
                linewidth=0.5,
                label=_short(self.names[k]),
                zorder=3,
            )
        self.ax_.grid(color="0.92")
        better = "higher" if self.greater_is_better else "lower"
        self.ax_.set(
            xlabel=f"{self.against_name} (lower is better)",
            ylabel=f"final {self.score_name} ({better} is better)",
        )
        # In the order of the final score, so that names need not find room between points.
        self.ax_.legend(
            fontsize=8,
            loc="upper left",
            bbox_to_anchor=(1.01, 1),
            borderaxespad=0,
            title="best first",
            title_fontsize=8,
        )
        return self


def _mean_matrix(result: Any, scoring: str) -> Floats:
    """The score matrix of a result, averaged over its folds."""
    for key in (f"R_{scoring}", "R"):
        if key in result:
            R = np.asarray(result[key], dtype=np.float64)
            return R.mean(0) if R.ndim == 3 else R
    known = [key.removeprefix("R_") for key in result if str(key).startswith("R_")]
    raise ValueError(
        f"scoring must be one of the scores of the result, {known!r}; got {scoring!r}."
    )


def _axes(ax: Any) -> tuple[Any, Any]:
    if ax is not None:
        return ax.figure, ax
    import matplotlib.pyplot as plt

    return plt.subplots(layout="constrained")


def _common_format(R: Floats) -> str:
    """As many decimals for all as give the largest three digits."""
    known = np.abs(R[np.isfinite(R)])
    largest = float(known.max()) if known.size else 0.0
    if largest >= 1e4 or 0 < largest < 1e-3:
        return ".1e"
    return f".{max(0, 2 - int(np.floor(np.log10(largest))) if largest else 0)}f"


def _short(label: Any) -> str:
    """A label as it fits below a column."""
    if isinstance(label, np.datetime64 | datetime):
        when: Any = np.datetime64(label)
        text = str(when.astype("datetime64[m]")).replace("T", " ").removesuffix(" 00:00")
    else:
        text = str(label)
    # The ends tell labels apart; matplotlib leaves those that begin with _ out of legends.
    text = text if len(text) <= 16 else "…" + text[-15:]
    return f" {text}" if text.startswith("_") else text
