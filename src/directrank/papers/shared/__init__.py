"""What the papers have in common: evidence, claims, tables, figures."""
