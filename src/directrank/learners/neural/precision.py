"""Number formats of training: the weights', and that of the network's own products."""

from __future__ import annotations

import contextlib

import torch

from directrank.system.errors import ConfigError


def weight_type(name: str) -> torch.dtype:
    """The type of weights, scores and losses, ``float32`` or ``float64``."""
    return {"float32": torch.float32, "float64": torch.float64}[name]


def check(precision: str, dtype: str, device: torch.device) -> None:
    """Raise a :class:`ConfigError` where ``precision`` is not supported."""
    if precision == "float32":
        return
    if dtype != "float32":
        raise ConfigError(
            f"training.precision '{precision}' does not go with training.dtype '{dtype}'",
            "take dtype: float32, or precision: float32",
        )
    if device.type == "cuda":
        supported = torch.cuda.is_bf16_supported(including_emulation=False)
    else:
        supported = torch.ops.mkldnn._is_mkldnn_bf16_supported()
    if not supported:
        raise ConfigError(
            f"training.precision '{precision}': this machine's {device.type} has no {precision}",
            "take precision: float32; on a CPU, `arithmetic: portable` also switches it off",
        )


def products(precision: str, device: torch.device) -> contextlib.AbstractContextManager[object]:
    """Within it a network's matrix products are made in ``precision``."""
    if precision == "float32":
        return contextlib.nullcontext()
    return torch.autocast(device.type, dtype=torch.bfloat16)
