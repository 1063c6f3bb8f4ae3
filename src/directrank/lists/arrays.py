"""Tensors and arrays of what users have: arrays, series and frames of pandas, lists."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
import torch
from torch import Tensor

from directrank.system.errors import ArgumentError


def tensor_of(values: Any, what: str, device: torch.device | None = None) -> Tensor:
    """Numbers as a tensor; a tensor is returned as it is, with its graph.

    Args:
        values: a tensor, or anything that NumPy reads as an array of numbers.
        what: what they are, for the error.
        device: where to put what is not a tensor yet; None is the CPU.

    Raises:
        ArgumentError: NumPy does not read real numbers, or some of them are masked.
    """
    if isinstance(values, Tensor):
        if values.is_complex():
            raise _not_numbers(what, values.dtype)
        return values
    array = array_of(values, what)
    if array.dtype.kind not in "biuf":
        raise _not_numbers(what, array.dtype)
    if array.dtype.itemsize > 8:  # longer floats than PyTorch has
        array = array.astype(np.float64)
    # Neither foreign byte orders nor memory that is read-only suit PyTorch.
    tensor = torch.from_numpy(np.array(array, dtype=array.dtype.newbyteorder("=")))
    return tensor if device is None else tensor.to(device)


def array_of(values: Any, what: str) -> np.ndarray:
    """Values of any type as an array on the CPU.

    Raises:
        ArgumentError: NumPy does not read them as an array, or some of them are masked.
    """
    if np.ma.is_masked(values):
        raise ArgumentError(
            f"{what} are an array that masks some of its values",
            "give scores, labels and their mask apart: mask=~numpy.ma.getmaskarray(scores)",
        )
    try:
        if isinstance(values, Tensor):
            return values.detach().cpu().numpy()
        array = np.asarray(values)
        if array.dtype.kind in "US" and not hasattr(values, "dtype"):
            array = np.asarray(values, dtype=object)  # a missing value would become the text "nan"
        # Series of pandas that allow missing values hold objects.
        return np.asarray(array.tolist()) if _are_numbers(array) else array
    except (TypeError, ValueError, RuntimeError) as error:
        raise ArgumentError(
            f"{what} are not an array: {str(error).splitlines()[0]}",
            "give a tensor, an array, a series of pandas or a list",
        ) from error


def _not_numbers(what: str, dtype: object) -> ArgumentError:
    return ArgumentError(f"{what} are {dtype}, not numbers", "give a tensor or an array of numbers")


def _are_numbers(array: np.ndarray) -> bool:
    """Whether an array of objects contains nothing but numbers."""
    return array.dtype == object and all(isinstance(v, Real) for v in array.flat)
