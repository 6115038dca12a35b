"""Units: how a column that was constant at first is read once it moves."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor

from sklearn_cl._rows import Rows
from sklearn_cl._state import Stateful

_BOUND = 10.0
_JUMP = 3.0


@dataclass(frozen=True, eq=False)
class Units(Stateful):
    """The affine map from the unit of the rows to the unit of the net; the identity as a rule.

    Rows are standardised with the statistics of the first experience. A column that was
    constant there has none: it is *asleep*, and the net reads zero whatever its value. It
    wakes in the first experience in which it differs from that constant, with the statistics
    of that experience, and its input stays bounded from then on.

    Parameters
    ----------
    asleep, target_asleep : Tensor of shape (n_features,) or (n_outputs,), dtype bool
        The columns that have been constant so far.
    gain, shift, bound : Tensor of shape (n_features,)
        The net reads ``clip(X * gain + shift, -bound, bound)``.
    target_gain, target_shift : Tensor of shape (n_outputs,)
        The net is taught ``y * target_gain + target_shift``.
    identity : bool
        Whether all that changes nothing.
    count : float
        Total weight of the rows that `follow` has seen.
    """

    asleep: Tensor
    target_asleep: Tensor
    gain: Tensor
    shift: Tensor
    bound: Tensor
    target_gain: Tensor
    target_shift: Tensor
    identity: bool
    count: float = 0.0

    @classmethod
    def of(cls, asleep: Tensor, target_asleep: Tensor, dtype: torch.dtype) -> Units:
        """Units before anything has been learnt."""
        gain, target_gain = (~asleep).to(dtype), torch.ones_like(target_asleep, dtype=dtype)
        shift, bound = torch.zeros_like(gain), torch.full_like(gain, float("inf"))
        identity = not bool(asleep.any())
        return cls(
            asleep,
            target_asleep,
            gain,
            shift,
            bound,
            target_gain,
            torch.zeros_like(target_gain),
            identity,
        )

    def to(self, *, dtype: torch.dtype | None = None, device: torch.device | None = None) -> Units:
        """The same units in another dtype or on another device."""
        tensors = {
            f.name: getattr(self, f.name)
            for f in fields(self)
            if f.name not in ("identity", "count")
        }
        return replace(
            self,
            **{
                name: tensor.to(device, dtype if tensor.is_floating_point() else None)
                for name, tensor in tensors.items()
            },
        )

    def inputs(self, X: Tensor) -> Tensor:
        """What the net reads."""
        if self.identity:
            return X
        return torch.clamp(X * self.gain + self.shift, -self.bound, self.bound)

    def targets(self, y: Tensor) -> Tensor:
        """What the net is taught."""
        return y if self.identity else y * self.target_gain + self.target_shift

    def outputs(self, f: Tensor) -> Tensor:
        """The net's answer in the unit of the rows."""
        return f if self.identity else (f - self.target_shift) / self.target_gain

    def wake(self, rows: Rows) -> Units:
        """Units after the columns that move in ``rows`` have been given their statistics."""
        if not bool(self.asleep.any() or self.target_asleep.any()):
            return self
        woken = self.asleep & (rows.X != 0).any(0)
        target_woken = self.target_asleep & (rows.y != 0).any(0)
        if not bool(woken.any() or target_woken.any()):
            return self
        moved = rows.X != 0
        gain, shift = _woken(rows.X, moved)
        target_gain, target_shift = _woken(rows.y, torch.ones_like(rows.y, dtype=torch.bool))
        seen = ((rows.X * gain + shift).abs() * moved).amax(0).clamp(min=_BOUND)
        return replace(
            self,
            asleep=self.asleep & ~woken,
            target_asleep=self.target_asleep & ~target_woken,
            gain=torch.where(woken, gain, self.gain),
            shift=torch.where(woken, shift, self.shift),
            bound=torch.where(woken, seen, self.bound),
            target_gain=torch.where(target_woken, target_gain, self.target_gain),
            target_shift=torch.where(target_woken, target_shift, self.target_shift),
            identity=False,
        )

    def follow(self, rows: Rows, before: Units | None = None) -> Units:
        """Units with the statistics of all rows so far, these among them.

        The gain and shift of a column are those statistics, so nothing else is kept of the past.
        A column that slept in ``before`` and has just woken has those of ``rows`` already; from
        the next experience on it follows too, and needs no bound.
        """
        before = self if before is None else before
        total = self.count + rows.total
        if not self.count:
            return replace(self, count=total)
        part = rows.total / total
        followed = ~before.asleep
        gain, shift = _merged(self.gain, self.shift, rows.X, rows.weight, part)
        known = ~before.target_asleep
        target_gain, target_shift = _merged(
            self.target_gain, self.target_shift, rows.y, rows.weight, part
        )
        return replace(
            self,
            gain=torch.where(followed, gain, self.gain),
            shift=torch.where(followed, shift, self.shift),
            bound=torch.where(followed, float("inf"), self.bound),
            target_gain=torch.where(known, target_gain, self.target_gain),
            target_shift=torch.where(known, target_shift, self.target_shift),
            identity=False,
            count=total,
        )

    def anew(self, rows: Rows) -> Units:
        """Units of a net that starts anew on ``rows``."""
        mean, spread = _moments(rows.X, rows.weight)
        target_mean, target_spread = _moments(rows.y, rows.weight)
        asleep, target_asleep = (rows.X[0] == rows.X).all(0), (rows.y == rows.y[0]).all(0)
        gain = torch.where(asleep, 0.0, 1 / spread)
        target_gain = torch.where(target_asleep, 1.0, 1 / target_spread)
        dtype = rows.X.dtype
        return replace(
            Units.of(asleep, target_asleep, dtype),
            gain=gain.to(dtype),
            shift=torch.where(asleep, 0.0, -mean * gain).to(dtype),
            target_gain=target_gain.to(dtype),
            target_shift=(-target_mean * target_gain).to(dtype),
            identity=False,
            count=rows.total if self.count else 0.0,
        )


def _merged(
    gain: Tensor, shift: Tensor, columns: Tensor, weight: Tensor | None, part: float
) -> tuple[Tensor, Tensor]:
    """Gain and shift after rows that are ``part`` of all have joined."""
    mean, spread = _moments(columns, weight)
    old_mean, old_spread = -shift.double() / gain, 1 / gain.double()
    apart = mean - old_mean
    variance = (1 - part) * old_spread**2 + part * spread**2 + part * (1 - part) * apart**2
    new = variance.rsqrt()
    return new.to(gain), (-(old_mean + part * apart) * new).to(gain)


def _moments(columns: Tensor, weight: Tensor | None) -> tuple[Tensor, Tensor]:
    values = columns.double()
    if weight is None:
        return values.mean(0), values.std(0, correction=0)
    share = weight.double() / weight.double().sum()
    mean = (share * values).sum(0)
    return mean, (share * (values - mean).square()).sum(0).sqrt()


def _woken(columns: Tensor, counted: Tensor) -> tuple[Tensor, Tensor]:
    """Gain and shift from the values that count: old rows must not blur where the new ones lie."""
    values, n = columns.double(), counted.sum(0).clamp(min=1)
    mean = (values * counted).sum(0) / n
    spread = (((values - mean) * counted).square().sum(0) / n).sqrt()
    # Zero is the old constant. It stays the centre, so that the function on old rows stays,
    # unless the column now varies about a place that is far away.
    far = (mean.abs() > _JUMP * spread) & (spread > 1e-6 * mean.abs())
    centre = torch.where(far, mean, 0.0)
    gain = 1 / (((values - centre) * counted).square().sum(0) / n).sqrt()
    return gain.to(columns.dtype), (-centre * gain).to(columns.dtype)
