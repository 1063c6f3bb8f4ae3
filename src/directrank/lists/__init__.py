"""Ranked lists: packed in storage, padded or flat in losses and metrics."""
