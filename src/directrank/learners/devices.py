"""The device on which a network is trained."""

from __future__ import annotations

import os
import re

import torch

from directrank.system.errors import ConfigError


def chosen_device(name: str) -> str:
    """The device ``name``, where ``auto`` is a GPU if there is one, and else the CPU.

    Raises:
        ConfigError: the device is unknown, or a GPU is named, and PyTorch finds none.
    """
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if not isinstance(name, str) or not re.fullmatch(r"cpu|cuda(:\d+)?", name):
        raise ConfigError(f"unknown device {name!r}", "choose 'cpu', 'cuda', 'cuda:N' or 'auto'")
    if name.startswith("cuda") and not torch.cuda.is_available():
        hidden = os.environ.get("CUDA_VISIBLE_DEVICES")
        raise ConfigError(
            "device 'cuda' was requested, but PyTorch finds no GPU",
            "use the device cpu"
            + (f", or check CUDA_VISIBLE_DEVICES={hidden!r}" if hidden is not None else ""),
        )
    return name
