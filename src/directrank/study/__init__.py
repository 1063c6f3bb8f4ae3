"""A run: its specification, its execution, its result files and their provenance."""
