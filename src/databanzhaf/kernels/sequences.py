"""Which layers of a torch module always follow each other."""

from __future__ import annotations

import copy
from collections.abc import Callable

import torch
from torch import fx, nn

from databanzhaf.kernels.torch_layers import untouched


def pooled_convolutions(
    module: nn.Module, applies: Callable[[nn.Module], bool]
) -> tuple[set[nn.Module], set[nn.Module]]:
    """Convolutions whose outputs go to ReLU and a 2 x 2 maximum and nowhere else; and the layers
    of those two that follow such convolutions only, which may be left out.

    There are none in a forward pass that torch.fx cannot follow, or that uses other ones in
    training than when scoring.
    """
    layers = dict(module.named_modules(remove_duplicate=False))
    try:
        copied = copy.deepcopy(module)  # a forward pass may keep what it is given
        found = [_pooled(copied.train(mode), layers, applies) for mode in (True, False)]
    except Exception:  # a forward pass may raise anything when it is given no numbers
        return set(), set()
    return found[0] if found[0] == found[1] else (set(), set())


def _pooled(
    module: nn.Module, layers: dict[str, nn.Module], applies: Callable[[nn.Module], bool]
) -> tuple[set[nn.Module], set[nn.Module]]:
    graph = fx.Tracer().trace(module)

    def layer_of(node: fx.Node) -> nn.Module | None:
        return layers[str(node.target)] if node.op == "call_module" else None

    calls = [(node, layer) for node in graph.nodes if (layer := layer_of(node)) is not None]
    chains = {
        node: [node, *_followers(node, layer_of)]
        for node, layer in calls
        if applies(layer) and _followers(node, layer_of)
    }
    while True:
        inside = {node for chain in chains.values() for node in chain}
        outside = {
            layer for node, layer in calls if node not in inside and not isinstance(layer, nn.ReLU)
        }
        kept = {
            node: chain
            for node, chain in chains.items()
            if not any(layer_of(link) in outside for link in chain)
        }
        if len(kept) == len(chains):
            break
        chains = kept
    followers = {
        layer
        for chain in chains.values()
        for link in chain[1:]
        if (layer := layer_of(link)) is not None
    }
    elsewhere = {layer for node, layer in calls if node not in inside}
    return {layers[str(node.target)] for node in chains}, followers - elsewhere


def _followers(node: fx.Node, layer_of: Callable[[fx.Node], nn.Module | None]) -> list[fx.Node]:
    """ReLU and a maximum behind a node, in either order, if nothing else reads what they do."""
    chain: list[fx.Node] = []
    for _ in range(2):
        if len(node.users) != 1:
            return []
        (node,) = node.users
        chain.append(node)
    one, two = chain
    for relu, pool in ((one, two), (two, one)):
        if _is_relu(relu, layer_of(relu)) and _is_pool(layer_of(pool)):
            return chain
    return []


def _is_relu(node: fx.Node, layer: nn.Module | None) -> bool:
    functions = (torch.relu, nn.functional.relu, "relu")
    return (layer is not None and untouched(layer, nn.ReLU)) or (
        node.op in ("call_function", "call_method") and node.target in functions
    )


def _is_pool(layer: nn.Module | None) -> bool:
    return (
        isinstance(layer, nn.MaxPool2d)
        and untouched(layer, nn.MaxPool2d)
        and layer.kernel_size in (2, (2, 2))
        and layer.stride in (2, (2, 2))
        and layer.padding in (0, (0, 0))
        and layer.dilation in (1, (1, 1))
        and not layer.ceil_mode
        and not layer.return_indices
    )
