"""What is learnt, as plain numpy: for pickling, moving between devices and counting bytes."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

_TENSOR = "tensor as numpy"
_GENERATOR = "torch generator as numpy"


class Stateful:
    """Holds tensors, and pickles them as numpy arrays that own just their own values.

    A pickled view would carry its whole storage, and a file without torch's own classes can
    be opened on another device, by another release, or by skops.
    """

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = pack(vars(self))
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(unpack(state))

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        twin = self.__class__.__new__(self.__class__)
        memo[id(self)] = twin
        vars(twin).update(copy.deepcopy(vars(self), memo))
        return twin


def map_state(state: Any, function: Callable[[Any], Any]) -> Any:
    """Copy a nest of dicts, lists, tuples and stateful objects, with ``function`` of the rest."""
    if isinstance(state, dict):
        return {key: map_state(value, function) for key, value in state.items()}
    if type(state) in (list, tuple):
        return type(state)(map_state(value, function) for value in state)
    if isinstance(state, Stateful):
        twin = state.__class__.__new__(state.__class__)
        vars(twin).update(map_state(vars(state), function))
        return twin
    return function(state)


def pack(state: Any) -> Any:
    """Replace tensors and generators by numpy arrays; stateful objects do that themselves."""
    if isinstance(state, dict):
        return {key: pack(value) for key, value in state.items()}
    if type(state) in (list, tuple):
        return type(state)(pack(value) for value in state)
    if isinstance(state, Tensor):
        return {_TENSOR: state.detach().cpu().numpy().copy()}
    if isinstance(state, torch.Generator):
        return {_GENERATOR: state.get_state().numpy().copy()}
    return state


def unpack(state: Any) -> Any:
    """Undo `pack`; all tensors are on the CPU."""
    if isinstance(state, dict):
        if state.keys() == {_TENSOR}:
            return torch.from_numpy(np.array(state[_TENSOR]))
        if state.keys() == {_GENERATOR}:
            generator = torch.Generator()
            generator.set_state(torch.from_numpy(np.array(state[_GENERATOR])))
            return generator
        return {key: unpack(value) for key, value in state.items()}
    if type(state) in (list, tuple):
        return type(state)(unpack(value) for value in state)
    return state


def to_device(state: Any, device: torch.device) -> Any:
    """Copy a nest of state with all tensors on ``device``."""
    return map_state(state, lambda leaf: leaf.to(device) if isinstance(leaf, Tensor) else leaf)


def n_bytes(state: Any) -> int:
    """Bytes of all tensors in a nest of state, each counted once."""
    sizes: dict[int, int] = {}

    def measure(leaf: Any) -> None:
        if isinstance(leaf, Tensor):
            sizes[leaf.data_ptr()] = leaf.numel() * leaf.element_size()

    map_state(state, measure)
    return sum(sizes.values())
