"""The classical baselines of Qin2010's tables: linear, and trained whole rather than by steps."""
