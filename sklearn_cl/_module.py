"""Recipes of a module: the perceptron that we build, or whatever the user brings."""

from __future__ import annotations

import copy
import inspect
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import UninitializedParameter

from sklearn_cl._chance import seeded

ACTIVATIONS: dict[str, type[nn.Module]] = {
    "identity": nn.Identity,
    "logistic": nn.Sigmoid,
    "relu": nn.ReLU,
    "tanh": nn.Tanh,
}


@dataclass(frozen=True)
class MLPRecipe:
    """A perceptron, with first weights and biases uniform and small.

    Parameters
    ----------
    hidden_layer_sizes : sequence of int
        Width of each hidden layer.
    activation : {"identity", "logistic", "relu", "tanh"}
        The activation after each hidden layer.
    """

    hidden_layer_sizes: Sequence[int]
    activation: str

    def __call__(self, n_features: int, n_outputs: int, rng: torch.Generator) -> nn.Module:
        """Make the module; torch's global generator is left alone."""
        widths = [n_features, *self.hidden_layer_sizes, n_outputs]
        layers: list[nn.Module] = []
        for n_in, n_out in itertools.pairwise(widths):
            # nn.Linear() draws from the global generator even if the weights are overwritten.
            layer = nn.utils.skip_init(nn.Linear, n_in, n_out)
            # Half of torch's bound. Larger first weights, as scikit-learn's, left 2 to 15 % more
            # error on real streams: inputs that tell nothing keep the weight they began with.
            bound = 0.5 * n_in**-0.5
            with torch.no_grad():
                layer.weight.uniform_(-bound, bound, generator=rng)
                layer.bias.uniform_(-bound, bound, generator=rng)
            layers += [layer, ACTIVATIONS[self.activation]()]
        return nn.Sequential(*layers[:-1])


@dataclass(frozen=True)
class ModuleRecipe:
    """The user's own module: a class or function that makes one, or an instance to copy.

    Parameters
    ----------
    module : callable or torch.nn.Module
        If it takes ``n_features`` or ``n_outputs``, it is told them.
    params : dict
        Its other arguments.
    """

    module: Callable[..., nn.Module] | nn.Module
    params: dict[str, Any] = field(default_factory=dict)

    def __call__(self, n_features: int, n_outputs: int, rng: torch.Generator) -> nn.Module:
        """Make the module, with torch's global generator seeded from ``rng`` meanwhile."""
        with seeded(rng, torch.device("cpu")):
            made = self._make(n_features, n_outputs)
            if not isinstance(made, nn.Module):
                raise ValueError(f"module must give a torch.nn.Module; got {made!r}.")
            if any(isinstance(p, UninitializedParameter) for p in made.parameters()):
                with torch.no_grad():
                    made.eval()(torch.zeros(1, n_features))
        return made.train()

    def _make(self, n_features: int, n_outputs: int) -> Any:
        if isinstance(self.module, nn.Module) and not self.params:
            return copy.deepcopy(self.module)
        make = type(self.module) if isinstance(self.module, nn.Module) else self.module
        if not callable(make):
            raise ValueError(
                "module must be a torch.nn.Module, or a class or function that makes one; "
                f"got {make!r}."
            )
        known = inspect.signature(make).parameters
        widths = {"n_features": n_features, "n_outputs": n_outputs}
        told = {name: width for name, width in widths.items() if name in known}
        return make(**(told | self.params))
