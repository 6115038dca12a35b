"""Numbers too small for the processor to be fast with."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import torch

_tiny = sys.float_info.min


@contextmanager
def flushed_denormals() -> Iterator[None]:
    """Let this thread take denormal numbers for zero in the block, and as before after it.

    Weight decay drives the weights of dead units there, and a product with them takes many
    times longer.
    """
    if _tiny / 2 == 0:
        yield
        return
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(False)
