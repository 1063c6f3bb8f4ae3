"""From a configuration to runs, and from runs to result files."""
