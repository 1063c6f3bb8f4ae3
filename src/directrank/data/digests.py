"""Digests by which files are known: sha256, md5, or the name that git gives to their content."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hashlib import _Hash


def kind_of(digest: str) -> str:
    """What a digest is, by its length: ``sha256``, ``git name`` or ``md5``."""
    return {64: "sha256", 40: "git name", 32: "md5"}[len(digest)]


def is_sha256(digest: str | None) -> bool:
    """Whether a digest protects content that could be changed in transit, unlike the others."""
    return digest is not None and kind_of(digest) == "sha256"


def hash_like(digest: str, size: int) -> Callable[[], _Hash]:
    """What starts a hash of the kind of ``digest``, for content of ``size`` bytes."""
    # Git hashes the size with the content.
    starts = {
        "sha256": hashlib.sha256,
        "git name": lambda: hashlib.sha1(b"blob %d\0" % size),
        "md5": hashlib.md5,
    }
    return starts[kind_of(digest)]
