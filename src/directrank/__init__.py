"""Losses, metrics and a reproduction study of direct optimisation of ranking metrics."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from directrank import losses, metrics, nn
    from directrank.data.prepared import open_dataset
    from directrank.study.published import open_results

__all__ = ["__version__", "losses", "metrics", "nn", "open_dataset", "open_results"]


def __getattr__(name: str) -> Any:
    # Loaded on first use: `import directrank` must not cost what the caller does not need.
    if name == "open_dataset":
        return import_module("directrank.data.prepared").open_dataset
    if name == "open_results":
        return import_module("directrank.study.published").open_results
    if name in ("losses", "metrics", "nn"):
        return import_module(f"directrank.{name}")
    raise AttributeError(f"module 'directrank' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(__all__)
