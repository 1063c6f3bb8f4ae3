"""Number formats of training: the weights', and that of the network's own products."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

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
    if device.type == "cuda":  # TF32 and bfloat16 came with the same GPUs
        supported = torch.cuda.is_bf16_supported(including_emulation=False)
    elif precision == "tf32":
        supported = False
    else:
        supported = torch.ops.mkldnn._is_mkldnn_bf16_supported()
    if not supported:
        raise ConfigError(
            f"training.precision '{precision}': this machine's {device.type} has no {precision}",
            "take precision: float32; on a CPU, `arithmetic: portable` also switches it off",
        )


@contextlib.contextmanager
def _tf32() -> Iterator[None]:
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = True
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


def products(
    precision: str, device: torch.device, backward: bool = False
) -> contextlib.AbstractContextManager[object]:
    """Within it a network's matrix products are made in ``precision``.

    ``tf32`` rounds their factors to 10 bits of mantissa and adds up in float32. A ``backward`` pass
    is told so; in bfloat16 it keeps to what the forward pass did.
    """
    if precision == "tf32":
        return _tf32()
    if precision == "float32" or backward:
        return contextlib.nullcontext()
    return torch.autocast(device.type, dtype=torch.bfloat16)
