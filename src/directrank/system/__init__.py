"""Files, locks, processes, errors and random streams: what every other package may use."""
