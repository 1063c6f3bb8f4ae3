"""A run: its specification, its execution, its result files and where they come from."""
