"""What ranks without training a ranker, as a control."""
