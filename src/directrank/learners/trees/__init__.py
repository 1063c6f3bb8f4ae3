"""Learners of boosted regression trees: LightGBM, RankLib and XGBoost in one form."""
