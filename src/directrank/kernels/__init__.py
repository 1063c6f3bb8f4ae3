"""Compiled loops: the numbers of losses, relaxations, layers and learners, fast, on a CPU."""
