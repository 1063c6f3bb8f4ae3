"""Predict the cost of a study: hours per run, figure, table and paper."""
