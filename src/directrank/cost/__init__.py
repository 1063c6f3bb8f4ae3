"""What a study will cost before anyone starts: hours per run, figure, table and paper."""
