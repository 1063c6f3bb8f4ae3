"""The classical baselines of Qin2010's tables: linear, and trained by batch solvers."""
