"""Threads: one for a small step, and one after a fork."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch

# Rows times parameters of a step; below it a second thread costs more than it brings
# (measured by benchmarks/threads.py).
_SMALL = 10**7

_lock = threading.Lock()
_forked = False
_active = 0
_outside = 1


def _note_fork() -> None:
    global _forked, _active, _lock
    _forked, _active, _lock = True, 0, threading.Lock()


# A fork takes torch's threads away but not torch's belief in them: it would wait for ever.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)


@contextmanager
def threads_for(work: int | None) -> Iterator[None]:
    """Let torch use one thread in the block if that is best, and as many as before after it.

    Parameters
    ----------
    work : int or None
        Rows times parameters of a step; None if that does not tell its cost.
    """
    global _active, _outside
    if _forked:
        torch.set_num_threads(1)
    if work is None or work >= _SMALL or _forked:
        yield
        return
    with _lock:
        # A thread that begins meanwhile inherits our one thread, not what the user has set.
        if not _active:
            _outside = torch.get_num_threads()
        before = max(torch.get_num_threads(), _outside)
        _active += 1
        torch.set_num_threads(1)
    try:
        yield
    finally:
        with _lock:
            torch.set_num_threads(before)
            _active -= 1
