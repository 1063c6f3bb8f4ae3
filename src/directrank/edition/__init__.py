"""From the configuration of an edition to its runs, data sets and products, and to the rules."""
