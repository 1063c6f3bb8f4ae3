"""The report of an edition: one HTML file that needs nothing else, with the verdicts first."""
