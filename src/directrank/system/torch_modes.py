"""PyTorch's modes and defaults, which a caller may have changed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch


@contextmanager
def pytorchs_own() -> Iterator[None]:
    """Within it gradients are recorded, autocast is off, and tensors are float32 on the CPU.

    Training and scoring set what they need of this themselves. The default type is the one of the
    whole process, and is touched only where it is another.
    """
    with ExitStack() as changed:
        changed.enter_context(torch.inference_mode(False))
        changed.enter_context(torch.enable_grad())
        for kind in ("cpu", "cuda"):
            if torch.is_autocast_enabled(kind):
                changed.enter_context(torch.autocast(kind, enabled=False))
        if torch.get_default_device().type != "cpu":  # a device that is named slows every call
            changed.enter_context(torch.device("cpu"))
        dtype = torch.get_default_dtype()
        if dtype != torch.float32:
            changed.callback(torch.set_default_dtype, dtype)
            torch.set_default_dtype(torch.float32)
        yield
