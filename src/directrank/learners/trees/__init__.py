"""Learners of boosted regression trees: CatBoost, LightGBM, RankLib and XGBoost in one form."""
