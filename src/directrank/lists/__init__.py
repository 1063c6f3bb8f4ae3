"""Ranked lists: packed as the study stores them, padded as losses and metrics take them."""
