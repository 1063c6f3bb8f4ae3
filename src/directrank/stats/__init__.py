"""Means, intervals and tests over trials and queries: pure functions of the result files."""
