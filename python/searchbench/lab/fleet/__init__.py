"""Several client machines that send one load together."""
