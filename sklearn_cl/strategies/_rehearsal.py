"""Rehearsal: train on a pool of old rows along with the new ones, in one forward pass."""

from __future__ import annotations

from abc import abstractmethod
from math import ceil
from typing import Any, Literal

import torch

from sklearn_cl._checks import check_number
from sklearn_cl._learner import Learner
from sklearn_cl._rows import Rows, mix
from sklearn_cl.buffers import Buffer, check_policy, make_buffer
from sklearn_cl.strategies._base import Strategy


class Pool:
    """Old rows to draw from in an experience; each comes once before any comes again."""

    def __init__(self, rows: Rows, rng: torch.Generator) -> None:
        self._rng = rng
        self._rows = rows.shuffled(rng)
        self._start = 0

    def __len__(self) -> int:
        return len(self._rows)

    def draw(self, size: int) -> Rows:
        """The next ``size`` rows, or all if there are no more."""
        if size >= len(self):
            return self._rows
        if self._start + size > len(self):
            self._rows, self._start = self._rows.shuffled(self._rng), 0
        self._start += size
        return self._rows.take(slice(self._start - size, self._start))


class Rehearsal(Strategy):
    """Mixes every batch with one of a pool; a subclass fills the pool with `recall`."""

    rehearses = True
    batch_size: int | None
    _pool: Pool | None = None
    _share = 0.0

    def check_params(self) -> None:
        check_number("batch_size", self.batch_size, low=1, integer=True, also=[None])

    def recall(
        self,
        pool: Rows,
        past: float,
        experience: Rows,
        learner: Learner,
        strength: float | Literal["share"],
    ) -> None:
        """Rehearse ``pool`` in this experience; it stands for rows of total weight ``past``."""
        share = strength == "share"
        odds = self.portion * past / experience.total if share else float(strength)
        if odds:
            # What others in a chain mix in before counts with the new rows.
            self._share = odds / (1 + learner.past + odds)
            learner.past += odds
            self.fill(pool, learner)

    def fill(self, pool: Rows, learner: Learner) -> None:
        """Rehearse ``pool`` in this experience."""
        self._pool = Pool(pool, learner.rng)
        # In a chain, those that rehearse share a batch.
        self._size = self.batch_size or ceil(learner.batch_size * self.portion)

    def rehearse(self, batch: Rows, learner: Learner) -> Rows:
        return batch if self._pool is None else mix(batch, self._pool.draw(self._size), self._share)

    def rest(self) -> None:
        """Drop the pool at the end of the experience."""
        for name in ("_pool", "_share", "_size"):
            self.__dict__.pop(name, None)


class Memory(Rehearsal):
    """Keeps rows in a buffer; a subclass says in `lesson` what an experience does with them."""

    capacity: int | None
    policy: Any
    buffer_: Buffer | None = None

    def check_params(self) -> None:
        super().check_params()
        check_number("capacity", self.capacity, low=1, integer=True, also=[None])
        check_policy(self.policy, self.buffer_)

    def begin(self, experience: Rows, learner: Learner) -> Rows | None:
        if self.buffer_ is not None:
            self.lesson(experience, learner, self.buffer_)
        return experience

    @abstractmethod
    def lesson(self, experience: Rows, learner: Learner, buffer: Buffer) -> None:
        """Before an experience that has a past."""

    def consolidate(self, experience: Rows, learner: Learner) -> None:
        self.rest()
        if self.buffer_ is None:
            self.buffer_ = make_buffer(self.policy, self.capacity)
        self.buffer_.capacity = self.capacity
        self.file(experience, learner, self.buffer_)

    def file(self, experience: Rows, learner: Learner, buffer: Buffer) -> None:
        """Offer the rows of an experience to the buffer."""
        buffer.add(experience, learner.rng)


class DarkMemory(Memory):
    """Files the net's own answer with each row, and teaches a mixture of it and the target.

    Attributes
    ----------
    dark : str
        The parameter that asks for the answers.
    """

    dark = "alpha"

    def mixture(self) -> tuple[float | Literal["share"], float]:
        """Weight of the past relative to the new rows, and the answer's part in the target."""
        raise NotImplementedError

    def check_params(self) -> None:
        super().check_params()
        if self.buffer_ is not None and self.mixture()[1] and "answer" not in self.buffer_.notes:
            raise ValueError(
                f"{self.dark} must stay 0 while the stream goes on, since no answers were filed "
                f"with the rows; got {getattr(self, self.dark)!r}. Call fit to start anew."
            )

    def lesson(self, experience: Rows, learner: Learner, buffer: Buffer) -> None:
        strength, part = self.mixture()
        pool = buffer.sample()
        if part:
            answer = buffer.notes["answer"].to(pool.y)
            pool = Rows(pool.X, pool.y + part * (answer - pool.y), pool.weight)
        self.recall(pool, buffer.total, experience, learner, strength)

    def file(self, experience: Rows, learner: Learner, buffer: Buffer) -> None:
        filed = "answer" in buffer.notes if len(buffer) else self.mixture()[1] > 0
        notes = {"answer": learner.predict(experience.X)} if filed else {}
        buffer.add(experience, learner.rng, **notes)
