"""Torch's global generator, seeded for a while and put back."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch

# The global generator is one for all threads: who seeds it must be alone.
_alone = threading.RLock()


@contextmanager
def seeded(rng: torch.Generator, device: torch.device) -> Iterator[None]:
    """Let torch's global generators follow ``rng`` inside the block, and restore them after."""
    with _alone, torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        reseed(rng, device)
        yield


def reseed(rng: torch.Generator, device: torch.device) -> None:
    """Seed torch's global generators with a number drawn from ``rng``."""
    seed = int(torch.randint(2**62, (), generator=rng))
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        with torch.cuda.device(device):
            torch.cuda.manual_seed(seed)
