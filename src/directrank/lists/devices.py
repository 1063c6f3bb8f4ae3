"""Copies of small arrays to the device of the documents and back."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor


def on_device(values: np.ndarray, device: torch.device) -> Tensor:
    """``values`` as a tensor on a device, without waiting for a GPU.

    Copies from pinned memory are queued like other work; from other memory they wait until all the
    work before them is done, which took most of the time of a step. On a CPU nothing is copied.
    """
    tensor = torch.from_numpy(values)
    if device.type == "cpu":
        return tensor
    if device.type != "cuda":
        return tensor.to(device)
    return tensor.pin_memory().to(device, non_blocking=True)


def reading(values: Tensor) -> Callable[[], np.ndarray]:
    """Begin to copy ``values`` from their device; the function returned waits for them alone.

    What a GPU is told to do in between does not delay them.
    """
    if values.device.type != "cuda":
        return values.cpu().numpy
    copy = torch.empty(values.shape, dtype=values.dtype, pin_memory=True)
    copy.copy_(values, non_blocking=True)
    copied = torch.cuda.current_stream(values.device).record_event()

    def read() -> np.ndarray:
        copied.synchronize()
        return copy.numpy()

    return read
