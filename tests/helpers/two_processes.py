"""What each of two processes does with half a batch: a step of DistributedDataParallel per loss."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from losses_cases import random_lists


def scorer() -> torch.nn.Module:
    """A small network of float64, the same at each call."""
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    return torch.nn.Sequential(net, torch.nn.Flatten(-2)).double()


def batch() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Features ``[B, L, 3]``, labels, mask and weights of the queries, for two equal halves."""
    _, labels, mask = random_lists(6, 7)
    features = torch.randn(6, 7, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    return features, labels, mask, torch.arange(6.0) + 1


def gradients(model: torch.nn.Module, loss: Callable[..., Tensor], rows: slice) -> list[Tensor]:
    """Of the parameters, for the weighted mean over these queries."""
    features, labels, mask, weights = (values[rows] for values in batch())
    model.zero_grad()
    loss(model(features), labels, mask, weights=weights).mean().backward()
    return [parameter.grad.clone() for parameter in model.parameters()]


def half(rank: int, losses: list[Callable[..., Tensor]], folder: Path) -> None:
    """The first process writes the gradients of every loss into the folder."""
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    store = f"file://{folder / 'store'}"
    torch.distributed.init_process_group("gloo", init_method=store, rank=rank, world_size=2)
    model = torch.nn.parallel.DistributedDataParallel(scorer())
    found = [gradients(model, loss, slice(3 * rank, 3 * rank + 3)) for loss in losses]
    if rank == 0:
        torch.save(found, folder / "gradients")
    torch.distributed.destroy_process_group()
