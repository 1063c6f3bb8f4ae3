"""The Movie Search Ranking Dataset (MSRD): from text to features, and folds of related queries."""
