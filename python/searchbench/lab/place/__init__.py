"""The machine: what it is, and whether it is fit to measure on."""
