"""Gradient constraints: change a step so that it does not undo what was learnt."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from scipy.optimize import nnls
from torch import Tensor

from sklearn_cl._checks import check_number
from sklearn_cl._learner import Learner
from sklearn_cl._rows import Rows
from sklearn_cl.buffers import Balanced, Buffer
from sklearn_cl.strategies._base import Strategy
from sklearn_cl.strategies._rehearsal import Memory, Pool


class AGEM(Memory):
    r"""Averaged gradient episodic memory: no step that would raise the loss on the memory.

    With :math:`g` the gradient of a batch of new rows and :math:`r` that of a batch of the
    memory, a step with :math:`g^T r < 0` takes

    .. math:: \tilde g = g - \frac{g^T r}{r^T r} r

    instead, which is the nearest one that leaves the loss on the memory alone. It prevents
    forgetting to first order and repairs nothing; an optimizer with moments follows the
    projection only on average.

    Parameters
    ----------
    capacity : int or None, default=500
        Rows to keep; None keeps all.
    policy : str or Buffer, default="reservoir"
        Which rows; a name or an object of `sklearn_cl.buffers`.
    batch_size : int or None, default=None
        Rows of the memory in each step; None means as many as a full batch of the estimator.

    Attributes
    ----------
    buffer_ : Buffer
        The memory.

    Notes
    -----
    Take it to compare with; `Replay` makes more of the same memory at less cost.

    References
    ----------
    A. Chaudhry et al., "Efficient lifelong learning with A-GEM", ICLR 2019, arXiv:1812.00420.

    Examples
    --------
    >>> from sklearn_cl.strategies import AGEM
    >>> AGEM(capacity=200)
    AGEM(capacity=200)
    """

    name = "agem"
    rehearses = False

    def __init__(
        self,
        capacity: int | None = 500,
        policy: Any = "reservoir",
        batch_size: int | None = None,
    ) -> None:
        self.capacity = capacity
        self.policy = policy
        self.batch_size = batch_size

    def lesson(self, experience: Rows, learner: Learner, buffer: Buffer) -> None:
        self.fill(buffer.sample(), learner)
        self._reference = torch.empty_like(learner.theta)

    def rehearse(self, batch: Rows, learner: Learner) -> Rows:
        return batch

    def adjust(self, grad: Tensor, learner: Learner) -> None:
        if self._pool is not None:
            old = self._pool.draw(self._size)
            project(grad, learner.gradient(old, out=self._reference))

    def consolidate(self, experience: Rows, learner: Learner) -> None:
        self.__dict__.pop("_reference", None)
        super().consolidate(experience, learner)


class GEM(Memory):
    r"""Gradient episodic memory: no step that would raise the loss on any past experience.

    With :math:`r_k` the gradient on the memory of experience :math:`k`, a step takes

    .. math:: \tilde g = \arg\min_u \|u - g\|^2 \quad \text{so that} \quad r_k^T u \ge 0
        \text{ for all } k

    whose dual, a non-negative least squares problem in as many unknowns as there are
    constraints, is solved exactly. A step costs a backward pass for each of them. Beyond
    ``max_constraints`` neighbouring experiences share one, so that the cost stays bounded.

    Parameters
    ----------
    capacity : int or None, default=500
        Rows to keep, as many of each experience; None keeps all.
    margin : float, default=0.0
        Least value of the dual variables, at least 0: more pushes every step towards the past,
        as the 0.5 of the authors' code does.
    batch_size : int or None, default=None
        Rows of the memory in each step, divided between the constraints; None means as many as
        a full batch of the estimator.
    max_constraints : int, default=8
        Constraints at most, at least 1; with 1 it is `AGEM`.

    Attributes
    ----------
    buffer_ : Buffer
        The memory; ``buffer_.notes["experience"]`` says where each row comes from.

    Notes
    -----
    Take it if a step must never raise the loss on any past experience; with many experiences it
    costs several times `AGEM`.

    References
    ----------
    D. Lopez-Paz, M. Ranzato, "Gradient episodic memory for continual learning", NeurIPS 2017,
    arXiv:1706.08840.

    Examples
    --------
    >>> from sklearn_cl.strategies import GEM
    >>> GEM(margin=0.5)
    GEM(margin=0.5)
    """

    name = "gem"
    rehearses = False
    _pools: list[Pool] | None = None

    def __init__(
        self,
        capacity: int | None = 500,
        margin: float = 0.0,
        batch_size: int | None = None,
        max_constraints: int = 8,
    ) -> None:
        self.capacity = capacity
        self.margin = margin
        self.batch_size = batch_size
        self.max_constraints = max_constraints

    @property
    def policy(self) -> str:
        """Constraints need to know the experiences."""
        return Balanced.name

    def check_params(self) -> None:
        check_number("margin", self.margin, low=0)
        check_number("max_constraints", self.max_constraints, low=1, integer=True)
        super().check_params()

    def lesson(self, experience: Rows, learner: Learner, buffer: Buffer) -> None:
        rows, label = buffer.sample(), buffer.notes["experience"]
        groups = label.unique().tensor_split(min(self.max_constraints, len(label.unique())))
        self._pools = [
            Pool(rows.take(torch.isin(label, k).to(rows.X.device)), learner.rng) for k in groups
        ]
        size = self.batch_size or learner.batch_size
        self._size = max(1, size // len(groups))
        self._references = learner.theta.new_empty(len(groups), len(learner.theta))

    def adjust(self, grad: Tensor, learner: Learner) -> None:
        if self._pools is not None:
            old = [pool.draw(self._size) for pool in self._pools]
            learner.gradients(old, out=self._references)
            project_all(grad, self._references, self.margin)

    def consolidate(self, experience: Rows, learner: Learner) -> None:
        for name in ("_pools", "_size", "_references"):
            self.__dict__.pop(name, None)
        super().consolidate(experience, learner)


class OGD(Strategy):
    r"""Orthogonal gradient descent: steps that leave the outputs on kept rows as they are.

    It keeps an orthonormal basis :math:`Q` of the derivatives of the net's outputs at some
    rows of each experience, and takes

    .. math:: \tilde g = g - Q^T Q g

    It keeps no row, but one vector as long as the parameters for each. It holds as long as the
    net is near the point where they were taken; an optimizer with moments follows the
    projection only on average.

    Parameters
    ----------
    n_directions : int, default=3
        Directions to keep of each experience, at least 1. More hold the past better as long as
        the net stays near, and then hold the net back: 50 were worse than `Naive` on one of our
        streams.
    capacity : int, default=60
        Directions to keep in all: those that came first stay, and when there is no room left
        nothing is added. Their bytes stand in ``experiences_``.

    Attributes
    ----------
    basis_ : Tensor of shape (n_directions, n_parameters)
        :math:`Q`.

    Notes
    -----
    Take it for experiences that are few and much alike: each kept direction is a vector as long as
    all parameters.

    References
    ----------
    M. Farajtabar et al., "Orthogonal gradient descent for continual learning", AISTATS 2020,
    arXiv:1910.07104.

    Examples
    --------
    >>> from sklearn_cl.strategies import OGD
    >>> OGD(n_directions=20)
    OGD(n_directions=20)
    """

    name = "ogd"
    holds_parameters = True
    basis_: Tensor | None = None

    def __init__(self, n_directions: int = 3, capacity: int = 60) -> None:
        self.n_directions = n_directions
        self.capacity = capacity

    def check_params(self) -> None:
        check_number("n_directions", self.n_directions, low=1, integer=True)
        check_number("capacity", self.capacity, low=1, integer=True)

    def adjust(self, grad: Tensor, learner: Learner) -> None:
        if self.basis_ is not None:
            grad.sub_(self.basis_.T @ (self.basis_ @ grad))

    def consolidate(self, experience: Rows, learner: Learner) -> None:
        old = learner.theta.new_empty(0, len(learner.theta)) if self.basis_ is None else self.basis_
        room = min(self.n_directions, self.capacity - len(old), old.shape[1] - len(old))
        if room <= 0:
            return
        some = _some(len(experience), room, learner.rng).to(experience.X.device)
        fresh = learner.jacobian(experience.take(some)).flatten(0, 1)[:room].double()
        basis = old.double()
        for _ in range(2):
            # Once more, because rounding leaves a part of what it should remove.
            fresh = fresh - (fresh @ basis.T) @ basis
        _, size, directions = torch.linalg.svd(fresh, full_matrices=False)
        new = directions[size > 1e-6 * size.max().clamp(min=1e-30)]
        self.basis_ = torch.cat([old, new.to(old.dtype)])


def project(grad: Tensor, reference: Tensor) -> None:
    """Take from ``grad``, in place, what would raise the loss that ``reference`` descends."""
    dot, square = torch.dot(grad, reference), torch.dot(reference, reference)
    if dot < 0 and square > 0:
        grad.sub_(reference, alpha=float(dot / square))


def project_all(grad: Tensor, references: Tensor, margin: float = 0.0) -> None:
    """The nearest gradient, in place, that raises the loss of none of the references."""
    if not margin and bool((references @ grad >= 0).all()):
        return
    references, pushed = references.double(), grad.double()
    if margin:
        pushed += margin * references.sum(0)
    gram = (references @ references.T).cpu().numpy()
    dots = (references @ pushed).cpu().numpy()
    # What is not finite is left to be told as a divergence.
    if (dots < 0).any() and np.isfinite(gram).all() and np.isfinite(dots).all():
        # As if of unit length, because their sizes differ; zero ones constrain nothing.
        length = np.sqrt(gram.diagonal())
        unit = np.divide(1, length, out=np.zeros_like(length), where=length > 0)
        # min |units^T u + pushed| over u >= 0, by a root of the Gram matrix; equal references
        # make it singular, which does no harm.
        square, axes = np.linalg.eigh(unit[:, None] * gram * unit)
        root = np.sqrt(square.clip(0))
        inverse = np.divide(1, root, out=np.zeros_like(root), where=root > 1e-7 * root[-1])
        u, _ = nnls(root[:, None] * axes.T, -inverse * (axes.T @ (unit * dots)))
        pushed += torch.from_numpy(u * unit).to(pushed) @ references
    elif not margin:
        return
    grad.copy_(pushed)


def _some(n: int, size: int, rng: torch.Generator) -> Tensor:
    return torch.randperm(n, generator=rng)[:size]
