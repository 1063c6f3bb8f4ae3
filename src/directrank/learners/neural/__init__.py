"""Training networks on ranked lists."""
